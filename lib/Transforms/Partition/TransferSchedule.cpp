//===- TransferSchedule.cpp - Operators and transfers in order -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TransferSchedule.h"
#include "Baechi/Analysis/InPlace.h"
#include "Baechi/Analysis/MachineAttr.h"
#include "Loans.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"
#include <queue>

using namespace mlir;
using namespace baechi;

namespace {
/// Operators first, then messages.
struct Node {
  int64_t time;
  int32_t index;
  bool operator>(const Node &other) const {
    return std::tie(time, index) > std::tie(other.time, other.index);
  }
};

StringAttr deviceAttrOf(FunctionOpInterface step, Value root) {
  if (auto argument = dyn_cast<BlockArgument>(root))
    return step.getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                             BaechiDialect::kDevice);
  return root.getDefiningOp()->getAttrOfType<StringAttr>(
      BaechiDialect::kDevice);
}

class Scheduler {
public:
  Scheduler(FunctionOpInterface step, MachineAttr machine,
            ArrayRef<std::string> copiedFrom)
      : step(step), machine(machine), copiedFrom(copiedFrom),
        operators(operatorsOf(step)) {
    for (auto [index, op] : llvm::enumerate(operators))
      indexOf[op] = index;
  }

  FailureOr<TransferSchedule> run() {
    for (DeviceSpecAttr device : machine.getDevices()) {
      schedule.deviceIndex[device.getName()] = schedule.devices.size();
      schedule.devices.push_back(device.getName());
    }
    if (failed(checkPlaceable(step)) || failed(checkPlaced()) ||
        failed(collectMessages()) || failed(collectEdges()) || failed(order()))
      return failure();
    lend();
    return std::move(schedule);
  }

private:
  /// Arguments and operators have devices, and the machine has those.
  LogicalResult checkPlaced() {
    auto check = [&](Location loc, StringAttr device,
                     const Twine &what) -> LogicalResult {
      if (!device)
        return emitError(loc) << what << "is on no device; run --baechi-place";
      if (!schedule.deviceIndex.contains(device.getValue()))
        return emitError(loc) << what << "is on '" << device.getValue()
                              << "', which the machine does not have";
      return success();
    };
    for (BlockArgument argument : step.getArguments())
      if (failed(check(argument.getLoc(), deviceAttrOf(step, argument),
                       "argument " + Twine(argument.getArgNumber()) + " ")))
        return failure();
    for (Operation *op : operators)
      if (failed(check(op->getLoc(),
                       op->getAttrOfType<StringAttr>(BaechiDialect::kDevice),
                       "'" + op->getName().getStringRef() + "' ")))
        return failure();
    return success();
  }

  LogicalResult collectMessages() {
    for (BlockArgument argument : step.getArguments())
      if (failed(
              addMessages(argument.getLoc(), ValueRange(argument),
                          step.getArgAttrOfType<ArrayAttr>(
                              argument.getArgNumber(), BaechiDialect::kSends))))
        return failure();
    for (Operation *op : operators)
      if (failed(
              addMessages(op->getLoc(), op->getResults(),
                          op->getAttrOfType<ArrayAttr>(BaechiDialect::kSends))))
        return failure();
    return success();
  }

  LogicalResult addMessages(Location loc, ValueRange results,
                            ArrayAttr transfers) {
    if (!transfers)
      return success();
    for (auto transfer : transfers.getAsRange<TransferAttr>()) {
      if (transfer.getResult() >= static_cast<int64_t>(results.size()))
        return emitError(loc) << "a transfer of result " << transfer.getResult()
                              << ", there are " << results.size();
      for (StringRef end : {transfer.getFrom(), transfer.getTo()})
        if (!schedule.deviceIndex.contains(end))
          return emitError(loc) << "a transfer names '" << end
                                << "', which the machine does not have";
      Value value = results[transfer.getResult()];
      int32_t to = schedule.deviceIndex.lookup(transfer.getTo());
      int32_t id = schedule.messages.size();
      if (!arrival.try_emplace({value, to}, id).second)
        return emitError(loc)
               << "result " << transfer.getResult() << " is moved to '"
               << transfer.getTo() << "' twice";
      schedule.messages.push_back(
          {value, schedule.deviceIndex.lookup(transfer.getFrom()), to,
           transfer.getStart(), transfer.getEnd()});
    }
    return success();
  }

  /// What makes \p root available on \p device: a node, none for an argument
  /// that lives there, failure when nothing does.
  FailureOr<std::optional<int32_t>> availability(Value root, int32_t device) {
    if (schedule.deviceIndex.lookup(deviceAttrOf(step, root).getValue()) ==
        device) {
      Operation *producer = root.getDefiningOp();
      return producer ? std::optional<int32_t>(indexOf.lookup(producer))
                      : std::nullopt;
    }
    auto it = arrival.find({root, device});
    if (it == arrival.end())
      return failure();
    return std::optional<int32_t>(operators.size() + it->second);
  }

