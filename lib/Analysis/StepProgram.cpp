//===- StepProgram.cpp - What each device of a program does -----*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/DeviceProgram.h"
#include "Baechi/Analysis/Parts.h"
#include "Baechi/Analysis/Program.h"
#include "Baechi/Analysis/StepSimulation.h"
#include "Baechi/Dialect/Carried.h"
#include "Baechi/Dialect/CudaBlocks.h"
#include "Baechi/Placement/Model/Pool.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace baechi;
using Kind = Instruction::Kind;

namespace {
class Reader {
public:
  Reader(ModuleOp module, ArrayRef<DeviceProgram> programs,
         const placement::Machine &machine)
      : programs(programs), machine(machine),
        hasNetwork(module->hasAttr(kSimulatedNetwork)) {
    result.hasExchange = module->hasAttr(kExchange);
    if (auto carrier = module->getAttrOfType<DenseI64ArrayAttr>(kCarrierCosts))
      std::tie(result.carrierNs, result.carrierBytesPerUs) =
          std::pair(carrier[0], carrier[1]);
    if (auto bytes = module->getAttrOfType<IntegerAttr>(kSliceBytes))
      sliceBytes = bytes.getInt();
    for (auto [index, program] : llvm::enumerate(programs))
      positionOf[program.name] = index;
  }

  StepProgram run() {
    for (auto [index, program] : llvm::enumerate(programs)) {
      device = index;
      instructions.emplace_back();
      result.isPool.push_back(placement::isPoolKind(program.spec.getKind()));
      operators.clear();
      func::FuncOp step = program.step;
      operators.insert_range(operatorsOf(step));
      for (Operation &op : step.getBody().front())
        read(&op);
    }
    // Each end's device is done with what it carries when both have offered it.
    for (auto [number, queue] : llvm::enumerate(result.queues))
      for (auto [seq, message] : llvm::enumerate(queue.messages))
        if (message.carried) {
          instructions[queue.from].push_back(
              {Kind::AwaitSend, 0, int32_t(number), int32_t(seq)});
          instructions[queue.to].push_back(
              {Kind::AwaitRecv, 0, int32_t(number), int32_t(seq)});
        }
    result.devices = std::move(instructions);
    return std::move(result);
  }

private:
  void read(Operation *op) {
    if (auto send = dyn_cast<SendOp>(op)) {
      addMessage(send);
      add({Kind::Send, 0, int32_t(send.getQueue()), int32_t(send.getSeq())});
    } else if (auto recv = dyn_cast<RecvOp>(op)) {
      if (!recv.getLent())
        add({Kind::Recv, 0, int32_t(recv.getQueue()), int32_t(recv.getSeq())});
    } else if (auto await = dyn_cast<AwaitOp>(op)) {
      Operation *source = await.getSource().getDefiningOp();
      if (isAtEndForLoan(await))
        return;
      if (auto send = dyn_cast_or_null<SendOp>(source))
        add({Kind::AwaitSend, 0, int32_t(send.getQueue()),
             int32_t(send.getSeq())});
      else if (auto recv = dyn_cast_or_null<RecvOp>(source))
        add({Kind::AwaitRecv, 0, int32_t(recv.getQueue()),
             int32_t(recv.getSeq())});
    } else if (auto await = dyn_cast<AwaitCarriedOp>(op)) {
      bool sends = isa_and_nonnull<SendOp>(awaitedBy(await));
      add({sends ? Kind::AwaitSend : Kind::AwaitRecv, 0,
           int32_t(await.getQueue()), int32_t(await.getSeq()),
           /*ofLastStep=*/true});
    } else if (auto back = dyn_cast<GiveBackOp>(op)) {
      if (auto recv = back.getSource().getDefiningOp<RecvOp>())
        add({Kind::GiveBack, 0, int32_t(recv.getQueue()),
             int32_t(recv.getSeq())});
    } else if (auto copy = dyn_cast<CopyOp>(op)) {
      // At the rate of a copy to a neighbour, without its rendezvous.
      int32_t other = device == 0 ? 1 : 0;
      int64_t bytes =
          tensorBytes(copy.getSource().getType(), false).value_or(0);
      add({Kind::LocalCopy,
           machine.devices.size() > 1 && machine.link(other, device)
               ? machine.link(other, device)->copyNs(bytes) -
                     machine.link(other, device)->latencyNs
               : 0,
           0, 0},
          op);
    } else if (operators.contains(op)) {
      add({Kind::Operator, timeOf(op), 0, 0}, op);
    }
  }

  /// An operator or a copy within the device.
  void add(Instruction instruction, Operation *op) {
    if (isGpu(device)) {
      instruction.ofGpu = int32_t(result.ofGpus.size());
      result.ofGpus.push_back({instruction.ns, blocksOf(op), accessesOf(op)});
    }
    add(instruction);
  }

  int64_t blocksOf(Operation *op) {
    func::FuncOp kernel = kernelOf(op, symbols);
    auto blocks = kernel ? kernel->getAttrOfType<IntegerAttr>(kCudaBlocks)
                         : IntegerAttr();
    return blocks ? blocks.getInt() : 0;
  }

