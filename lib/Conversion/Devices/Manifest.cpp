//===- Manifest.cpp - What a compiled program says about itself -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Conversion/Devices/Manifest.h"
#include "Baechi/Analysis/DeviceProgram.h"
#include "Baechi/Analysis/MachineAttr.h"
#include "Baechi/Analysis/MessageGroups.h"
#include "Baechi/Analysis/Program.h"
#include "Baechi/Analysis/StepSimulation.h"
#include "Baechi/Dialect/Carried.h"
#include "Baechi/Dialect/CudaBlocks.h"
#include "BorderPlaces.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include <map>

using namespace mlir;
using namespace baechi;
namespace json = llvm::json;

std::string baechi::entryName(StringRef prefix, StringRef device) {
  return (prefix + "_step_" + device).str();
}

namespace {
class ManifestWriter {
public:
  ManifestWriter(ModuleOp module, StringRef prefix)
      : module(module), prefix(prefix) {}

  FailureOr<std::string> run() {
    FailureOr<SmallVector<DeviceProgram>> found = devicePrograms(module);
    if (failed(found))
      return failure();
    programs = *found;
    whole = module.lookupSymbol<func::FuncOp>(programs[0].step.getName());
    if (!whole)
      return emitError(module.getLoc())
             << "no declaration of the whole step; run --baechi-partition";
    if (failed(checkTypes()) || failed(simulate()))
      return failure();
    for (auto [index, program] : llvm::enumerate(programs))
      deviceIndex[program.name] = index;
    places.emplace(whole);

    json::Array devices, queues;
    for (DeviceProgram program : programs) {
      FailureOr<json::Object> device = writeDevice(program);
      if (failed(device))
        return failure();
      devices.push_back(std::move(*device));
    }
    for (auto &[queue, entry] : messages)
      queues.push_back(writeQueue(queue, std::move(entry)));
    if (failed(places->checkPlaces()))
      return failure();
    FailureOr<SmallVector<BorderTensor>> arguments = borderArguments(whole),
                                         results = borderResults(whole);
    if (failed(arguments) || failed(results) ||
        failed(places->checkUpdates(*arguments, *results)))
      return failure();
    json::Object manifest{
        {"format", "baechi-program"},
        {"version", 1},
        {"function", whole.getName()},
        {"devices", std::move(devices)},
        {"queues", std::move(queues)},
        {"arguments", places->writeArguments(
                          *arguments, *results,
                          LendableArguments(whole, *arguments, programs))},
        {"results", places->writeResults(*results)}};
    if (whole->hasAttr(BaechiDialect::kEnds))
      manifest["ends"] = true;
    if (module->hasAttr(kExchange)) {
      json::Object exchange;
      if (auto bytes = module->getAttrOfType<IntegerAttr>(kSliceBytes))
        exchange["slice_bytes"] = bytes.getInt();
      manifest["exchange"] = std::move(exchange);
    }
    if (auto certificate = whole->getAttrOfType<PlacementCertificateAttr>(
            BaechiDialect::kCertificate))
      manifest["predicted"] =
          json::Object{{"makespan_ns", certificate.getMakespan()},
                       {"lower_bound_ns", certificate.getLowerBound()},
                       {"lower_bound", certificate.getBound()},
                       {"single_device_ns", certificate.getSingleDevice()},
                       {"placer", certificate.getPlacer()},
                       {"winner", certificate.getWinner()},
                       {"operators", certificate.getOperators()},
                       {"groups", certificate.getGroups()}};
    if (simulated) {
      json::Value &predicted =
          manifest.try_emplace("predicted", json::Object{}).first->second;
      json::Object &told = *predicted.getAsObject();
      told["step_ns"] = simulated->makespanNs;
      if (period)
        told["period_ns"] = period->ns;
      if (LinkUse links = period ? period->links : simulated->links;
          links.waitedNs > 0) {
        told["links_used_ns"] = links.usedNs;
        told["links_waited_ns"] = links.waitedNs;
      }
    }
    std::string text;
    llvm::raw_string_ostream os(text);
    os << json::Value(std::move(manifest));
    return text;
  }

private:
  struct Queue {
    int64_t from = 0, to = 0;
    std::map<int64_t, json::Object> list; ///< by seq
  };

  json::Object writeQueue(int64_t number, Queue entry) const {
    json::Array list;
    for (auto &[seq, message] : entry.list)
      list.push_back(std::move(message));
    json::Object queue{
        {"from", entry.from}, {"to", entry.to}, {"messages", std::move(list)}};
    if (machine && module->hasAttr(kSimulatedNetwork) &&
        size_t(number) < steps.size() && steps[number].isCarried &&
        isHost(entry.from) && isHost(entry.to)) {
      const std::optional<placement::Link> &link =
          machine->link(entry.from, entry.to);
      queue["simulated_link"] =
          json::Object{{"latency_ns", link->latencyNs},
                       {"bytes_per_us", link->bytesPerUs},
                       {"lanes", json::Array(ArrayRef(steps[number].lanes))}};
    }
    return queue;
  }

