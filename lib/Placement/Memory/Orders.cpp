//===- Orders.cpp - Orders that keep few bytes alive ------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Memory/Orders.h"

#include <algorithm>
#include <numeric>
#include <set>

using namespace baechi::placement;

namespace {

/// Depth first from the results, the operand with the largest need first (Liu
/// 1987, "An application of generalized tree pebbling", applied to a DAG).
std::vector<int32_t> depthFirstOrder(const Model &model) {
  // The bytes that a node's own result and scratch ask for.
  std::vector<int64_t> need(model.numNodes, 0);
  for (int32_t i = 0; i < model.numNodes; ++i) {
    auto [begin, end] = model.tensorsOf(i);
    need[i] = model.scratch[i] + std::accumulate(model.memory.begin() + begin,
                                                 model.memory.begin() + end,
                                                 int64_t(0));
  }
  // Roots in topological order: what can be consumed early is.
  std::vector<int32_t> order, stack;
  std::vector<uint8_t> state(model.numNodes, 0); // 1: opened, 2: placed
  order.reserve(model.numNodes);
  std::vector<int32_t> sources;
  for (int32_t root : model.order) {
    // A source that others read comes with its first reader.
    bool isSource =
        model.operands[root].empty() && model.controlSources[root].empty();
    bool isRead = false;
    model.forEachUser(root, [&](int32_t) { isRead = true; });
    if (state[root] || (isSource && isRead))
      continue;
    stack.push_back(root);
    while (!stack.empty()) {
      int32_t i = stack.back();
      if (state[i] == 0) {
        state[i] = 1;
        sources.clear();
        model.forEachSource(i, [&](int32_t s) {
          if (state[s] == 0)
            sources.push_back(s);
        });
        std::sort(sources.begin(), sources.end(), [&](int32_t a, int32_t b) {
          return need[a] != need[b] ? need[a] < need[b] : a > b;
        });
        stack.insert(stack.end(), sources.begin(), sources.end());
        continue;
      }
      stack.pop_back();
      if (state[i] == 1) {
        state[i] = 2;
        order.push_back(i);
      }
    }
  }
  return order;
}

/// Takes ready steps, from either end: those that shrink the memory first, the
/// most first, then by their place in a given order. A holding is open from
/// the first of its openers to the last of its closers, the step that makes it
/// and those that use it: seen from the end, the other way round.
class Shrinker {
public:
  Shrinker(const Steps &steps, std::span<const Step> base, bool backward);
  StepOrder run();

private:
  template <typename Visit> void forEachOpened(Step s, Visit visit) const {
    backward ? steps.forEachRead(s, visit) : steps.forEachBorn(s, visit);
  }
  template <typename Visit> void forEachClosed(Step s, Visit visit) const {
    backward ? steps.forEachBorn(s, visit) : steps.forEachRead(s, visit);
  }
  template <typename Visit> void forEachAfter(Step s, Visit visit) const {
    backward ? steps.forEachPrevious(s, visit) : steps.forEachNext(s, visit);
  }
  int64_t growth(Step s) const;
  void consider(Step s);
  void take(Step s);

