//===- StepSimulation.cpp - A step as the runtime runs it -------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/StepSimulation.h"
#include "Baechi/Runtime/Rules.h"
#include "SimulatedCarrier.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>
#include <limits>
#include <queue>
#include <tuple>

using namespace baechi;
using Kind = Instruction::Kind;

namespace {
constexpr int64_t unknown = -1;

struct Slot {
  bool sent = false, received = false;
  int64_t readyAt = unknown; ///< of what a simulated link moves
  /// When its copy ends, or it is given back; unknown while nobody has begun.
  int64_t doneAt = unknown;
};

struct Device {
  size_t next = 0;   ///< the instruction
  double leftNs = 0; ///< of an operator that takes turns with others
  /// Of what it computes alone.
  int64_t busyUntil = 0;
  /// Of what it is at, the time that the carrier has taken.
  int64_t stolenNs = 0;
  /// Since when it waits for the message of its next instruction, and has
  /// nothing to copy meanwhile.
  int64_t waitsSince = unknown;
};

class Simulation {
public:
  Simulation(const StepProgram &program, const placement::RuntimeCosts &costs)
      : program(program), costs(costs), devices(program.devices.size()) {
    step.operators.resize(devices.size());
    step.copyNs.resize(devices.size());
    firstOpen.resize(program.queues.size());
    for (const StepProgram::Queue &queue : program.queues) {
      slots.emplace_back(queue.messages.size());
      step.copies.emplace_back(queue.messages.size());
    }
    int computing = 0, onHost = 0, copying = 0;
    for (auto [number, instructions] : llvm::enumerate(program.devices)) {
      copying += isPool(number) && !instructions.empty();
      auto first = llvm::find_if(instructions, [](const Instruction &i) {
        return i.kind == Kind::Operator;
      });
      if (isPool(number) || first == instructions.end())
        continue;
      ++computing;
      onHost += first->ofGpu < 0;
    }
    several = computing + copying > 1;
    shared = onHost > 1;
    takeTurns = costs.cores > 0 && onHost > costs.cores;
    onCore.resize(takeTurns ? costs.cores : 0);
  }

  std::optional<SimulatedStep> run() {
    for (size_t device = 0; device < devices.size(); ++device)
      ready.push({0, device});
    while (!ready.empty() || !atWork.empty()) {
      if (atWork.empty() ||
          (!ready.empty() && ready.top().first < firstEnd().first)) {
        auto [now, device] = ready.top();
        ready.pop();
        goTo(now);
        advance(device, now);
      } else {
        auto [now, device] = firstEnd();
        goTo(now);
        finish(device, now);
      }
    }
    for (auto [device, instructions] : llvm::zip(devices, program.devices))
      if (device.next < instructions.size())
        return std::nullopt;
    step.makespanNs += costs.startNs(several);
    addWaits();
    return std::move(step);
  }

private:
  bool isPool(size_t index) const {
    return index < program.isPool.size() && program.isPool[index];
  }

  /// The device does one thing at \p now. Others that are ready are not
  /// earlier, so all that was offered by now is known.
  void advance(size_t index, int64_t now) {
    if (index == devices.size())
      return board(now);
    if (index > devices.size())
      return bring(now);
    Device &device = devices[index];
    if (device.stolenNs > 0)
      return resume(index, now);
    llvm::ArrayRef<Instruction> instructions = program.devices[index];
    if (device.next == instructions.size()) {
      step.makespanNs = std::max(step.makespanNs, now);
      return;
    }
    const Instruction &instruction = instructions[device.next];
    if (instruction.ofLastStep) // whose end awaited it
      return goOn(index, now);
    if (instruction.ofGpu >= 0)
      return replay(index, now);
    switch (instruction.kind) {
    case Kind::Operator: {
      int64_t ns = instruction.ns;
      if (shared && !isPool(index))
        ns = ns * costs.sharedPercent / 100;
      step.operators[index].push_back({now, now + ns});
      if (!takeTurns || isPool(index))
        return compute(index, now + ns + costs.operatorNs);
      device.leftNs = ns;
      atWork.push_back(index);
      ++onCore[coreOf(index)];
      return;
    }
    case Kind::LocalCopy:
      return compute(index, now + instruction.ns);
    case Kind::Send:
    case Kind::Recv:
      return offer(index, now, instruction);
    case Kind::AwaitSend:
    case Kind::AwaitRecv:
      return await(index, now, instruction);
    case Kind::GiveBack:
      slots[instruction.queue][instruction.seq].doneAt = now;
      wake(program.queues[instruction.queue].from, now);
      return goOn(index, now);
    }
  }

