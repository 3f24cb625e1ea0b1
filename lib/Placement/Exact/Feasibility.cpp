//===- Feasibility.cpp - Does any order fit the memories? -------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Exact/Feasibility.h"

#include <algorithm>

using namespace baechi::placement;
using namespace baechi::placement::exact;

Timetable::Timetable(const Assigned &problem, const Progress &at,
                     std::span<const int64_t> end,
                     std::span<const int64_t> copyEnd)
    : makespan(0) {
  for (int32_t i = 0; i < problem.instance.numNodes; ++i) {
    makespan = std::max(makespan, end[i]);
    start.push_back(end[i] - problem.time[i]);
  }
  // By start, and what is passed on after what it is passed on from.
  std::vector<std::tuple<int64_t, int32_t, size_t>> order;
  for (size_t c = 0; c < problem.copies.size(); ++c) {
    if (!at.copyStarted[c])
      continue;
    const Moved &tensor = problem.moved[problem.copies[c].of];
    int32_t hops = 0;
    for (int32_t from = at.source[c]; from != tensor.home; ++hops) {
      int32_t holder = tensor.firstCopy;
      while (problem.copies[holder].to != from)
        ++holder;
      from = at.source[holder];
    }
    int64_t ns = problem.copyNs(problem.copies[c], at.source[c]);
    makespan = std::max(makespan, copyEnd[c]);
    order.emplace_back(copyEnd[c] - ns, hops, c);
  }
  std::sort(order.begin(), order.end());
  for (const auto &[begin, hops, c] : order) {
    const Copy &copy = problem.copies[c];
    int32_t source = problem.model.producer[copy.tensor];
    transfers.push_back({source,
                         copy.tensor - problem.model.firstTensor[source],
                         at.source[c], copy.to, begin, copyEnd[c]});
  }
}

int64_t Feasibility::lengthOf(const Step &step) const {
  return step.kind == Step::Kind::Run
             ? problem.time[step.id]
             : problem.copyNs(problem.copies[step.id], step.from);
}

bool Feasibility::isReady(const Progress &at, const Step &step) const {
  if (step.kind == Step::Kind::Run) {
    int32_t i = step.id;
    if (at.started >> i & 1 || instance.before[i] & ~at.ended)
      return false;
    for (int32_t c : problem.copiesRead[i])
      if (!at.copyEnded[c])
        return false;
    int32_t twin = problem.twinBefore[i];
    return twin < 0 || (at.started >> twin & 1);
  }
  const Copy &copy = problem.copies[step.id];
  return !at.copyStarted[step.id] && problem.holds(at, copy.of, step.from) &&
         (copy.readers || problem.wanted(at, copy.of));
}

void Feasibility::begin(Progress &at, const Step &step) const {
  if (step.kind == Step::Kind::Run) {
    at.started |= OpSet(1) << step.id;
    return;
  }
  at.copyStarted.set(step.id);
  at.source[step.id] = static_cast<int8_t>(step.from);
}

void Feasibility::finish(Progress &at, const Step &step) const {
  if (step.kind == Step::Kind::Run)
    at.ended |= OpSet(1) << step.id;
  else
    at.copyEnded.set(step.id);
}

/// True when what is left can be run; `order` is then extended by it.
bool Feasibility::explore(const Progress &at) {
  if (at.ended == (OpSet(1) << instance.numNodes) - 1)
    return true;
  if (effort.spent() || !failed.insert(MemoKey(at)).second)
    return false;
  ++effort.nodes;
  struct Option {
    int64_t growth;
    Step step;
    Progress after;
  };
  std::vector<Option> options;
  Levels before, level;
  problem.levels(at, before, /*onlyCertain=*/false);
  auto proceed = [&](const Option &option) {
    size_t size = order.size();
    order.push_back(option.step);
    if (explore(option.after))
      return true;
    order.resize(size);
    return false;
  };
  for (const Step &step : steps) {
    if (!isReady(at, step))
      continue;
    Progress next = at;
    begin(next, step);
    int32_t over = -1;
    // What takes no time holds nothing for its own sake.
    if (lengthOf(step) > 0) {
      problem.levels(next, level, /*onlyCertain=*/false);
      for (int32_t d = 0; d < instance.numDevices && over < 0; ++d)
        if (level[d] > model.deviceMemory(d))
          over = d;
    }
    if (over >= 0) {
      if (problem.fits(next, /*onlyCertain=*/true))
        for (auto [copy, movedIndex] : problem.droppable(next, over)) {
          Option option{0, {Step::Kind::DropHome, movedIndex}, at};
          if (copy >= 0) {
            option.step = {Step::Kind::DropCopy, copy};
            option.after.dropped.set(copy);
          } else {
            option.after.homeDropped.set(movedIndex);
          }
          options.push_back(option);
        }
      continue;
    }
    finish(next, step);
    problem.levels(next, level, /*onlyCertain=*/false);
    bool grows = false;
    int64_t growth = 0;
    for (int32_t d = 0; d < instance.numDevices; ++d) {
      grows |= level[d] > before[d];
      growth += level[d] - before[d];
    }
    Option option{growth, step, next};
    bool optional =
        step.kind == Step::Kind::Copy && (!problem.copies[step.id].readers);
    // Run at once what frees memory or needs none: any order in which it comes
    // later only gets lower by that.
    if (!grows && !optional)
      return proceed(option);
    options.push_back(option);
  }
  std::stable_sort(
      options.begin(), options.end(),
      [](const Option &a, const Option &b) { return a.growth < b.growth; });
  return std::any_of(options.begin(), options.end(), proceed);
}

