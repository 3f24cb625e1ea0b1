//===- Orders.cpp - Orders that keep few bytes alive ------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Memory/Orders.h"

#include <algorithm>
#include <functional>

using namespace baechi::placement;
using namespace baechi::placement::memory;

namespace {

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
  Step at(int32_t k) const;
  void list(Step s);
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
  /// Heaps whose tops are the least, of (growth, place) and of places. What
  /// was taken, or listed again with less growth, is skipped at the top.
  std::vector<std::pair<int64_t, int32_t>> shrinking;
  std::vector<int32_t> ready;
};

Shrinker::Shrinker(const Steps &steps, std::span<const Step> base,
                   bool backward)
    : steps(steps), backward(backward), base(base), place(steps.size()),
      waiting(steps.size(), 0), open(steps.numHoldings(), 0),
      left(steps.numHoldings(), 0), leftSum(steps.numHoldings(), 0) {
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
  if (int64_t now = growth(s); now <= 0) {
    shrinking.emplace_back(now, place[s]);
    std::push_heap(shrinking.begin(), shrinking.end(), std::greater<>());
  }
}

void Shrinker::take(Step s) {
  waiting[s] = -1;
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
    if (--waiting[after] == 0)
      list(after);
  });
}

/// The step at a place of the order to take them in.
Step Shrinker::at(int32_t k) const {
  return base[backward ? base.size() - 1 - k : k];
}

/// A step has nothing left to wait for.
void Shrinker::list(Step s) {
  ready.push_back(place[s]);
  std::push_heap(ready.begin(), ready.end(), std::greater<>());
  consider(s);
}

StepOrder Shrinker::run() {
  for (Step s = 0; s < steps.size(); ++s)
    if (waiting[s] == 0)
      list(s);
  StepOrder order;
  order.reserve(base.size());
  auto takeTop = [&](auto &heap, int32_t k) {
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    heap.pop_back();
    if (Step s = at(k); waiting[s] == 0) {
      order.push_back(s);
      take(s);
    }
  };
  while (!ready.empty())
    if (!shrinking.empty())
      takeTop(shrinking, shrinking.front().second);
    else
      takeTop(ready, ready.front());
  if (backward)
    std::reverse(order.begin(), order.end());
  return order;
}

} // namespace

StepOrder
baechi::placement::memory::hoistShrinking(const Steps &steps,
                                          std::span<const Step> base) {
  return Shrinker(steps, base, /*backward=*/false).run();
}

StepOrder baechi::placement::memory::sinkGrowing(const Steps &steps,
                                                 std::span<const Step> base) {
  return Shrinker(steps, base, /*backward=*/true).run();
}

std::vector<std::vector<int32_t>>
baechi::placement::memory::leanOrders(const Model &model) {
  // The longest path to the end first, as a list scheduler would.
  std::vector<int64_t> tail(model.numNodes, 0);
  for (auto it = model.order.rbegin(); it != model.order.rend(); ++it) {
    model.forEachUser(*it, [&](int32_t user) {
      tail[*it] = std::max(tail[*it], tail[user]);
    });
    tail[*it] += model.minTime(*it);
  }
  std::vector<int32_t> byTail = model.order;
  std::stable_sort(byTail.begin(), byTail.end(),
                   [&](int32_t a, int32_t b) { return tail[a] > tail[b]; });
  // On one device there are no transfers: steps are nodes.
  Assignment together(model.numNodes, 0);
  Steps steps(model, together);
  std::vector<std::vector<int32_t>> orders{model.order};
  for (const auto &base : {model.order, byTail})
    orders.push_back(sinkGrowing(steps, hoistShrinking(steps, base)));
  // Of a million steps each of these takes some seconds.
  constexpr int32_t many = 300'000;
  for (bool climbs : {false, true})
    if (!climbs || model.numNodes <= many)
      orders.push_back(
          sinkGrowing(steps, valleyOrder(steps, model.order, climbs)));
  // Judging assignments costs in proportion to the orders.
  std::vector<std::pair<int64_t, size_t>> ranked;
  for (size_t k = 0; k < orders.size(); ++k)
    ranked.emplace_back(orderPeaks(steps, orders[k]).front(), k);
  std::sort(ranked.begin(), ranked.end());
  constexpr size_t kept = 3;
  std::vector<std::vector<int32_t>> best;
  for (size_t k = 0; k < kept; ++k)
    best.push_back(std::move(orders[ranked[k].second]));
  return best;
}

std::vector<StepOrder> baechi::placement::memory::plainOrders(
    const Steps &steps, std::span<const std::vector<int32_t>> nodeOrders) {
  std::vector<StepOrder> orders;
  for (const auto &nodes : nodeOrders)
    orders.push_back(lateTransfers(steps, nodes));
  return orders;
}

int64_t baechi::placement::memory::excessOf(const Model &model,
                                            std::span<const int64_t> peaks) {
  int64_t excess = 0;
  for (int32_t d = 0; d < model.numDevices; ++d)
    if (int64_t over = peaks[d] - model.deviceMemory(d); over > 0)
      excess = std::min(excess, never - over) + over;
  return excess;
}

static bool isOnOneDevice(const Steps &steps) {
  const Assignment &device = steps.device;
  return !device.empty() &&
         std::all_of(device.begin(), device.end(),
                     [&](int32_t d) { return d == device.front(); });
}

FoundOrder
baechi::placement::memory::findOrder(const Steps &steps,
                                     std::span<const StepOrder> bases) {
  FoundOrder best;
  int64_t last = never; ///< excess of the last that was judged
  auto judge = [&](StepOrder order) {
    auto peaks = orderPeaks(steps, order);
    last = excessOf(steps.model, peaks);
    if (last < best.excess)
      best = {std::move(order), std::move(peaks), last};
    return best.excess == 0;
  };
  std::vector<std::pair<int64_t, const StepOrder *>> ranked;
  for (const StepOrder &base : bases) {
    if (judge(base))
      return best;
    ranked.emplace_back(last, &base);
  }
  std::stable_sort(
      ranked.begin(), ranked.end(),
      [](const auto &a, const auto &b) { return a.first < b.first; });
  constexpr size_t promising = 2;
  if (ranked.size() > promising)
    ranked.resize(promising);
  for (const auto &[excess, base] : ranked) {
    StepOrder early = hoistShrinking(steps, *base);
    StepOrder both = sinkGrowing(steps, early);
    if (judge(std::move(early)) || judge(std::move(both)))
      return best;
  }
  StepOrder late = sinkGrowing(steps, *ranked.front().second);
  if (judge(hoistShrinking(steps, late)) || judge(std::move(late)))
    return best;
  if (isOnOneDevice(steps)) {
    const int64_t memory = steps.model.deviceMemory(steps.device.front());
    for (const StepOrder &base : bases)
      if (judge(mendWindows(steps, base, memory, mendingEffort)))
        return best;
    if (judge(mendWindows(steps, best.order, memory, mendingEffort)))
      return best;
  }
  constexpr int64_t someStates = 1000;
  bool complete;
  if (StepOrder found = searchOrder(steps, someStates, complete);
      !found.empty())
    judge(std::move(found));
  return best;
}
