//===- WholeStep.cpp - The step that devices compute together -------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/WholeStep.h"
#include "Baechi/Analysis/DeviceProgram.h"
#include "Baechi/Analysis/Program.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include <map>

using namespace mlir;
using namespace baechi;

namespace {
class Joiner {
public:
  Joiner(ArrayRef<DeviceProgram> programs, func::FuncOp whole)
      : programs(programs), whole(whole),
        builder(OpBuilder::atBlockBegin(whole.addEntryBlock())) {
    for (const DeviceProgram &program : programs)
      note(program.step);
  }

  LogicalResult join() {
    for (auto [number, op] : operators)
      if (failed(clone(op)))
        return failure();
    SmallVector<Value> results(whole.getNumResults());
    for (const DeviceProgram &program : programs) {
      func::FuncOp step = program.step;
      Operation *end = step.getBody().front().getTerminator();
      for (auto [index, value] : llvm::enumerate(end->getOperands())) {
        auto of = step.getResultAttrOfType<IntegerAttr>(index,
                                                        BaechiDialect::kResult);
        if (of)
          results[of.getInt()] = find(value);
      }
    }
    if (llvm::is_contained(results, Value()))
      return failure();
    func::ReturnOp::create(builder, whole.getLoc(), results);
    return success();
  }

private:
  void note(func::FuncOp step) {
    for (BlockArgument argument : step.getArguments())
      if (auto of = step.getArgAttrOfType<IntegerAttr>(
              argument.getArgNumber(), BaechiDialect::kArgument))
        mapping.map(argument, whole.getArgument(of.getInt()));
    for (Operation &op : step.getBody().front()) {
      if (auto send = dyn_cast<SendOp>(op))
        sent[{send.getQueue(), send.getSeq()}] = send.getValue();
      else if (auto number =
                   op.getAttrOfType<IntegerAttr>(BaechiDialect::kOperator))
        operators[number.getInt()] = &op;
    }
  }

  LogicalResult clone(Operation *op) {
    for (Value value : valuesReadBy(op))
      if (Value found = find(value))
        mapping.map(value, found);
      else
        return failure();
    builder.clone(*op, mapping);
    return success();
  }

  /// What \p value, a device's, is of the whole step; null where that does not
  /// have it yet.
  Value find(Value value) {
    if (Value known = mapping.lookupOrNull(value))
      return known;
    Operation *op = value.getDefiningOp();
    if (auto await = dyn_cast_or_null<AwaitOp>(op))
      return find(await.getSource());
    if (auto recv = dyn_cast_or_null<RecvOp>(op)) {
      auto it = sent.find({recv.getQueue(), recv.getSeq()});
      return it == sent.end() ? Value() : find(it->second);
    }
    // A view or a constant; operators come by their numbers.
    if (!op || op->hasAttr(BaechiDialect::kOperator) || failed(clone(op)))
      return Value();
    return mapping.lookup(value);
  }

  ArrayRef<DeviceProgram> programs;
  func::FuncOp whole;
  OpBuilder builder;
  IRMapping mapping;
  std::map<std::pair<int64_t, int64_t>, Value> sent; ///< by queue and number
  std::map<int64_t, Operation *> operators;
};
} // namespace

OwningOpRef<ModuleOp> baechi::wholeStep(ModuleOp partitioned) {
  FailureOr<SmallVector<DeviceProgram>> programs = devicePrograms(partitioned);
  if (failed(programs))
    return nullptr;
  OwningOpRef<ModuleOp> module =
      ModuleOp::create(partitioned.getLoc(), partitioned.getName());
  OpBuilder top = OpBuilder::atBlockBegin(module->getBody());
  func::FuncOp whole;
  for (Operation &op : *partitioned.getBody()) {
    if (isa<ModuleOp>(op)) // a device's
      continue;
    auto copy = dyn_cast<func::FuncOp>(top.clone(op));
    // What is left of it is its signature.
    if (copy && copy.getName() == programs->front().step.getName())
      whole = copy;
  }
  if (!whole)
    return nullptr;
  whole.setPublic();
  if (failed(Joiner(*programs, whole).join()))
    return nullptr;
  return module;
}