  bool isHost(int64_t device) const {
    DeviceProgram program = programs[device];
    return program.spec.getKind() == "host";
  }

  /// The machine that the programs are of, device by device; nullopt where
  /// there is none.
  std::optional<placement::Machine> simulatedMachine() {
    auto attr = module->getAttrOfType<MachineAttr>(BaechiDialect::kMachine);
    if (!attr || attr.getDevices().size() != programs.size())
      return std::nullopt;
    for (auto [device, program] : llvm::zip(attr.getDevices(), programs))
      if (device.getName() != program.name)
        return std::nullopt;
    return fromAttr(attr);
  }

  /// Runs the step by the runtime's rules, and groups the messages by their
  /// starts. A step that --baechi-verify-partitioned refuses has no groups, and
  /// the plan's times.
  LogicalResult simulate() {
    SmallVector<SendOp> sends;
    SmallVector<RecvOp> recvs;
    for (DeviceProgram program : programs) {
      Block &body = program.step.getBody().front();
      llvm::append_range(sends, body.getOps<SendOp>());
      llvm::append_range(recvs, body.getOps<RecvOp>());
    }
    // Numbers from 0 without gaps, where the program is in order.
    uint64_t count = sends.size();
    llvm::DenseSet<std::pair<int64_t, int64_t>> sent;
    for (SendOp send : sends) {
      if (uint64_t(send.getQueue()) >= count ||
          uint64_t(send.getSeq()) >= count)
        return success();
      sent.insert({send.getQueue(), send.getSeq()});
    }
    if (llvm::any_of(recvs, [&](RecvOp recv) {
          return !sent.contains({recv.getQueue(), recv.getSeq()});
        }))
      return success();
    std::optional<placement::Machine> known = simulatedMachine();
    placement::Machine machine = known.value_or(placement::Machine());
    if (!known) {
      // Only the order of what each device does is wanted.
      machine.devices.resize(programs.size());
      machine.links.resize(programs.size() * programs.size());
    }
    FailureOr<StepProgram> step = readStepProgram(module, machine);
    if (failed(step))
      return failure();
    this->machine = known;
    steps = step->queues;
    if (known) {
      auto costs = machine.runtime.value_or(placement::RuntimeCosts());
      simulated = simulateStep(*step, costs);
      if (numComputing(*step) > 1 &&
          llvm::all_of(programs, [](DeviceProgram program) {
            return program.spec.getKind() == "host";
          }))
        period = simulateOverlap(*step, costs);
    }
    std::vector<std::vector<int64_t>> starts;
    for (const StepProgram::Queue &queue : step->queues)
      starts.emplace_back(queue.messages.size(), 0);
    for (SendOp send : sends)
      starts[send.getQueue()][send.getSeq()] = timeOf(send).start;
    groups = groupMessages(*step, starts);
    return success();
  }

  /// When a message is predicted to be copied.
  SimulatedInterval timeOf(SendOp send) const {
    if (simulated)
      return simulated->copies[send.getQueue()][send.getSeq()];
    return {static_cast<int64_t>(send.getStart()),
            static_cast<int64_t>(send.getEnd())};
  }

  /// A manifest describes tensors.
  LogicalResult checkTypes() {
    auto isTensor = [](Type type) {
      return isa<RankedTensorType>(type) && tensorBytes(type, false);
    };
    for (auto [index, type] : llvm::enumerate(whole.getArgumentTypes()))
      if (!isTensor(type))
        return emitError(whole.getLoc())
               << "argument " << index << " of the step has type " << type
               << "; a program's files describe tensors of static shape";
    for (auto [index, type] : llvm::enumerate(whole.getResultTypes()))
      if (!isTensor(type))
        return emitError(whole.getLoc())
               << "result " << index << " of the step has type " << type
               << "; a program's files describe tensors of static shape";
    for (DeviceProgram program : programs) {
      WalkResult sends = program.step.walk([&](SendOp send) {
        if (isTensor(send.getValue().getType()))
          return WalkResult::advance();
        send.emitOpError() << "moves a " << send.getValue().getType()
                           << "; a program's files describe tensors of static "
                              "shape";
        return WalkResult::interrupt();
      });
      if (sends.wasInterrupted())
        return failure();
    }
    return success();
  }

