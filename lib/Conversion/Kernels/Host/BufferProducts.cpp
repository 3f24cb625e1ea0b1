//===- BufferProducts.cpp - Products within kernels -------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BufferProducts.h"
#include "Baechi/Analysis/ExactSums.h"
#include "Common/PointerCode.h"
#include "Tiles.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/Transforms/BufferViewFlowAnalysis.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace baechi;

namespace {
constexpr int64_t kAlignment = 64;
/// Smaller products cost less as loops that LLVM vectorizes. Of rows and
/// columns there must be enough to fill vectors, whichever a tile's vectors run
/// along.
constexpr int64_t kFewestTerms = 8;

int64_t sizeOf(const ProductLoops &loops) {
  int64_t size = 1;
  for (const ProductLoop &loop : loops)
    size *= loop.size;
  return size;
}

bool isLarge(const StridedProduct &product) {
  return sizeOf(product.rows) >= kFewestTiledRows &&
         sizeOf(product.columns) >= kFewestTiledRows &&
         sizeOf(product.sums) >= kFewestTerms;
}

/// True when the iterations around `op` follow each other, so that they can
/// share a buffer.
bool isSequential(Operation *op, func::FuncOp kernel) {
  for (Operation *around = op->getParentOp(); around != kernel;
       around = around->getParentOp())
    if (!isa<scf::ForOp, scf::WhileOp, scf::IfOp>(around))
      return false;
  return true;
}

//===----------------------------------------------------------------------===//
// Which buffers are distinct
//===----------------------------------------------------------------------===//

class Origins {
public:
  Origins(func::FuncOp kernel, const KernelSignature &signature)
      : entry(&kernel.getBody().front()), signature(signature), flow(kernel) {}

  /// True when no element of `written` is one of `read`, whatever loops and
  /// branches hand on.
  bool areDistinct(Value written, Value read) const {
    auto targets = of(written), sources = of(read);
    if (!targets || !sources)
      return false;
    for (Value target : *targets)
      for (Value source : *sources)
        if (mayBeOne(target, source))
          return false;
    return true;
  }

private:
  /// The arguments, allocations and constants that `buffer` may lie in; nothing
  /// where it may come from anything else.
  std::optional<SmallVector<Value>> of(Value buffer) const {
    SmallVector<Value> origins;
    for (Value value : flow.resolveReverse(buffer)) {
      if (!flow.mayBeTerminalBuffer(value))
        continue;
      auto argument = dyn_cast<BlockArgument>(value);
      bool isKnown =
          argument
              ? argument.getOwner() == entry
              : isa<memref::AllocOp, memref::AllocaOp, memref::GetGlobalOp>(
                    value.getDefiningOp());
      if (!isKnown)
        return std::nullopt;
      origins.push_back(value);
    }
    if (origins.empty())
      return std::nullopt;
    return origins;
  }

  /// Allocations are hoisted out of loops, each to memory of its own, and the
  /// kernel writes no constant: different values are different buffers, but for
  /// results that may be written over arguments.
  bool mayBeOne(Value one, Value other) const {
    if (one == other)
      return true;
    auto number = [](Value value) -> std::optional<unsigned> {
      if (auto argument = dyn_cast<BlockArgument>(value))
        return argument.getArgNumber();
      return std::nullopt;
    };
    auto first = number(one), second = number(other);
    if (!first || !second)
      return false;
    if (*first > *second)
      std::swap(first, second);
    return *first < signature.numArguments &&
           *second >= signature.numArguments &&
           signature.isMayAlias(*first, *second - signature.numArguments);
  }

