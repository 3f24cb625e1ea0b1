//===- TurnByTurn.cpp - Loops in which replicas exchange values -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Transforms/Unroll/WriteTurns.h"
#include "Collectives.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace baechi;
using namespace baechi::split;

namespace {
/// Operators that the loops of a step may become, of all replicas and turns, as
/// in importer/jax/lockstep.py.
constexpr int64_t kLargestUnrolled = 16384;

class Writer {
public:
  Writer(func::FuncOp step, int64_t replicas)
      : block(step.front()), replicas(replicas) {}

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
    for (Operation *copy : writeTurns(loop, *turns))
      if (isWritten(copy))
        isCounted.insert(copy);
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

  Block &block;
  int64_t replicas;
  int64_t written = 0;
  llvm::SmallPtrSet<Operation *, 8> isCounted; ///< loops of a turn of others
};
} // namespace

LogicalResult split::writeTurnByTurn(func::FuncOp step, int64_t replicas) {
  return Writer(step, replicas).run();
}