  /// A GPU does what it has to do until the next message.
  void replay(size_t index, int64_t now) {
    llvm::ArrayRef<Instruction> run = program.devices[index];
    run = run.drop_front(devices[index].next)
              .take_while([](const Instruction &i) { return i.ofGpu >= 0; });
    std::vector<GpuOperator> operators;
    for (const Instruction &instruction : run)
      operators.push_back(program.ofGpus[instruction.ofGpu]);
    int64_t end = now;
    for (auto [instruction, time] :
         llvm::zip_equal(run, simulateGpuRun(operators))) {
      end = std::max(end, now + time.end);
      if (instruction.kind == Kind::Operator)
        step.operators[index].push_back({now + time.start, now + time.end});
    }
    devices[index].next += run.size() - 1;
    goOn(index, end);
  }

  /// The runtime pins the devices' threads so.
  size_t coreOf(size_t index) const { return index % onCore.size(); }

  /// The operator that ends next, if none begins until then.
  std::pair<int64_t, size_t> firstEnd() const {
    std::pair<int64_t, size_t> first{std::numeric_limits<int64_t>::max(), 0};
    for (size_t index : atWork)
      first =
          std::min(first, {clock + int64_t(std::ceil(devices[index].leftNs *
                                                     onCore[coreOf(index)])),
                           index});
    return first;
  }

  /// Operators on one core have equal shares of it.
  void goTo(int64_t now) {
    for (size_t index : atWork)
      devices[index].leftNs -= double(now - clock) / onCore[coreOf(index)];
    clock = now;
  }

  void finish(size_t index, int64_t now) {
    llvm::erase(atWork, index);
    --onCore[coreOf(index)];
    step.operators[index].back().end = now;
    goOn(index, now + costs.operatorNs);
  }

  void compute(size_t index, int64_t until) {
    devices[index].busyUntil = until;
    goOn(index, until);
  }

  /// The carrier had its processor for a part of the time.
  void resume(size_t index, int64_t now) {
    Device &device = devices[index];
    int64_t end = now + std::exchange(device.stolenNs, 0);
    if (program.devices[index][device.next - 1].kind == Kind::Operator)
      step.operators[index].back().end += end - now;
    device.busyUntil = end;
    ready.push({end, index});
  }

  void goOn(size_t index, int64_t at) {
    ++devices[index].next;
    ready.push({at, index});
  }

  void offer(size_t index, int64_t now, const Instruction &instruction) {
    Slot &slot = slots[instruction.queue][instruction.seq];
    bool sends = instruction.kind == Kind::Send;
    (sends ? slot.sent : slot.received) = true;
    const StepProgram::Queue &queue = program.queues[instruction.queue];
    if (!queue.isCarried || queue.messages[instruction.seq].lent) {
      wake(sends ? queue.to : queue.from, now);
    } else if (slot.sent && slot.received) {
      const auto &message = queue.messages[instruction.seq];
      slot.readyAt = now;
      bool isOrdered = program.hasExchange;
      waiting.push_back({isOrdered ? message.step : 0,
                         isOrdered ? message.priority : message.plannedNs,
                         isOrdered ? now : 0, instruction.queue,
                         instruction.seq, message.slices});
      board(now);
    }
    goOn(index, now);
  }

