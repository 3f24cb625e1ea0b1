//===- WideSums.cpp - Sums of halves in single precision --------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A sum of some hundred bfloat16 that is itself one stops growing: what is left
// to add is less than its last bit. Frameworks sum in single precision and
// round once, whatever their IR says: XLA by its passes for the CPU, PyTorch in
// its kernels. So do reductions here.
//
//===----------------------------------------------------------------------===//

#include "Phases.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace baechi;
using namespace baechi::formkernels;

static bool isHalf(Type type) { return type.isF16() || type.isBF16(); }

/// The sums and products that make what is yielded of the result so far, the
/// first one first. Empty where anything else is computed of it.
static SmallVector<Operation *> findChain(linalg::GenericOp op,
                                          unsigned output) {
  BlockArgument sum = op.getRegionOutputArgs()[output];
  Value yielded = op.getBody()->getTerminator()->getOperand(output);
  SmallVector<Operation *> chain;
  for (Value value = sum; value != yielded;) {
    if (!value.hasOneUse())
      return {};
    Operation *user = *value.user_begin();
    if (!isa<arith::AddFOp, arith::MulFOp>(*user) ||
        user->getBlock() != op.getBody())
      return {};
    chain.push_back(user);
    value = user->getResult(0);
  }
  return chain;
}

/// A term in single precision. One that is a product is computed so, too.
static Value widen(OpBuilder &builder, Value term) {
  Type single = builder.getF32Type();
  auto extend = [&](Value value) -> Value {
    return arith::ExtFOp::create(builder, value.getLoc(), single, value);
  };
  auto product = term.getDefiningOp<arith::MulFOp>();
  if (!product || !product->hasOneUse())
    return extend(term);
  return arith::MulFOp::create(builder, product.getLoc(),
                               extend(product.getLhs()),
                               extend(product.getRhs()));
}

static RankedTensorType ofType(Value tensor, Type element) {
  return cast<RankedTensorType>(tensor.getType()).clone(element);
}

/// `tensor`, each element converted by `Convert`.
template <typename Convert>
static Value convert(OpBuilder &builder, Location loc, Value tensor,
                     Type element) {
  RankedTensorType type = ofType(tensor, element);
  if (auto fill = tensor.getDefiningOp<linalg::FillOp>()) {
    Value value =
        builder.createOrFold<Convert>(loc, element, fill.getInputs()[0]);
    Value target =
        tensor::EmptyOp::create(builder, loc, type.getShape(), element);
    return linalg::FillOp::create(builder, loc, value, target).getResult(0);
  }
  Value target =
      tensor::EmptyOp::create(builder, loc, type.getShape(), element);
  SmallVector<AffineMap> maps(2,
                              builder.getMultiDimIdentityMap(type.getRank()));
  SmallVector<utils::IteratorType> loops(type.getRank(),
                                         utils::IteratorType::parallel);
  auto converted = linalg::GenericOp::create(
      builder, loc, type, tensor, target, maps, loops,
      [&](OpBuilder &nested, Location where, ValueRange given) {
        Value value = Convert::create(nested, where, element, given[0]);
        linalg::YieldOp::create(nested, where, value);
      });
  return converted.getResult(0);
}

/// Makes `chain` start from a sum in single precision, and yields one.
static void rewriteChain(linalg::GenericOp op, unsigned output,
                         ArrayRef<Operation *> chain) {
  Value sum = op.getRegionOutputArgs()[output];
  sum.setType(Float32Type::get(op.getContext()));
  for (Operation *link : chain) {
    OpBuilder builder(link);
    Value left = link->getOperand(0), right = link->getOperand(1);
    Value wide = widen(builder, left.getType().isF32() ? right : left);
    link->setOperands(left.getType().isF32() ? ValueRange{left, wide}
                                             : ValueRange{wide, right});
    link->getResult(0).setType(builder.getF32Type());
  }
}

static void eraseUnused(Block *body) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(*body)))
    if (isOpTriviallyDead(&op))
      op.erase();
}

void formkernels::widenSums(func::FuncOp step) {
  SmallVector<linalg::GenericOp> reductions;
  step.walk([&](linalg::GenericOp op) {
    if (op.getNumReductionLoops() > 0 && op.hasPureTensorSemantics())
      reductions.push_back(op);
  });
  for (linalg::GenericOp op : reductions)
    for (unsigned output = 0; output < op.getNumDpsInits(); ++output) {
      Type half = getElementTypeOrSelf(op.getResult(output));
      SmallVector<Operation *> chain;
      if (isHalf(half))
        chain = findChain(op, output);
      if (chain.empty())
        continue;
      OpBuilder builder(op);
      OpOperand *init = op.getDpsInitOperand(output);
      init->set(convert<arith::ExtFOp>(builder, op.getLoc(), init->get(),
                                       builder.getF32Type()));
      rewriteChain(op, output, chain);
      eraseUnused(op.getBody());
      Value wide = op.getResult(output);
      wide.setType(init->get().getType());
      builder.setInsertionPointAfter(op);
      Value rounded =
          convert<arith::TruncFOp>(builder, op.getLoc(), wide, half);
      wide.replaceAllUsesExcept(rounded, rounded.getDefiningOp());
    }
}
