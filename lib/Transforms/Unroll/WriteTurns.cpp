//===- WriteTurns.cpp - A loop, turn by turn ------------------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Transforms/Unroll/WriteTurns.h"
#include "Baechi/Analysis/NamedAfter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace baechi;

namespace {
using Values = SmallVector<Value>;

class Writer {
public:
  Writer(Operation *loop, const Turns &turns, FoldOfTurn fold)
      : loop(loop), turns(turns), fold(fold), builder(loop) {}

  SmallVector<Operation *> run() {
    Values results = isa<scf::WhileOp>(loop) ? ofWhile(cast<scf::WhileOp>(loop))
                                             : ofFor(cast<scf::ForOp>(loop));
    loop->replaceAllUsesWith(results);
    loop->erase();
    // As what compared and counted.
    SmallVector<Operation *> alive;
    for (Operation *copy : llvm::reverse(copies))
      if (isOpTriviallyDead(copy))
        copy->erase();
      else
        alive.push_back(copy);
    std::reverse(alive.begin(), alive.end());
    return alive;
  }

private:
  int64_t numberOf(int64_t turn) const {
    return turns.first + turn * turns.step;
  }

  /// The number that a turn has, in the type that the loop counts in.
  Value numberAs(Type type, int64_t number) {
    TypedAttr value;
    if (auto shaped = dyn_cast<ShapedType>(type))
      value = DenseElementsAttr::get(
          shaped, builder.getIntegerAttr(shaped.getElementType(), number));
    else
      value = builder.getIntegerAttr(type, number);
    return arith::ConstantOp::create(builder, loop->getLoc(), value);
  }

  /// The operators of \p body but its terminator, of a turn.
  void copyBody(Block &body, IRMapping &mapping, int64_t turn) {
    for (Operation &op : body.without_terminator()) {
      Operation *copy = builder.clone(op, mapping);
      copy->setLoc(namedAfter(&op, ".turn" + Twine(turn)));
      Values folded = fold ? fold(copy) : Values();
      if (folded.empty()) {
        copies.push_back(copy);
        continue;
      }
      mapping.map(op.getResults(), folded);
      copy->erase();
    }
  }

  static Values lookUp(ValueRange values, const IRMapping &mapping) {
    return llvm::map_to_vector(
        values, [&](Value value) { return mapping.lookupOrDefault(value); });
  }

  Values ofWhile(scf::WhileOp loop) {
    Values carried(loop.getInits());
    for (int64_t turn = 0;; ++turn) {
      carried[turns.counter] =
          numberAs(carried[turns.counter].getType(), numberOf(turn));
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

  Values ofFor(scf::ForOp loop) {
    Values carried(loop.getInitArgs());
    for (int64_t turn = 0; turn < turns.count; ++turn) {
      IRMapping mapping;
      mapping.map(loop.getInductionVar(),
                  numberAs(loop.getInductionVar().getType(), numberOf(turn)));
      mapping.map(loop.getRegionIterArgs(), carried);
      copyBody(*loop.getBody(), mapping, turn);
      carried = lookUp(loop.getBody()->getTerminator()->getOperands(), mapping);
    }
    return carried;
  }

  Operation *loop;
  const Turns &turns;
  FoldOfTurn fold;
  OpBuilder builder;
  SmallVector<Operation *> copies;
};
} // namespace

SmallVector<Operation *> baechi::writeTurns(Operation *loop, const Turns &turns,
                                            FoldOfTurn fold) {
  return Writer(loop, turns, fold).run();
}