  LogicalResult addAvailability(Location loc, Value root, int32_t device,
                                int32_t node) {
    FailureOr<std::optional<int32_t>> from = availability(root, device);
    if (failed(from))
      return emitError(loc)
             << "reads a tensor on '" << schedule.devices[device]
             << "' that no planned transfer brings there; run --baechi-place";
    if (*from)
      addEdge(**from, node);
    return success();
  }

  void addEdge(int32_t from, int32_t to) {
    next[from].push_back(to);
    ++waits[to];
  }

  LogicalResult collectEdges() {
    size_t nodes = operators.size() + schedule.messages.size();
    next.resize(nodes);
    waits.resize(nodes);
    for (auto [index, op] : llvm::enumerate(operators))
      for (Value value : valuesReadBy(op)) {
        Value root = rootOf(value);
        Operation *producer = root.getDefiningOp();
        if (producer && !indexOf.contains(producer))
          continue; // a constant
        if (failed(addAvailability(op->getLoc(), root, schedule.deviceOf(op),
                                   index)))
          return failure();
      }
    for (auto [id, message] : llvm::enumerate(schedule.messages))
      if (failed(addAvailability(message.value.getLoc(), message.value,
                                 message.from, operators.size() + id)))
        return failure();
    for (const InPlaceUpdate &update : inPlaceUpdates(step))
      for (Operation *reader : readersOf(update.previous, update.updater))
        addEdge(indexOf.lookup(reader), indexOf.lookup(update.updater));
    Operation *before = nullptr;
    for (Operation *op : operatorsWithEffects(step)) {
      if (before && schedule.deviceOf(before) != schedule.deviceOf(op)) {
        InFlightDiagnostic diag = op->emitOpError()
                                  << "has side effects, as an operator on "
                                     "another device; place the program with "
                                     "--baechi-place";
        diag.attachNote(before->getLoc()) << "the other operator";
        return failure();
      }
      if (before)
        addEdge(indexOf.lookup(before), indexOf.lookup(op));
      before = op;
    }
    return success();
  }

  int64_t startOf(Operation *op) const {
    auto start = op->getAttrOfType<IntegerAttr>(BaechiDialect::kStart);
    return start ? start.getInt() : 0;
  }

  int64_t endOf(Operation *op, int32_t device) const {
    auto cost = op->getAttrOfType<CostAttr>(BaechiDialect::kCost);
    if (!cost)
      return startOf(op);
    StringRef kind = machine.getDevices()[device].getKind();
    auto ns = cost.getTimeNs().getAs<IntegerAttr>(kind);
    if (!ns)
      ns = cost.getTimeNs().getAs<IntegerAttr>("");
    return startOf(op) + (ns ? ns.getInt() : 0);
  }

  /// Kahn's algorithm, earliest planned time first.
  LogicalResult order() {
    int32_t count = operators.size();
    std::priority_queue<Node, std::vector<Node>, std::greater<>> ready;
    auto push = [&](int32_t node) {
      ready.push({node < count ? startOf(operators[node])
                               : schedule.messages[node - count].start,
                  node});
    };
    for (int32_t node = 0, n = waits.size(); node < n; ++node)
      if (waits[node] == 0)
        push(node);
    schedule.operators.resize(schedule.devices.size());
    SmallVector<Message> ordered;
    int32_t done = 0;
    while (!ready.empty()) {
      int32_t node = ready.top().index;
      ready.pop();
      ++done;
      if (node < count) {
        Operation *op = operators[node];
        rankOf[op] = done;
        schedule.operators[schedule.deviceOf(op)].push_back(op);
      } else {
        Message message = schedule.messages[node - count];
        message.sendAt = schedule.operators[message.from].size();
        message.recvAt = schedule.operators[message.to].size();
        ordered.push_back(message);
      }
      for (int32_t successor : next[node])
        if (--waits[successor] == 0)
          push(successor);
    }
    if (done != static_cast<int32_t>(waits.size()))
      return emitError(step.getLoc())
             << "the planned transfers wait for each other in a circle";
    schedule.messages = std::move(ordered);
    offerEarly();
    return success();
  }