  /// Gives messages of simulated links that wait the lanes that are free.
  void board(int64_t now) {
    // Slices that have arrived: others may go before the next ones.
    llvm::erase_if(moving, [&](const std::pair<int64_t, Waiting> &slice) {
      if (slice.first > now)
        return false;
      waiting.push_back(slice.second);
      return true;
    });
    llvm::sort(waiting);
    llvm::erase_if(waiting, [&](const Waiting &message) {
      auto [of, urgency, offered, number, seq, slices] = message;
      const StepProgram::Queue &queue = program.queues[number];
      if (llvm::any_of(queue.lanes,
                       [&](int32_t lane) { return freeAt[lane] > now; }))
        return false;
      const auto &info = queue.messages[seq];
      bool isFirst = slices == info.slices;
      int64_t end = now + (slices > 1 ? info.sliceNs : info.lastSliceNs);
      int64_t arrival = end + queue.latencyNs;
      for (int32_t lane : queue.lanes)
        freeAt[lane] = end;
      SimulatedInterval &copy = step.copies[number][seq];
      copy = {isFirst ? now : copy.start, arrival};
      ready.push({end, devices.size()});
      if (slices > 1) {
        moving.push_back(
            {end, {of, urgency, offered, number, seq, slices - 1}});
        return true;
      }
      for (int32_t lane : queue.lanes) {
        step.links.usedNs += info.copyNs - queue.latencyNs;
        waits[lane].emplace_back(slots[number][seq].readyAt, end);
      }
      if (queue.isSimulated && program.carrierBytesPerUs > 0) {
        carrier.add(arrival, number, seq);
        ready.push({arrival, devices.size() + 1});
      } else {
        deliver(number, seq, arrival);
      }
      return true;
    });
  }

  void deliver(int32_t number, int32_t seq, int64_t arrival) {
    const StepProgram::Queue &queue = program.queues[number];
    slots[number][seq].doneAt = arrival;
    wakeFor(queue.from, number, seq, arrival);
    wakeFor(queue.to, number, seq, arrival);
  }

  /// The carrier copies what has passed its link.
  void bring(int64_t now) {
    while (auto next = carrier.next(now)) {
      auto [number, seq] = *next;
      const auto &message = program.queues[number].messages[seq];
      int64_t ns =
          program.carrierNs + message.bytes * 1000 / program.carrierBytesPerUs;
      int64_t end = step.copies[number][seq].end = carrier.copy(now, ns);
      if (takeTurns) {
        auto on = [&](size_t core) {
          return [=, this](size_t index) { return coreOf(index) == core; };
        };
        if (auto core = carrier.disturbs(
                onCore.size(), [&](size_t core) { return onCore[core] > 0; }))
          devices[*llvm::find_if(atWork, on(*core))].leftNs += double(ns);
      } else if (auto index = carrier.disturbs(devices.size(), [&](size_t i) {
                   return devices[i].busyUntil > now;
                 })) {
        devices[*index].stolenNs += ns;
      }
      deliver(number, seq, end);
    }
  }

  /// Of each lane, the time in which anything waited for it.
  void addWaits() {
    for (auto &[lane, spans] : waits) {
      llvm::sort(spans);
      int64_t counted = 0;
      for (auto [from, to] : spans) {
        step.links.waitedNs +=
            std::max<int64_t>(0, to - std::max(from, counted));
        counted = std::max(counted, to);
      }
    }
  }

  /// A device that waits looks again: something was offered or copied.
  void wake(size_t index, int64_t now) {
    Device &device = devices[index];
    if (device.waitsSince == unknown)
      return;
    // Who takes turns sleeps at once.
    bool asleep = takeTurns || now - device.waitsSince > runtime::awakeNs;
    ready.push({now + (asleep ? costs.wakeNs : 0), index});
    device.waitsSince = unknown;
  }

  /// A device that waits for just this one: what arrives before must not be
  /// waited past.
  void wakeFor(size_t index, int32_t queue, int32_t seq, int64_t arrival) {
    const Device &device = devices[index];
    if (device.waitsSince == unknown)
      return;
    const Instruction &awaited = program.devices[index][device.next];
    if (awaited.queue == queue && awaited.seq == seq)
      wake(index, arrival);
  }

