//===- LimitedSchedule.cpp - A schedule within the memories -----*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Memory/LimitedSchedule.h"
#include "Memory/Certificate.h"

#include <algorithm>

using namespace baechi::placement;
using namespace baechi::placement::memory;

namespace {

/// Steps by urgency. One that is started out of turn stays until it comes up.
class ReadyQueue {
public:
  void push(int64_t priority, Step s) {
    heap.emplace_back(priority, -s);
    std::push_heap(heap.begin(), heap.end());
  }
  void pop() {
    std::pop_heap(heap.begin(), heap.end());
    heap.pop_back();
  }
  int64_t topPriority() const { return heap.front().first; }
  Step top() const { return -heap.front().second; }
  bool empty() const { return heap.empty(); }

private:
  std::vector<std::pair<int64_t, Step>> heap; ///< the larger id comes later
};

class LimitedScheduler {
public:
  LimitedScheduler(const Steps &steps, std::span<const Step> order,
                   const LimitedOptions &options);
  Schedule run();

private:
  struct Event {
    int64_t at;
    Step step;
    bool isSignal; ///< a control edge's, for node `step`; else the step's end
    bool operator<(const Event &other) const {
      return std::tie(at, isSignal, step) >
             std::tie(other.at, other.isSignal, other.step);
    }
  };
  /// What one step at a time starts from: the runs of a device, or the
  /// transfers from one device to another.
  struct Lane {
    ReadyQueue ready;
    /// Nothing could start when the device was at this version.
    int64_t triedAt = -1;
  };
  enum State : uint8_t { Waiting, Ready, Started };

  bool computeTails();
  template <typename Visit>
  void forEachHop(int32_t tensor, int32_t to, Visit visit) const;
  void push(Event event);
  Lane &laneOf(Step s);
  void makeReady(Step s);
  void arrive(Step s);
  bool start(Step s);
  bool startFrom(Lane &lane, int32_t d);
  void startTransfers();
  void startRuns();
  void finish(Step s);