  /// The operator that runs when a transfer starts began before it: offer the
  /// message, and post its buffer, before that operator. Neither waits, so
  /// doing them earlier than the global order says is always safe.
  void offerEarly() {
    llvm::MapVector<std::pair<int32_t, int32_t>, int64_t> length;
    for (Message &message : schedule.messages)
      length[{message.from, message.to}] = 0;
    SmallVector<std::pair<int32_t, int32_t>> pairs;
    for (auto &entry : length)
      pairs.push_back(entry.first);
    llvm::sort(pairs);
    llvm::DenseMap<std::pair<int32_t, int32_t>, std::pair<int32_t, int32_t>>
        previous;
    llvm::DenseMap<Operation *, int32_t> positionOf;
    for (ArrayRef<Operation *> list : schedule.operators)
      for (auto [position, op] : llvm::enumerate(list))
        positionOf[op] = position;
    for (Message &message : schedule.messages) {
      std::pair<int32_t, int32_t> pair{message.from, message.to};
      message.queue = llvm::find(pairs, pair) - pairs.begin();
      message.seq = length[pair]++;
      auto running = [&](int32_t device) -> int32_t {
        ArrayRef<Operation *> list = schedule.operators[device];
        return std::partition_point(list.begin(), list.end(),
                                    [&](Operation *op) {
                                      return endOf(op, device) <= message.start;
                                    }) -
               list.begin();
      };
      // Both ends keep the queue's order.
      auto &[lastSend, lastRecv] = previous[pair];
      int32_t earliest = lastSend;
      Operation *producer = message.value.getDefiningOp();
      bool forwarded =
          deviceAttrOf(step, message.value) != schedule.devices[message.from];
      if (forwarded)
        earliest = message.sendAt;
      else if (producer)
        earliest = std::max(earliest, positionOf.lookup(producer) + 1);
      message.sendAt = lastSend =
          std::min(message.sendAt, std::max(earliest, running(message.from)));
      message.recvAt = lastRecv =
          std::min(message.recvAt, std::max(lastRecv, running(message.to)));
    }
  }

  /// A tensor that is passed on by who received it is copied: its sender would
  /// not know when the last device gives it back. So is what its last reader
  /// changes, which would copy it itself (Loans.h).
  void lend() {
    placement::Machine links = fromAttr(machine);
    SymbolTableCollection symbols;
    llvm::DenseSet<std::pair<Value, int32_t>> passedOn;
    for (const Message &message : schedule.messages)
      if (message.from != schedule.deviceOf(message.value))
        passedOn.insert({message.value, message.from});
    SmallVector<llvm::DenseMap<Value, int32_t>> lastReader(
        schedule.devices.size());
    /// The latest start among a device's first operators.
    SmallVector<SmallVector<int64_t>> latest(schedule.devices.size());
    for (auto [list, last, starts] :
         llvm::zip(schedule.operators, lastReader, latest))
      for (auto [position, op] : llvm::enumerate(list)) {
        for (Value value : valuesReadBy(op))
          last[rootOf(value)] = position;
        starts.push_back(
            std::max(startOf(op), starts.empty() ? 0 : starts.back()));
      }
    for (Message &message : schedule.messages) {
      const auto &last = lastReader[message.to];
      auto reader = last.find(message.value);
      const auto &link = links.link(message.from, message.to);
      if (!link || !link->lends || reader == last.end() ||
          message.from != schedule.deviceOf(message.value) ||
          passedOn.contains({message.value, message.to}) ||
          llvm::is_contained(copiedFrom, schedule.devices[message.from]))
        continue;
      Operation *op = schedule.operators[message.to][reader->second];
      if (changes(op, message.value, symbols))
        continue;
      message.lent = true;
      message.giveBackAt = reader->second + 1;
      message.end = std::max(message.end, endOf(op, message.to));
      ArrayRef<Operation *> list = schedule.operators[message.from];
      int32_t rank = rankOf.lookup(op);
      const auto *later =
          std::partition_point(list.begin(), list.end(), [&](Operation *of) {
            return rankOf.lookup(of) < rank;
          });
      if (later != list.begin())
        message.end = std::max(
            message.end, latest[message.from][later - list.begin() - 1] + 1);
    }
  }

  FunctionOpInterface step;
  MachineAttr machine;
  ArrayRef<std::string> copiedFrom;
  SmallVector<Operation *> operators;
  /// Positions in the global order.
  llvm::DenseMap<Operation *, int32_t> rankOf;
  llvm::DenseMap<Operation *, int32_t> indexOf;
  llvm::DenseMap<std::pair<Value, int32_t>, int32_t> arrival;
  std::vector<SmallVector<int32_t>> next;
  std::vector<int32_t> waits;
  TransferSchedule schedule;
};
} // namespace

int32_t TransferSchedule::deviceOf(Operation *op) const {
  return deviceIndex.lookup(
      op->getAttrOfType<StringAttr>(BaechiDialect::kDevice).getValue());
}

int32_t TransferSchedule::deviceOf(Value root) const {
  auto argument = dyn_cast<BlockArgument>(root);
  if (!argument)
    return deviceOf(root.getDefiningOp());
  auto step = cast<FunctionOpInterface>(argument.getOwner()->getParentOp());
  return deviceIndex.lookup(deviceAttrOf(step, root).getValue());
}

FailureOr<TransferSchedule>
baechi::scheduleTransfers(FunctionOpInterface step, MachineAttr machine,
                          ArrayRef<std::string> copiedFrom) {
  return Scheduler(step, machine, copiedFrom).run();
}