  void await(size_t index, int64_t now, const Instruction &instruction) {
    Slot &slot = slots[instruction.queue][instruction.seq];
    if (slot.doneAt != unknown)
      return goOn(index, std::max(now, slot.doneAt));
    const auto &message =
        program.queues[instruction.queue].messages[instruction.seq];
    if (message.lent && slot.sent && instruction.kind == Kind::AwaitRecv) {
      int64_t end = now + message.copyNs;
      step.copies[instruction.queue][instruction.seq] = {now, end};
      return goOn(index, end);
    }
    if (slot.sent && slot.received &&
        !program.queues[instruction.queue].isCarried)
      return goOn(index, copy(index, now, instruction.queue, instruction.seq));
    if (std::optional<int64_t> end = copyAhead(index, now)) {
      ready.push({*end, index});
      return;
    }
    devices[index].waitsSince = now;
  }

  int64_t copy(size_t index, int64_t now, int32_t queue, int32_t seq) {
    const StepProgram::Queue &channel = program.queues[queue];
    int64_t end = now + channel.messages[seq].copyNs;
    slots[queue][seq].doneAt = end;
    step.copies[queue][seq] = {now, end};
    step.copyNs[index] += end - now;
    bool sends = size_t(channel.from) == index;
    wake(sends ? channel.to : channel.from, end);
    return end;
  }

  /// Copies another message to a device that waits; when that ends. A pool
  /// copies what it sends, too, and whatever its size.
  std::optional<int64_t> copyAhead(size_t index, int64_t now) {
    for (auto [number, queue] : llvm::enumerate(program.queues)) {
      bool isPushed = size_t(queue.from) == index && isPool(index);
      if ((size_t(queue.to) != index && !isPushed) || queue.isCarried)
        continue;
      std::vector<Slot> &messages = slots[number];
      size_t &open = firstOpen[number];
      while (open < messages.size() && messages[open].doneAt != unknown)
        ++open;
      size_t end = std::min(messages.size(), open + runtime::messagesAhead);
      for (size_t seq = open; seq < end; ++seq) {
        const Slot &slot = messages[seq];
        if (slot.sent && slot.received && slot.doneAt == unknown &&
            (isPool(index) || queue.messages[seq].bytes <= runtime::bytesAhead))
          return copy(index, now, number, seq);
      }
    }
    return std::nullopt;
  }

  /// The earliest first, then the first device.
  using Ready = std::pair<int64_t, size_t>;

  const StepProgram &program;
  const placement::RuntimeCosts &costs;
  /// Several devices compute, or copy as pools: threads that a step wakes.
  bool several = false;
  /// Several of them on the host.
  bool shared = false;
  /// These outnumber the cores.
  bool takeTurns = false;
  int64_t clock = 0;
  std::vector<size_t> atWork; ///< devices that take turns
  std::vector<int> onCore;    ///< a core each: how many are at work
  std::vector<Device> devices;
  std::vector<std::vector<Slot>> slots;
  /// Of simulated links: an exchange's step, the plan's start or the priority,
  /// when it was offered, queue, number and slices left of what waits for a
  /// lane; slices on their way that others follow, by their ends; and when
  /// each lane is free.
  using Waiting = std::tuple<int, int64_t, int64_t, int32_t, int32_t, int64_t>;
  std::vector<Waiting> waiting;
  std::vector<std::pair<int64_t, Waiting>> moving;
  llvm::DenseMap<int32_t, int64_t> freeAt;
  SimulatedCarrier carrier;
  /// Of each lane: when messages were ready, and had arrived.
  llvm::DenseMap<int32_t, std::vector<std::pair<int64_t, int64_t>>> waits;
  /// Of each queue: all messages before this one are copied.
  std::vector<size_t> firstOpen;
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
  SimulatedStep step;
};
} // namespace

std::optional<SimulatedStep>
baechi::simulateStep(const StepProgram &program,
                     const placement::RuntimeCosts &costs) {
  return Simulation(program, costs).run();
}