Feasibility::Answer Feasibility::run() {
  steps.clear();
  order.clear();
  failed.clear();
  for (int32_t i : model.order)
    steps.push_back({Step::Kind::Run, i});
  for (size_t c = 0; c < problem.copies.size(); ++c)
    forEachBit(problem.copies[c].sources, [&](int32_t from) {
      steps.push_back({Step::Kind::Copy, static_cast<int32_t>(c), from});
    });
  if (explore(Progress()))
    return Answer::Fits;
  return effort.spent() ? Answer::Unknown : Answer::Never;
}

Timetable Feasibility::schedule() const {
  Progress at;
  int64_t now = 0;
  std::array<int64_t, maxOperators> end{};
  std::array<int64_t, maxCopies> copyEnd{};
  std::array<int64_t, maxDevices> deviceFree{};
  std::array<int64_t, maxCarriers> linkFree{};
  auto advance = [&](int64_t to) {
    // What is held until then must fit, also while nothing runs.
    if (to > now && !problem.fits(at, /*onlyCertain=*/false))
      return false;
    now = std::max(now, to);
    forEachBit(at.started & ~at.ended, [&](int32_t i) {
      if (end[i] <= now)
        at.ended |= OpSet(1) << i;
    });
    for (size_t c = 0; c < problem.copies.size(); ++c)
      if (at.copyStarted[c] && copyEnd[c] <= now)
        at.copyEnded.set(c);
    return true;
  };
  for (const Step &step : order) {
    if (step.kind == Step::Kind::DropCopy) {
      at.dropped.set(step.id);
      continue;
    }
    if (step.kind == Step::Kind::DropHome) {
      at.homeDropped.set(step.id);
      continue;
    }
    int64_t ns = lengthOf(step), ready = now;
    if (step.kind == Step::Kind::Run) {
      int32_t i = step.id;
      if (ns > 0)
        ready = std::max(ready, deviceFree[problem.device[i]]);
      forEachBit(instance.before[i],
                 [&](int32_t p) { ready = std::max(ready, end[p]); });
      for (int32_t c : problem.copiesRead[i])
        ready = std::max(ready, copyEnd[c]);
      for (const auto &signal : problem.signalsTo[i])
        ready = std::max(ready, end[signal.from] + signal.latency);
    } else {
      const Copy &copy = problem.copies[step.id];
      ready = std::max(ready, end[model.producer[copy.tensor]]);
      const Moved &tensor = problem.moved[copy.of];
      for (int32_t c = tensor.firstCopy; c < tensor.endCopy; ++c)
        if (problem.copies[c].to == step.from)
          ready = std::max(ready, copyEnd[c]);
      auto [a, b] = problem.carriers(step.from, copy.to);
      for (int32_t carrier : {a, b})
        if (carrier >= 0 && ns > 0)
          ready = std::max(ready, linkFree[carrier]);
    }
    if (!advance(ready))
      return {};
    Progress next = at;
    begin(next, step);
    if (ns == 0)
      finish(next, step);
    while (!problem.fits(next, /*onlyCertain=*/false)) {
      int64_t soonest = never;
      forEachBit(at.started & ~at.ended,
                 [&](int32_t i) { soonest = std::min(soonest, end[i]); });
      for (size_t c = 0; c < problem.copies.size(); ++c)
        if (at.copyStarted[c] && !at.copyEnded[c])
          soonest = std::min(soonest, copyEnd[c]);
      // What takes no time may be made up for by the next that does not.
      if (ns == 0 && soonest == never)
        break;
      if (soonest == never || !advance(soonest))
        return {};
      next = at;
      begin(next, step);
      if (ns == 0)
        finish(next, step);
    }
    at = next;
    if (step.kind == Step::Kind::Run) {
      end[step.id] = now + ns;
      if (ns > 0)
        deviceFree[problem.device[step.id]] = now + ns;
    } else {
      copyEnd[step.id] = now + ns;
      auto [a, b] = problem.carriers(step.from, problem.copies[step.id].to);
      for (int32_t carrier : {a, b})
        if (carrier >= 0)
          linkFree[carrier] = std::max(linkFree[carrier], now + ns);
    }
  }
  Timetable result(problem, at, end, copyEnd);
  return advance(result.makespan) ? result : Timetable();
}
