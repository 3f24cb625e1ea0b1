//===- TurnByTurn.cpp - Loops in which replicas exchange values -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Costs/Trips.h"
#include "Collectives.h"
#include "Pieces.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace baechi;
using namespace baechi::split;

namespace {
/// Operators that the loops of a step may become, of all replicas and turns, as
/// in importer/jax/lockstep.py.
constexpr int64_t kLargestUnrolled = 16384;

using Values = SmallVector<Value>;

class Writer {
public:
  Writer(func::FuncOp step, int64_t replicas)
      : block(step.front()), replicas(replicas), builder(step.getContext()) {}

  LogicalResult run() {
    for (Operation *op = &block.front(); op;) {
      if (!isWritten(op)) {
        op = op->getNextNode();
        continue;
      }
      // Of a loop within, each turn's stands there then, and is met.
      Operation *before = op->getPrevNode();
      if (failed(write(op)))
        return failure();
      op = before ? before->getNextNode() : &block.front();
    }
    return success();
  }

private:
  LogicalResult write(Operation *loop) {
    std::optional<Turns> turns = turnsOf(cast<LoopLikeOpInterface>(loop));
    // Of a loop within it is counted there.
    if (!isCounted.erase(loop)) {
      std::optional<uint64_t> operators = operatorsOf(loop);
      if (!operators)
        return failure();
      uint64_t all =
          llvm::SaturatingMultiply<uint64_t>(turns->count, *operators);
      if (all > uint64_t(kLargestUnrolled - written))
        return loop->emitError("is a loop in which replicas exchange values, "
                               "which is written turn by turn: its ")
               << turns->count << " turns of " << *operators
               << " operators of all replicas are more than "
               << kLargestUnrolled
               << " of a step: exchange values after it, or let a step do "
                  "fewer turns";
      written += int64_t(all);
    }
    builder.setInsertionPoint(loop);
    Values results = isa<scf::WhileOp>(loop)
                         ? turnsOfWhile(cast<scf::WhileOp>(loop), *turns)
                         : turnsOfFor(cast<scf::ForOp>(loop), *turns);
    loop->replaceAllUsesWith(results);
    loop->erase();
    // As what compared and counted.
    for (Operation *copy : llvm::reverse(copies))
      if (isOpTriviallyDead(copy)) {
        isCounted.erase(copy);
        copy->erase();
      }
    copies.clear();
    return success();
  }

  /// The operators of a turn of all replicas, with those of loops within, which
  /// are written turn by turn, too; nothing, after an error, where turns are
  /// not known.
  std::optional<uint64_t> operatorsOf(Operation *loop) {
    if (!turnsOf(cast<LoopLikeOpInterface>(loop))) {
      loop->emitError(
          "is a loop in which replicas exchange values, and how many turns it "
          "has is not known: let it count from one constant to another, or "
          "exchange values outside of it");
      return std::nullopt;
    }
    uint64_t operators = 0;
    for (Region &region : loop->getRegions())
      for (Operation &op : region.getOps()) {
        uint64_t turns = 1, ofTurn = uint64_t(replicas);
        if (isWritten(&op)) {
          std::optional<uint64_t> within = operatorsOf(&op);
          if (!within)
            return std::nullopt;
          turns = turnsOf(cast<LoopLikeOpInterface>(&op))->count;
          ofTurn = *within;
        } else if (isa<LoopLikeOpInterface>(op)) {
          op.walk([&](Operation *inner) {
            ofTurn += inner == &op ? 0 : uint64_t(replicas);
          });
        }
        operators = llvm::SaturatingMultiplyAdd(turns, ofTurn, operators);
      }
    return operators;
  }

  static bool isWritten(Operation *op) {
    return isa<scf::WhileOp, scf::ForOp>(op) && hasStableHlo(op);
  }

  /// The number that a turn has, in the type that the loop counts in.
  Value numberAs(Type type, Location loc, int64_t number) {
    if (auto shaped = dyn_cast<ShapedType>(type))
      return arith::ConstantOp::create(
          builder, loc,
          DenseElementsAttr::get(
              shaped, builder.getIntegerAttr(shaped.getElementType(), number)));
    return arith::ConstantOp::create(builder, loc,
                                     builder.getIntegerAttr(type, number));
  }

  /// The operators of \p body but its terminator, of a turn.
  void copyBody(Block &body, IRMapping &mapping, int64_t turn) {
    for (Operation &op : body.without_terminator()) {
      Operation *copy = builder.clone(op, mapping);
      copy->setLoc(namedAfter(&op, ".turn" + Twine(turn)));
      copies.push_back(copy);
      if (isWritten(copy))
        isCounted.insert(copy);
    }
  }

  static Values lookUp(ValueRange values, const IRMapping &mapping) {
    return llvm::map_to_vector(
        values, [&](Value value) { return mapping.lookupOrDefault(value); });
  }

  Values turnsOfWhile(scf::WhileOp loop, const Turns &turns) {
    Values carried(loop.getInits());
    for (int64_t turn = 0;; ++turn) {
      carried[turns.counter] =
          numberAs(carried[turns.counter].getType(), loop.getLoc(),
                   turns.first + turn * turns.step);
      IRMapping mapping;
      mapping.map(loop.getBeforeArguments(), carried);
      copyBody(*loop.getBeforeBody(), mapping, turn);
      carried = lookUp(loop.getConditionOp().getArgs(), mapping);
      if (turn == turns.count)
        return carried;
      mapping.map(loop.getAfterArguments(), carried);
      copyBody(*loop.getAfterBody(), mapping, turn);
      carried = lookUp(loop.getYieldOp().getOperands(), mapping);
    }
  }

  Values turnsOfFor(scf::ForOp loop, const Turns &turns) {
    Values carried(loop.getInitArgs());
    for (int64_t turn = 0; turn < turns.count; ++turn) {
      IRMapping mapping;
      mapping.map(loop.getInductionVar(),
                  numberAs(loop.getInductionVar().getType(), loop.getLoc(),
                           turns.first + turn * turns.step));
      mapping.map(loop.getRegionIterArgs(), carried);
      copyBody(*loop.getBody(), mapping, turn);
      carried = lookUp(loop.getBody()->getTerminator()->getOperands(), mapping);
    }
    return carried;
  }

  Block &block;
  int64_t replicas;
  int64_t written = 0;
  llvm::SmallPtrSet<Operation *, 8> isCounted; ///< loops of a turn of others
  SmallVector<Operation *> copies;             ///< of one loop's operators
  OpBuilder builder;
};
} // namespace

LogicalResult split::writeTurnByTurn(func::FuncOp step, int64_t replicas) {
  return Writer(step, replicas).run();
}