  /// What it touches of the device's arena: whole tensors and its scratch. What
  /// another device lends nobody here writes, nor constants.
  support::Accesses accessesOf(Operation *op) {
    support::Accesses accesses;
    auto touch = [&](std::optional<int64_t> begin, int64_t bytes, bool writes) {
      if (begin)
        accesses.push_back(
            {uintptr_t(*begin), uintptr_t(*begin + bytes), writes});
    };
    auto bytesOf = [](Value value) {
      return tensorBytes(value.getType(), false).value_or(0);
    };
    for (Value value : valuesReadBy(op))
      touch(placeOf(value), bytesOf(value), /*writes=*/false);
    if (auto copy = dyn_cast<CopyOp>(op))
      touch(placeOf(copy.getTarget()), bytesOf(copy.getTarget()),
            /*writes=*/true);
    auto offsets = op->getAttrOfType<DenseI64ArrayAttr>(BaechiDialect::kOffset);
    if (!offsets)
      return accesses;
    for (auto [number, offset] : llvm::enumerate(offsets.asArrayRef()))
      if (number < op->getNumResults())
        touch(offset, bytesOf(op->getResult(number)), /*writes=*/true);
      else if (auto cost = op->getAttrOfType<CostAttr>(BaechiDialect::kCost))
        touch(offset, cost.getScratch(), /*writes=*/true);
    return accesses;
  }

  std::optional<int64_t> placeOf(Value value) {
    Value root = rootOf(value);
    int64_t inRoot = offsetInRoot(value);
    if (auto argument = dyn_cast<BlockArgument>(root)) {
      func::FuncOp step = programs[device].step;
      auto offset = step.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(),
                                                       BaechiDialect::kOffset);
      return offset ? std::optional(offset.getInt() + inRoot) : std::nullopt;
    }
    auto source = cast<OpResult>(root);
    auto offsets = source.getOwner()->getAttrOfType<DenseI64ArrayAttr>(
        BaechiDialect::kOffset);
    if (!offsets || source.getResultNumber() >= offsets.size())
      return std::nullopt;
    return offsets[source.getResultNumber()] + inRoot;
  }

  void add(Instruction instruction) {
    instructions.back().push_back(instruction);
  }

  int64_t timeOf(Operation *op) {
    auto cost = op->getAttrOfType<CostAttr>(BaechiDialect::kCost);
    if (!cost)
      return 0;
    // What is written into its place already is not copied.
    PartsLeft left = partsLeft(op, symbols);
    for (StringRef kind : {programs[device].spec.getKind(), StringRef("")})
      if (auto ns = cost.getTimeNs().getAs<IntegerAttr>(kind))
        return ns.getInt() * left.copied / left.all;
    return 0;
  }

  void addMessage(SendOp send) {
    size_t queue = send.getQueue(), seq = send.getSeq();
    if (result.queues.size() <= queue)
      result.queues.resize(queue + 1);
    StepProgram::Queue &channel = result.queues[queue];
    channel.from = device;
    channel.to = positionOf.lookup(send.getTo());
    if (channel.messages.size() <= seq)
      channel.messages.resize(seq + 1);
    int64_t bytes = tensorBytes(send.getValue().getType(), false).value_or(0);
    const std::optional<placement::Link> &link =
        machine.link(channel.from, channel.to);
    int64_t ns = 0;
    if (link)
      ns = send.getLent() ? link->latencyNs : link->copyNs(bytes);
    StepProgram::Queue::Message &message = channel.messages[seq];
    message = {bytes, ns, send.getLent(), int64_t(send.getStart()),
               send->hasAttr(kCarried)};
    if (auto priority = send->getAttrOfType<IntegerAttr>(kPriority))
      message.priority = priority.getInt();
    if (isGpu(channel.from) || isGpu(channel.to)) {
      channel.isCarried = true;
      channel.lanes = {channel.from * int32_t(programs.size()) + channel.to};
      message.lastSliceNs = message.copyNs;
    } else if (link && hasNetwork && isHost(channel.from) &&
               isHost(channel.to)) {
      carry(channel);
      channel.latencyNs = link->latencyNs;
      channel.isSimulated = true;
      cut(message, *link);
    }
  }

  void cut(StepProgram::Queue::Message &message,
           const placement::Link &link) const {
    message.lastSliceNs = message.copyNs - link.latencyNs;
    if (!result.hasExchange || !sliceBytes || message.bytes <= *sliceBytes)
      return;
    message.slices = llvm::divideCeil(message.bytes, *sliceBytes);
    message.sliceNs = link.copyNs(*sliceBytes) - link.latencyNs;
    message.lastSliceNs =
        link.copyNs(message.bytes - (message.slices - 1) * *sliceBytes) -
        link.latencyNs;
  }

  bool isHost(int32_t index) const {
    return programs[index].spec.getKind() == "host";
  }
  bool isGpu(int32_t index) const {
    return programs[index].spec.getKind() == "cuda";
  }

  /// Which transfers may not overlap is the machine's word.
  void carry(StepProgram::Queue &channel) const {
    channel.isCarried = true;
    int32_t from = channel.from, to = channel.to, count = programs.size();
    switch (machine.linkModel) {
    case placement::LinkModel::Unlimited:
      channel.lanes = {};
      break;
    case placement::LinkModel::Parallel:
      channel.lanes = {from * count + to};
      break;
    case placement::LinkModel::Duplex:
      channel.lanes = {from, count + to};
      break;
    case placement::LinkModel::Sequential:
      channel.lanes = {from, to};
      break;
    }
  }

  ArrayRef<DeviceProgram> programs;
  const placement::Machine &machine;
  const bool hasNetwork;
  llvm::StringMap<int32_t> positionOf;
  SymbolTableCollection symbols;
  std::optional<int64_t> sliceBytes;
  int32_t device = 0;
  llvm::DenseSet<Operation *> operators;
  std::vector<std::vector<Instruction>> instructions;
  StepProgram result;
};
} // namespace

FailureOr<StepProgram>
baechi::readStepProgram(ModuleOp module, const placement::Machine &machine) {
  FailureOr<SmallVector<DeviceProgram>> programs = devicePrograms(module);
  if (failed(programs))
    return failure();
  return Reader(module, *programs, machine).run();
}
