//===- InsertChains.cpp - Many tensors become parts of one ----------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Bufferization compares each of a chain's insertions with all others, along
// the chain: a kernel that puts 150 arguments side by side takes it 15 seconds.
// Nothing reads a chain before its end, so its parts can be copied into a
// buffer one after the other, as they come.
//
//===----------------------------------------------------------------------===//

#include "Common/Lowering.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace baechi;

/// Shorter ones are no matter.
static constexpr size_t kLongChain = 16;
/// As bufferization has it.
static constexpr int64_t kAlignment = 64;

namespace {
struct Chain {
  tensor::EmptyOp root;
  SmallVector<tensor::InsertSliceOp> insertions; ///< in their order
};

bool isArgumentPut(tensor::InsertSliceOp insertion, Block *block) {
  auto argument = dyn_cast<BlockArgument>(insertion.getSource());
  return argument && argument.getOwner() == block &&
         insertion->getBlock() == block &&
         insertion.getSourceType().hasStaticShape() &&
         !ShapedType::isDynamicShape(insertion.getStaticOffsets()) &&
         !ShapedType::isDynamicShape(insertion.getStaticStrides());
}

/// The chain that ends with \p last: of arguments, in an empty tensor that
/// nothing else reads; without insertions where it is another one.
Chain chainTo(tensor::InsertSliceOp last) {
  Chain chain;
  for (tensor::InsertSliceOp at = last; isArgumentPut(at, last->getBlock());) {
    chain.insertions.push_back(at);
    Value before = at.getDest();
    chain.root = before.getDefiningOp<tensor::EmptyOp>();
    at = before.getDefiningOp<tensor::InsertSliceOp>();
    if (chain.root)
      break;
    if (!at || !before.hasOneUse())
      return {};
  }
  if (!chain.root)
    return {};
  std::reverse(chain.insertions.begin(), chain.insertions.end());
  return chain;
}

void copyInto(Chain &chain) {
  tensor::InsertSliceOp last = chain.insertions.back();
  RankedTensorType type = last.getResultType();
  OpBuilder builder(chain.insertions.front());
  auto memory = MemRefType::get(type.getShape(), type.getElementType());
  Value whole = memref::AllocOp::create(builder, chain.root.getLoc(), memory,
                                        builder.getI64IntegerAttr(kAlignment));
  for (tensor::InsertSliceOp insertion : chain.insertions) {
    builder.setInsertionPoint(insertion);
    Location loc = insertion.getLoc();
    RankedTensorType part = insertion.getSourceType();
    auto source = bufferization::ToBufferOp::create(
        builder, loc, MemRefType::get(part.getShape(), part.getElementType()),
        insertion.getSource(), /*read_only=*/true);
    MemRefType place = memref::SubViewOp::inferRankReducedResultType(
        part.getShape(), memory, insertion.getMixedOffsets(),
        insertion.getMixedSizes(), insertion.getMixedStrides());
    Value view = memref::SubViewOp::create(
        builder, loc, place, whole, insertion.getMixedOffsets(),
        insertion.getMixedSizes(), insertion.getMixedStrides());
    memref::CopyOp::create(builder, loc, source, view);
  }
  Value result = bufferization::ToTensorOp::create(builder, last.getLoc(), type,
                                                   whole, /*restrict=*/true,
                                                   /*writable=*/true);
  last.getResult().replaceAllUsesWith(result);
  for (tensor::InsertSliceOp insertion : llvm::reverse(chain.insertions))
    insertion.erase();
}
} // namespace

void baechi::copyInsertChains(func::FuncOp kernel) {
  SmallVector<tensor::InsertSliceOp> ends;
  for (auto insertion :
       kernel.getBody().front().getOps<tensor::InsertSliceOp>())
    if (!llvm::any_of(insertion->getUsers(), [&](Operation *user) {
          auto next = dyn_cast<tensor::InsertSliceOp>(user);
          return next && next.getDest() == insertion.getResult();
        }))
      ends.push_back(insertion);
  for (tensor::InsertSliceOp last : ends)
    if (Chain chain = chainTo(last); chain.insertions.size() >= kLongChain)
      copyInto(chain);
}
