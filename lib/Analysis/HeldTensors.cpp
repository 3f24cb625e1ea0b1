//===- HeldTensors.cpp - What arenas hold from when to when ---------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/HeldTensors.h"
#include "Baechi/Analysis/DeviceProgram.h"
#include "Baechi/Analysis/Program.h"
#include "llvm/ADT/DenseMap.h"
#include <map>

using namespace mlir;
using namespace baechi;
using Event = HeldTensor::Event;

namespace {
/// What reads a tensor on its own device.
struct Readers {
  std::optional<int32_t> lastOperator;
  std::vector<SendOp> sends;
  bool isResult = false; ///< or is read at the step's end
};

class Reader {
public:
  explicit Reader(ArrayRef<DeviceProgram> programs)
      : programs(programs), readers(programs.size()) {
    for (auto [device, program] : llvm::enumerate(programs))
      findReaders(device);
  }

  std::vector<HeldTensor> heldOn(int32_t device) {
    std::vector<HeldTensor> held;
    func::FuncOp step = programs[device].step;
    for (BlockArgument argument : step.getArguments())
      if (auto offset = step.getArgAttrOfType<IntegerAttr>(
              argument.getArgNumber(), BaechiDialect::kOffset))
        held.push_back({offset.getInt(),
                        tensorBytes(argument.getType(), true).value_or(0),
                        std::nullopt,
                        {},
                        /*isKept=*/true});
    for (Operation &op : step.getBody().front())
      addHeld(device, &op, held);
    return held;
  }

private:
  void findReaders(int32_t device) {
    func::FuncOp step = programs[device].step;
    SmallVector<Operation *> operators = operatorsOf(step);
    for (auto [position, op] : llvm::enumerate(operators))
      positionOf[op] = position;
    size_t next = 0;
    for (Operation &op : step.getBody().front()) {
      bool isOperator = positionOf.contains(&op);
      if (auto recv = dyn_cast<RecvOp>(op))
        received[{recv.getQueue(), recv.getSeq()}] = {device, recv};
      for (Value value : valuesReadBy(&op)) {
        Readers &of = readers[device][rootOf(value)];
        if (auto send = dyn_cast<SendOp>(op))
          of.sends.push_back(send);
        else if (isOperator || (isa<CopyOp>(op) && next < operators.size()))
          of.lastOperator = next; // a copy ends by the operator after it
        else
          of.isResult |= isa<CopyOp>(op);
        of.isResult |= op.hasTrait<OpTrait::IsTerminator>();
      }
      next += isOperator;
    }
  }

  void addHeld(int32_t device, Operation *op, std::vector<HeldTensor> &held) {
    auto offsets = op->getAttrOfType<DenseI64ArrayAttr>(BaechiDialect::kOffset);
    if (!offsets)
      return;
    auto position = positionOf.find(op);
    HeldTensor made;
    if (position != positionOf.end())
      made.from = Event{false, device, position->second};
    else if (auto recv = dyn_cast<RecvOp>(op))
      made.from = Event{true, int32_t(recv.getQueue()), int32_t(recv.getSeq())};
    // Constants of a GPU are there before.
    made.isKept = !made.from;
    for (auto [number, offset] : llvm::enumerate(offsets.asArrayRef())) {
      HeldTensor each = made;
      each.offset = offset;
      if (number < op->getNumResults()) {
        Value result = op->getResult(number);
        each.bytes = tensorBytes(result.getType(), true).value_or(0);
        addEnds(device, result, each);
      } else if (auto cost =
                     op->getAttrOfType<CostAttr>(BaechiDialect::kCost)) {
        each.bytes = cost.getScratch();
      }
      if (made.from)
        each.until.push_back(*made.from);
      held.push_back(std::move(each));
    }
  }

  void addEnds(int32_t device, Value root, HeldTensor &held) {
    const Readers of = readers[device].lookup(root);
    held.isKept |= of.isResult;
    if (of.lastOperator)
      held.until.push_back({false, device, *of.lastOperator});
    for (SendOp send : of.sends) {
      held.until.push_back(
          {true, int32_t(send.getQueue()), int32_t(send.getSeq())});
      auto other = received.find({send.getQueue(), send.getSeq()});
      // It is read here.
      if (send.getLent() && other != received.end()) {
        auto [receiver, recv] = other->second;
        Readers there = readers[receiver].lookup(rootOf(recv->getResult(0)));
        held.isKept |= there.isResult;
        if (there.lastOperator)
          held.until.push_back({false, receiver, *there.lastOperator});
      }
    }
  }

  ArrayRef<DeviceProgram> programs;
  llvm::DenseMap<Operation *, int32_t> positionOf;
  std::vector<llvm::DenseMap<Value, Readers>> readers; ///< a device each
  std::map<std::pair<uint64_t, uint64_t>, std::pair<int32_t, Operation *>>
      received;
};
} // namespace

FailureOr<std::vector<std::vector<HeldTensor>>>
baechi::heldTensors(ModuleOp planned) {
  FailureOr<SmallVector<DeviceProgram>> programs = devicePrograms(planned);
  if (failed(programs))
    return failure();
  Reader reader(*programs);
  std::vector<std::vector<HeldTensor>> held;
  for (size_t device = 0; device < programs->size(); ++device)
    held.push_back(reader.heldOn(device));
  return held;
}