  Block *entry;
  const KernelSignature &signature;
  BufferViewFlowAnalysis flow;
};

//===----------------------------------------------------------------------===//
// Tiles in place of operations
//===----------------------------------------------------------------------===//

/// The operation before `op` that sets all of its result to zero, when nothing
/// between them reads or writes memory.
linalg::FillOp zeroBefore(linalg::GenericOp op) {
  Value result = op.getDpsInits()[0];
  for (Operation *before = op->getPrevNode(); before;
       before = before->getPrevNode()) {
    if (auto fill = dyn_cast<linalg::FillOp>(before))
      return fill.output() == result &&
                     matchPattern(fill.value(), m_PosZeroFloat())
                 ? fill
                 : linalg::FillOp();
    if (!isMemoryEffectFree(before))
      return {};
  }
  return {};
}

/// The address of the first element of `buffer`.
Value pointerTo(OpBuilder &builder, Location loc, Value buffer) {
  PointerCode code(builder, loc);
  Value address =
      memref::ExtractAlignedPointerAsIndexOp::create(builder, loc, buffer);
  address =
      arith::IndexCastOp::create(builder, loc, builder.getI64Type(), address);
  Value pointer = LLVM::IntToPtrOp::create(
      builder, loc, LLVM::LLVMPointerType::get(builder.getContext()), address);
  auto [strides, offset] =
      cast<MemRefType>(buffer.getType()).getStridesAndOffset();
  if (!ShapedType::isDynamic(offset))
    return code.at(pointer, offset);
  auto view = memref::ExtractStridedMetadataOp::create(builder, loc, buffer);
  return code.at(pointer, view.getOffset());
}

/// A product and what it becomes.
struct Rewrite {
  linalg::GenericOp op;
  linalg::FillOp zero;
  TilePlan plan;
};

SmallVector<Rewrite, 0> planRewrites(func::FuncOp kernel,
                                     const KernelSignature &signature,
                                     VectorUnit unit) {
  SmallVector<Rewrite, 0> rewrites;
  std::optional<Origins> origins;
  bool inOrder = isExact(kernel);
  kernel.walk([&](linalg::GenericOp op) {
    std::optional<StridedProduct> product = matchBufferProduct(op);
    if (!product || !isLarge(*product) || !isSequential(op, kernel) ||
        (inOrder && !addsFused(op)))
      return;
    if (!origins)
      origins.emplace(kernel, signature);
    Value result = op.getDpsInits()[0];
    if (!llvm::all_of(op.getDpsInputs(), [&](Value factor) {
          return origins->areDistinct(result, factor);
        }))
      return;
    linalg::FillOp zero = zeroBefore(op);
    if (zero)
      product->operands.start = ProductOperands::Start::Value;
    if (auto plan = planTiles(std::move(*product), unit, inOrder))
      rewrites.push_back({op, zero, std::move(*plan)});
  });
  return rewrites;
}

void tileKernel(func::FuncOp kernel, const KernelSignature &signature,
                VectorUnit unit) {
  IRRewriter rewriter(kernel.getContext());
  generalizeContractions(rewriter, kernel);
  SmallVector<Rewrite, 0> rewrites = planRewrites(kernel, signature, unit);
  int64_t scratchBytes = 0;
  for (const Rewrite &rewrite : rewrites)
    scratchBytes = std::max(scratchBytes, rewrite.plan.scratchBytes());
  Value scratch;
  if (scratchBytes > 0) {
    rewriter.setInsertionPointToStart(&kernel.getBody().front());
    auto type = MemRefType::get(scratchBytes, rewriter.getI8Type());
    scratch = memref::AllocOp::create(rewriter, kernel.getLoc(), type,
                                      rewriter.getI64IntegerAttr(kAlignment));
  }
  for (Rewrite &rewrite : rewrites) {
    Location loc = rewrite.op.getLoc();
    rewriter.setInsertionPoint(rewrite.op);
    TilePointers pointers;
    for (Value buffer : rewrite.op->getOperands())
      pointers.arguments.push_back(pointerTo(rewriter, loc, buffer));
    pointers.result = pointers.arguments.back();
    pointers.scratch =
        scratch
            ? pointerTo(rewriter, loc, scratch)
            : LLVM::ZeroOp::create(rewriter, loc, pointers.result.getType());
    emitTiles(rewriter, loc, rewrite.plan, pointers);
    rewriter.eraseOp(rewrite.op);
    if (rewrite.zero)
      rewriter.eraseOp(rewrite.zero);
  }
}
} // namespace

void baechi::tileProducts(ModuleOp kernels,
                          const KernelSignatures &signatures) {
  VectorUnit unit = hostVectorUnit();
  for (auto kernel : kernels.getOps<func::FuncOp>())
    if (auto it = signatures.find(kernel.getSymNameAttr());
        it != signatures.end())
      tileKernel(kernel, it->second, unit);
}