  const Steps &steps;
  const Model &model;
  const LimitedOptions &options;
  int32_t numDevices;
  Certificate certificate;
  Levels levels;
  Schedule schedule;
  int64_t now = 0;
  int32_t left;
  bool beyond = false;
  std::vector<int64_t> tail;     ///< per step: the longest path to the end
  std::vector<int64_t> priority; ///< per step
  std::vector<int32_t> waiting;  ///< per step: what it still waits for
  std::vector<State> state;      ///< per step
  std::vector<Lane> runs;        ///< per device
  std::vector<Lane> transfers;   ///< [from * numDevices + to]
  std::vector<int32_t> pending;  ///< the lanes of transfers that are not empty
  /// Per device, counts what may let a step start there that could not before.
  std::vector<int64_t> version;
  std::vector<uint8_t> computing;
  BusyLinks links;
  std::vector<Event> events;
  std::vector<Step> passedOver;
};

LimitedScheduler::LimitedScheduler(const Steps &steps,
                                   std::span<const Step> order,
                                   const LimitedOptions &options)
    : steps(steps), model(steps.model), options(options),
      numDevices(model.numDevices), certificate(steps, order), levels(steps),
      left(steps.size()), tail(steps.size(), 0), waiting(steps.size(), 0),
      state(steps.size(), Waiting), runs(numDevices),
      transfers(static_cast<size_t>(numDevices) * numDevices),
      version(numDevices, 0), computing(numDevices, 0), links(*model.machine) {
  schedule.start.assign(model.numNodes, 0);
  for (Step s = 0; s < steps.size(); ++s)
    steps.forEachPrevious(s, [&](Step) { ++waiting[s]; });
}

/// Calls \p visit for the transfers that bring a tensor to a device, the last
/// first.
template <typename Visit>
void LimitedScheduler::forEachHop(int32_t tensor, int32_t to,
                                  Visit visit) const {
  for (int32_t home = steps.homeOf(tensor); to != home;) {
    Step s = steps.transferTo(tensor, to);
    visit(s);
    to = steps.transfer(s).from;
  }
}

/// False when two devices that must talk cannot.
bool LimitedScheduler::computeTails() {
  for (int32_t k = model.numNodes; k-- > 0;) {
    int32_t i = model.order[k], d = steps.device[i];
    auto [begin, end] = model.tensorsOf(i);
    for (int32_t t = begin; t < end; ++t) {
      for (int32_t user : model.users[t]) {
        if (!model.reaches(d, steps.device[user]))
          return false;
        int64_t path = tail[user];
        forEachHop(t, steps.device[user], [&](Step s) {
          path +=
              model.transferNs(t, steps.transfer(s).from, steps.transfer(s).to);
          tail[s] = std::max(tail[s], path);
        });
        tail[i] = std::max(tail[i], path);
      }
    }
    for (int32_t user : model.controlUsers[i]) {
      int32_t e = steps.device[user];
      if (e != d && !model.linked(d, e))
        return false;
      tail[i] =
          std::max(tail[i], tail[user] + (e == d ? 0 : model.latencyNs(d, e)));
    }
    tail[i] += model.timeOf(i, d);
  }
  priority = tail;
  if (options.priority.empty())
    return true;
  std::copy(options.priority.begin(), options.priority.end(), priority.begin());
  std::fill(priority.begin() + model.numNodes, priority.end(),
            std::numeric_limits<int64_t>::min());
  for (int32_t t = 0; t < model.numTensors; ++t)
    for (int32_t user : model.users[t])
      forEachHop(t, steps.device[user], [&](Step s) {
        priority[s] = std::max(priority[s], options.priority[user]);
      });
  return true;
}

void LimitedScheduler::push(Event event) {
  events.push_back(event);
  std::push_heap(events.begin(), events.end());
}

LimitedScheduler::Lane &LimitedScheduler::laneOf(Step s) {
  if (steps.isRun(s))
    return runs[steps.device[s]];
  auto [tensor, from, to] = steps.transfer(s);
  return transfers[from * numDevices + to];
}

void LimitedScheduler::makeReady(Step s) {
  state[s] = Ready;
  Lane &lane = laneOf(s);
  if (!steps.isRun(s) && lane.ready.empty())
    pending.push_back(static_cast<int32_t>(&lane - transfers.data()));
  lane.ready.push(priority[s], s);
  lane.triedAt = -1;
}

void LimitedScheduler::arrive(Step s) {
  if (--waiting[s] == 0)
    makeReady(s);
}

/// Starts a step that is ready and whose device or link is free, if its bytes
/// are free as well and the rest can still finish.
bool LimitedScheduler::start(Step s) {
  int32_t d = steps.deviceOf(s);
  if (levels.need(s) > model.deviceMemory(d) - levels.level[d] ||
      !certificate.take(s))
    return false;
  state[s] = Started;
  levels.begin(s);
  int64_t ns = 0;
  if (steps.isRun(s)) {
    ns = model.timeOf(s, d);
    computing[d] = 1;
    schedule.start[s] = now;
  } else {
    auto [tensor, from, to] = steps.transfer(s);
    ns = model.transferNs(tensor, from, to);
    links.set(model.machine->linkModel, from, to, true);
    schedule.transfers.push_back({tensor, from, to, now, now + ns});
    ++version[from];
  }
  ++version[d];
  beyond |= now > options.cutoff - tail[s];
  push({now + ns, s, false});
  return true;
}

/// Starts the most urgent step of a lane that can; \p d is where its steps
/// allocate.
bool LimitedScheduler::startFrom(Lane &lane, int32_t d) {
  if (lane.triedAt == version[d])
    return false;
  bool started = false;
  passedOver.clear();
  while (!lane.ready.empty() && !started &&
         static_cast<int32_t>(passedOver.size()) < options.depth) {
    Step s = lane.ready.top();
    lane.ready.pop();
    if (state[s] == Started)
      continue;
    started = start(s);
    if (!started)
      passedOver.push_back(s);
  }
  for (Step s : passedOver)
    lane.ready.push(priority[s], s);
  if (!started) {
    Step next = certificate.next(d);
    started = next >= 0 && state[next] == Ready && &laneOf(next) == &lane &&
              start(next);
  }
  if (!started)
    lane.triedAt = version[d];
  return started;
}

void LimitedScheduler::startTransfers() {
  for (;;) {
    // The lane with the most urgent transfer of those whose links are free.
    Lane *best = nullptr;
    int32_t bestTo = 0;
    for (size_t k = 0; k < pending.size();) {
      Lane &lane = transfers[pending[k]];
      int32_t from = pending[k] / numDevices, to = pending[k] % numDevices;
      if (lane.ready.empty()) {
        pending[k] = pending.back();
        pending.pop_back();
        continue;
      }
      ++k;
      if (!links.areFree(model.machine->linkModel, from, to) ||
          lane.triedAt == version[to])
        continue;
      if (!best || std::pair(best->ready.topPriority(), -best->ready.top()) <
                       std::pair(lane.ready.topPriority(), -lane.ready.top())) {
        best = &lane;
        bestTo = to;
      }
    }
    if (!best)
      return;
    startFrom(*best, bestTo);
  }
}

void LimitedScheduler::startRuns() {
  for (int32_t d = 0; d < numDevices; ++d)
    if (!computing[d] && !runs[d].ready.empty())
      startFrom(runs[d], d);
}

void LimitedScheduler::finish(Step s) {
  --left;
  levels.end(s);
  ++version[steps.deviceOf(s)];
  if (steps.isRun(s)) {
    computing[steps.device[s]] = 0;
  } else {
    auto [tensor, from, to] = steps.transfer(s);
    links.set(model.machine->linkModel, from, to, false);
    ++version[from];
  }
  steps.forEachBorn(s, [&](int32_t h) {
    steps.forEachUse(h, [&](Step user) { arrive(user); });
  });
  if (!steps.isRun(s))
    return;
  int32_t d = steps.device[s];
  for (int32_t user : model.controlUsers[s]) {
    if (int32_t e = steps.device[user]; e == d)
      arrive(user);
    else
      push({now + model.latencyNs(d, e), user, true});
  }
}

Schedule LimitedScheduler::run() {
  if (!certificate.fits() || !computeTails())
    return {};
  for (Step s = 0; s < steps.size(); ++s)
    if (waiting[s] == 0)
      makeReady(s);
  for (;;) {
    startTransfers();
    startRuns();
    if (beyond || events.empty())
      break;
    now = events.front().at;
    while (!events.empty() && events.front().at == now) {
      Event event = events.front();
      std::pop_heap(events.begin(), events.end());
      events.pop_back();
      if (event.isSignal)
        arrive(event.step);
      else
        finish(event.step);
    }
  }
  if (left == 0 && !beyond && now <= options.cutoff)
    schedule.makespan = now;
  return std::move(schedule);
}

} // namespace

Schedule
baechi::placement::memory::scheduleLimited(const Steps &steps,
                                           std::span<const Step> order,
                                           const LimitedOptions &options) {
  return LimitedScheduler(steps, order, options).run();
}
