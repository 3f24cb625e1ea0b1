//===- LowerLoops.cpp - Loops over keys as serial loops -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Transforms/Loops/Passes.h"
#include "SerialLoops.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

namespace baechi {
#define GEN_PASS_DEF_LOWERLOOPS
#include "Baechi/Transforms/Loops/Passes.h.inc"
} // namespace baechi

using namespace mlir;
using namespace baechi;

namespace {
class Lowerer {
public:
  explicit Lowerer(ForeachOp op)
      : op(op), builder(op), loc(op.getLoc()),
        zero(arith::ConstantIndexOp::create(builder, loc, 0)),
        one(arith::ConstantIndexOp::create(builder, loc, 1)) {}

  Operation *lower() {
    if (op.isSparse())
      openEntries();
    else
      openRanges();
    for (auto [inside, array] : llvm::zip(op.getBodyArrays(), op.getArrays()))
      mapping.map(inside, array);
    Block &body = op.getBody().front();
    for (Operation &inner : body.without_terminator())
      builder.clone(inner, mapping);
    for (auto [value, array] :
         llvm::zip(body.getTerminator()->getOperands(), op.getValues()))
      memref::StoreOp::create(builder, loc, mapping.lookupOrDefault(value),
                              array, entry);
    op.erase();
    return outermost;
  }

private:
  void open(Value from, Value to) {
    auto loop = scf::ForOp::create(builder, loc, from, to, one);
    if (!outermost)
      outermost = loop;
    builder.setInsertionPointToStart(loop.getBody());
    entry = loop.getInductionVar();
  }
  Value elementOf(Value array) {
    return memref::LoadOp::create(builder, loc, array, entry);
  }
  void openEntries();
  void openRanges();

  ForeachOp op;
  OpBuilder builder;
  Location loc;
  Value zero, one;
  Value entry; ///< the innermost counter
  Operation *outermost = nullptr;
  IRMapping mapping;
};
} // namespace

void Lowerer::openEntries() {
  open(zero, memref::DimOp::create(builder, loc, op.getKeyArrays()[0], zero));
  for (auto [key, array] : llvm::zip(op.getKeys(), op.getKeyArrays())) {
    Value element = elementOf(array);
    if (!element.getType().isIndex())
      element = arith::IndexCastOp::create(builder, loc, builder.getIndexType(),
                                           element);
    mapping.map(key, element);
  }
  for (auto [value, array] : llvm::zip(op.getEntryValues(), op.getValues()))
    mapping.map(value, elementOf(array));
}

void Lowerer::openRanges() {
  SmallVector<Value> counters;
  for (unsigned key = 0; key < op.getNumKeys(); ++key) {
    Value from =
        getValueOrCreateConstantIndexOp(builder, loc, op.getLower(key));
    Value to = getValueOrCreateConstantIndexOp(builder, loc, op.getUpper(key));
    open(from, to);
    counters.push_back(entry);
    mapping.map(op.getKeys()[key], entry);
  }
  if (!op.getWhere())
    return;
  Value inside;
  for (auto [constraint, isEquation] : llvm::zip(
           op.getWhere()->getConstraints(), op.getWhere()->getEqFlags())) {
    Value sum =
        affine::expandAffineExpr(builder, loc, constraint, counters, {});
    Value holds = arith::CmpIOp::create(builder, loc,
                                        isEquation ? arith::CmpIPredicate::eq
                                                   : arith::CmpIPredicate::sge,
                                        sum, zero);
    inside = inside ? Value(arith::AndIOp::create(builder, loc, inside, holds))
                    : holds;
  }
  auto only = scf::IfOp::create(builder, loc, inside, /*withElseRegion=*/false);
  builder.setInsertionPointToStart(only.thenBlock());
}

LogicalResult baechi::checkNoAffine(Operation *root) {
  WalkResult walked = root->walk([&](Operation *op) {
    if (!isa<affine::AffineDialect>(op->getDialect()) ||
        !op->getParentOfType<ForeachOp>())
      return WalkResult::advance();
    return op->emitOpError("is of the affine dialect, whose counters are "
                           "those of its own loops: run --lower-affine "
                           "first"),
           WalkResult::interrupt();
  });
  return failure(walked.wasInterrupted());
}

Operation *baechi::lowerSerially(ForeachOp op) { return Lowerer(op).lower(); }

namespace {
struct LowerLoops : public baechi::impl::LowerLoopsBase<LowerLoops> {
  void runOnOperation() override {
    if (failed(checkNoAffine(getOperation())))
      return signalPassFailure();
    // Those within others come first.
    getOperation()->walk([](ForeachOp loop) { lowerSerially(loop); });
  }
};
} // namespace