  const Steps &steps;
  bool backward;
  std::span<const Step> base;   ///< the first to take is the last if backward
  std::vector<int32_t> place;   ///< step -> place among the first to take
  std::vector<int32_t> waiting; ///< step -> what must be taken before; < 0: is
  std::vector<uint8_t> open;    ///< per holding
  std::vector<int32_t> left;    ///< holding -> closers that are left
  std::vector<int64_t> leftSum; ///< the sum of their ids: the last one's name
  std::set<std::pair<int64_t, int32_t>> shrinking; ///< (growth, place)
  std::vector<int64_t> listed; ///< step -> its growth in `shrinking`; 1: none
  std::set<int32_t> ready;     ///< places
};

Shrinker::Shrinker(const Steps &steps, std::span<const Step> base,
                   bool backward)
    : steps(steps), backward(backward), base(base), place(steps.size()),
      waiting(steps.size(), 0), open(steps.numHoldings(), 0),
      left(steps.numHoldings(), 0), leftSum(steps.numHoldings(), 0),
      listed(steps.size(), 1) {
  auto size = static_cast<int32_t>(base.size());
  for (int32_t k = 0; k < size; ++k)
    place[base[k]] = backward ? size - 1 - k : k;
  for (Step s = 0; s < size; ++s) {
    forEachAfter(s, [&](Step after) { ++waiting[after]; });
    forEachClosed(s, [&](int32_t h) {
      ++left[h];
      leftSum[h] += s;
    });
  }
  for (int32_t h = 0; h < steps.numHoldings(); ++h) {
    bool isUsed = false;
    steps.forEachUse(h, [&](Step) { isUsed = true; });
    if (steps.isKept(h)) {
      // To the end of the step, which is where the way back begins.
      open[h] = backward;
      left[h] += !backward;
    } else if (!isUsed) {
      // Gone as soon as it is there.
      open[h] = 1;
      left[h] = 0;
    }
  }
}

/// Bytes that a step adds, all devices alike.
int64_t Shrinker::growth(Step s) const {
  int64_t bytes = 0;
  forEachOpened(s, [&](int32_t h) { bytes += open[h] ? 0 : steps.bytesOf(h); });
  forEachClosed(
      s, [&](int32_t h) { bytes -= left[h] == 1 ? steps.bytesOf(h) : 0; });
  return bytes;
}

/// A step is ready, or what it adds may have become less.
void Shrinker::consider(Step s) {
  int64_t now = growth(s);
  if (now > 0)
    return;
  if (listed[s] <= 0)
    shrinking.erase({listed[s], place[s]});
  listed[s] = now;
  shrinking.emplace(now, place[s]);
}

void Shrinker::take(Step s) {
  waiting[s] = -1;
  ready.erase(place[s]);
  if (listed[s] <= 0)
    shrinking.erase({listed[s], place[s]});
  auto again = [&](Step other) {
    if (waiting[other] == 0)
      consider(other);
  };
  forEachOpened(s, [&](int32_t h) {
    if (open[h])
      return;
    open[h] = 1;
    if (backward)
      steps.forEachUse(h, again);
  });
  forEachClosed(s, [&](int32_t h) {
    leftSum[h] -= s;
    if (--left[h] == 1)
      again(static_cast<Step>(leftSum[h]));
  });
  forEachAfter(s, [&](Step after) {
    if (--waiting[after] == 0) {
      ready.insert(place[after]);
      consider(after);
    }
  });
}

StepOrder Shrinker::run() {
  for (Step s = 0; s < steps.size(); ++s)
    if (waiting[s] == 0) {
      ready.insert(place[s]);
      consider(s);
    }
  StepOrder order;
  order.reserve(base.size());
  while (!ready.empty()) {
    int32_t at = shrinking.empty() ? *ready.begin() : shrinking.begin()->second;
    Step s = base[backward ? base.size() - 1 - at : at];
    order.push_back(s);
    take(s);
  }
  if (backward)
    std::reverse(order.begin(), order.end());
  return order;
}

} // namespace

StepOrder baechi::placement::hoistShrinking(const Steps &steps,
                                            std::span<const Step> base) {
  return Shrinker(steps, base, /*backward=*/false).run();
}

StepOrder baechi::placement::sinkGrowing(const Steps &steps,
                                         std::span<const Step> base) {
  return Shrinker(steps, base, /*backward=*/true).run();
}

std::vector<StepOrder> baechi::placement::plainOrders(const Steps &steps) {
  return {lateTransfers(steps, steps.model.order),
          lateTransfers(steps, depthFirstOrder(steps.model))};
}

int64_t baechi::placement::excessOf(const Model &model,
                                    std::span<const int64_t> peaks) {
  int64_t excess = 0;
  for (int32_t d = 0; d < model.numDevices; ++d)
    if (int64_t over = peaks[d] - model.deviceMemory(d); over > 0)
      excess = std::min(excess, never - over) + over;
  return excess;
}

FoundOrder baechi::placement::findOrder(const Steps &steps,
                                        std::span<const StepOrder> bases) {
  FoundOrder best;
  auto judge = [&](StepOrder order) {
    auto peaks = orderPeaks(steps, order);
    if (int64_t excess = excessOf(steps.model, peaks); excess < best.excess)
      best = {std::move(order), std::move(peaks), excess};
    return best.excess == 0;
  };
  for (const StepOrder &base : bases)
    if (judge(base))
      return best;
  for (const StepOrder &base : bases) {
    StepOrder early = hoistShrinking(steps, base);
    StepOrder late = sinkGrowing(steps, base);
    StepOrder both = sinkGrowing(steps, early);
    if (judge(std::move(early)) || judge(std::move(both)) ||
        judge(hoistShrinking(steps, late)) || judge(std::move(late)))
      return best;
  }
  constexpr int64_t someStates = 4000;
  bool complete;
  if (StepOrder found = searchOrder(steps, someStates, complete);
      !found.empty())
    judge(std::move(found));
  return best;
}