  FailureOr<json::Object> writeDevice(DeviceProgram program) {
    auto arena =
        program.module->getAttrOfType<ArenaAttr>(BaechiDialect::kArena);
    if (!arena)
      return emitError(program.module.getLoc())
             << "device '" << program.name
             << "' has no memory plan; run --baechi-plan-memory";
    SmallVector<std::string> names = namesOf(program.step);
    size_t next = program.step.getNumArguments();
    json::Array operators;
    SymbolTableCollection symbols;
    int64_t commands = 0; // of a GPU
    size_t device = deviceIndex.lookup(program.name);
    for (auto [position, op] : llvm::enumerate(operatorsOf(program.step))) {
      json::Object entry{{"name", names[next++]}};
      if (auto id = op->getAttrOfType<IntegerAttr>(BaechiDialect::kOperator))
        entry["id"] = id.getInt();
      if (func::FuncOp kernel = kernelOf(op, symbols)) {
        entry["kernel"] = kernel.getName();
        if (auto own = kernel->getAttrOfType<IntegerAttr>(kCudaCommands))
          commands += own.getInt();
      }
      commands += isa<CopyOp>(op);
      if (auto start = op->getAttrOfType<IntegerAttr>(BaechiDialect::kStart))
        entry["start_ns"] = start.getInt();
      if (auto cost = op->getAttrOfType<CostAttr>(BaechiDialect::kCost))
        if (auto ns =
                cost.getTimeNs().getAs<IntegerAttr>(program.spec.getKind()))
          entry["time_ns"] = ns.getInt();
      if (simulated) {
        SimulatedInterval time = simulated->operators[device][position];
        entry["start_ns"] = time.start;
        // Beside others it takes longer than what it is worth, and what a
        // timeline shows, in which a GPU runs one after the other.
        if (program.spec.getKind() != "cuda")
          entry["time_ns"] = time.end - time.start;
      }
      operators.push_back(std::move(entry));
    }
    program.step.walk([&](SendOp send) {
      Queue &queue = messages[send.getQueue()];
      queue.from = device;
      queue.to = deviceIndex.lookup(send.getTo());
      SimulatedInterval time = timeOf(send);
      json::Object &message = queue.list[send.getSeq()];
      message = json::Object{
          {"name", messageName(send, names)},
          {"bytes", *tensorBytes(send.getValue().getType(), false)},
          {"start_ns", time.start},
          {"end_ns", time.end}};
      if (auto id = send->getAttrOfType<IntegerAttr>(BaechiDialect::kOperator))
        message["operator"] = id.getInt();
      if (auto output =
              send->getAttrOfType<IntegerAttr>(BaechiDialect::kOutput))
        message["output"] = output.getInt();
      if (send.getLent())
        message["lent"] = true;
      if (send->hasAttr(kCarried))
        message["carried"] = true;
      if (auto priority = send->getAttrOfType<IntegerAttr>(kPriority))
        message["priority"] = priority.getInt();
      if (groups)
        message["group"] = (*groups)[send.getQueue()][send.getSeq()];
    });
    places->add(program.step, int64_t(device));
    json::Object made{{"name", program.name},
                      {"kind", program.spec.getKind()},
                      {"entry", entryName(prefix, program.name)},
                      {"arena_bytes", arena.getBytes()},
                      {"resident_bytes", arena.getResident()},
                      {"memory", program.spec.getMemory()},
                      {"operators", std::move(operators)}};
    if (program.spec.getKind() == "cuda") {
      // NVIDIA documents nothing; about 10 KB a node (CCCL's cache of graphs,
      // 2025) and 64 KiB (driver 470) have been seen.
      constexpr int64_t kMostOfNode = 64 << 10;
      made["commands"] = commands;
      made["graph_bytes_estimated"] = commands * kMostOfNode;
    }
    return made;
  }

  static std::string messageName(SendOp send, ArrayRef<std::string> names) {
    Value root = rootOf(send.getValue());
    if (auto argument = dyn_cast<BlockArgument>(root))
      return names[argument.getArgNumber()];
    std::string name = nameOf(send);
    return name.empty() ? "tensor" : name;
  }

  ModuleOp module;
  StringRef prefix;
  std::optional<SimulatedStep> simulated;
  std::optional<SimulatedPeriod> period;
  std::optional<placement::Machine> machine;
  std::vector<StepProgram::Queue> steps;
  func::FuncOp whole;
  SmallVector<DeviceProgram> programs;
  llvm::StringMap<int64_t> deviceIndex;
  std::map<int64_t, Queue> messages;
  std::optional<std::vector<std::vector<int64_t>>> groups;
  std::optional<BorderPlaces> places;
};
} // namespace

FailureOr<std::string> baechi::writeManifest(ModuleOp module,
                                             StringRef prefix) {
  return ManifestWriter(module, prefix).run();
}
