//===- OrderWindows.cpp - Orders mended where most is held ----------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Around the step that needs most, steps are put before or after it so that
/// least is held there: a minimum cut of a part of the order, wider and wider.
/// Levels are submodular, so that what is taken out of the way of one step
/// seldom stands in that of another.
///
//===----------------------------------------------------------------------===//

#include "Memory/LeastLevel.h"
#include "Memory/Orders.h"

#include <algorithm>

using namespace baechi::placement;
using namespace baechi::placement::memory;

namespace {

/// Steps on each side of the one that needs most, at first, and how much wider
/// the next part is.
constexpr int32_t narrowest = 32, wider = 4;
/// Bytes that it costs to move a step: what does not help stays.
constexpr int64_t prices[] = {int64_t(1) << 20, int64_t(1) << 14, 1};

class WindowMender {
public:
  WindowMender(const Steps &steps, StepOrder order, int64_t effort);
  StepOrder run(int64_t enough);

private:
  /// A part of the order, around a place in it.
  struct Window {
    int32_t begin, at, end;
  };

  int64_t replay(int32_t begin, int32_t end);
  bool mend(const Window &window, int64_t price);
  bool mendOnce(int32_t at);
  void markReached(const Window &window, When side);
  std::vector<Step> split(const Window &window, int64_t price);

  const Steps &steps;
  StepOrder order;
  int64_t left; ///< of the effort
  LeastLevel level;
  std::vector<int32_t> place;  ///< step -> in the order
  std::vector<int32_t> last;   ///< holding -> place of the last that reads it
  std::vector<int64_t> before; ///< place -> bytes that are held then
  std::vector<int64_t> needs;  ///< place -> bytes while the step runs
  std::vector<When> when, rather;
  std::vector<Step> open, stack;
};

WindowMender::WindowMender(const Steps &steps, StepOrder given, int64_t effort)
    : steps(steps), order(std::move(given)), left(effort),
      level(steps.model, steps.model.memory), place(steps.size()),
      last(steps.numHoldings(), -1), before(order.size()), needs(order.size()),
      when(order.size(), When::Either), rather(order.size(), When::Either) {
  before[0] = steps.resident()[steps.device[0]];
  replay(0, static_cast<int32_t>(order.size()));
}

/// Levels of a part of the order that may have changed; what it needs at most.
int64_t WindowMender::replay(int32_t begin, int32_t end) {
  left -= 2 * int64_t(end - begin);
  for (int32_t k = begin; k < end; ++k) {
    place[order[k]] = k;
    steps.forEachRead(order[k], [&](int32_t h) {
      if (last[h] < end)
        last[h] = -1;
    });
  }
  for (int32_t k = begin; k < end; ++k)
    steps.forEachRead(order[k], [&](int32_t h) {
      if (last[h] < end)
        last[h] = k;
    });
  int64_t now = before[begin], most = 0;
  for (int32_t k = begin; k < end; ++k) {
    Step s = order[k];
    before[k] = now;
    int64_t born = 0, gone = 0;
    steps.forEachBorn(s, [&](int32_t h) {
      born += steps.bytesOf(h);
      gone += last[h] < 0 && !steps.isKept(h) ? steps.bytesOf(h) : 0;
    });
    steps.forEachRead(s, [&](int32_t h) {
      gone += last[h] == k && !steps.isKept(h) ? steps.bytesOf(h) : 0;
    });
    needs[k] = now + (steps.isInstant(s) ? born - gone
                                         : born + steps.model.scratch[s]);
    most = std::max(most, needs[k]);
    now += born - gone;
  }
  return most;
}

/// What of the window must be on a side of the step in its middle.
void WindowMender::markReached(const Window &window, When side) {
  stack.assign(1, order[window.at]);
  while (!stack.empty()) {
    Step at = stack.back();
    stack.pop_back();
    auto visit = [&](Step other) {
      --left;
      if (when[other] == When::Either) {
        when[other] = side;
        stack.push_back(other);
      }
    };
    if (side == When::Before)
      steps.forEachPrevious(at, visit);
    else
      steps.forEachNext(at, visit);
  }
}

/// The window's steps with least held where the one in its middle runs; none
/// where that changes nothing.
std::vector<Step> WindowMender::split(const Window &window, int64_t price) {
  auto size = static_cast<int32_t>(order.size());
  for (int32_t k = 0; k < size; ++k)
    when[order[k]] = k < window.begin  ? When::Before
                     : k >= window.end ? When::After
                                       : When::Either;
  left -= size / 16;
  Step middle = order[window.at];
  when[middle] = When::After;
  markReached(window, When::Before);
  markReached(window, When::After);
  open.clear();
  for (int32_t k = window.begin; k < window.end; ++k)
    if (Step s = order[k]; when[s] == When::Either) {
      open.push_back(s);
      rather[s] = k < window.at ? When::Before : When::After;
    }
  if (open.empty() || !level.decide(open, when, {}, left, rather, price))
    return {};
  std::vector<Step> found;
  for (int32_t k = window.begin; k < window.end; ++k)
    if (when[order[k]] == When::Before)
      found.push_back(order[k]);
  found.push_back(middle);
  for (int32_t k = window.begin; k < window.end; ++k)
    if (when[order[k]] == When::After && k != window.at)
      found.push_back(order[k]);
  if (std::equal(found.begin(), found.end(), order.begin() + window.begin))
    found.clear();
  return found;
}

/// Whether the window needs less than it did.
bool WindowMender::mend(const Window &window, int64_t price) {
  std::vector<Step> found = split(window, price);
  if (found.empty())
    return false;
  // The step in the middle is the one that needs most of all.
  int64_t most = needs[window.at];
  auto begin = order.begin() + window.begin;
  std::vector<Step> known(begin, order.begin() + window.end);
  std::copy(found.begin(), found.end(), begin);
  if (replay(window.begin, window.end) < most)
    return true;
  std::copy(known.begin(), known.end(), begin);
  replay(window.begin, window.end);
  return false;
}

/// The narrowest window first, and only what is before the step, only what is
/// after it, or both.
bool WindowMender::mendOnce(int32_t at) {
  auto size = static_cast<int32_t>(order.size());
  for (int64_t width = narrowest;; width *= wider) {
    auto begin = static_cast<int32_t>(std::max<int64_t>(0, at - width));
    auto end = static_cast<int32_t>(std::min<int64_t>(size, at + width + 1));
    for (int64_t price : prices)
      for (Window window : {Window{begin, at, at + 1}, Window{at, at, end},
                            Window{begin, at, end}})
        if (left <= 0 || mend(window, price))
          return left > 0;
    if (begin == 0 && end == size)
      return false;
  }
}

StepOrder WindowMender::run(int64_t enough) {
  for (;;) {
    auto most = std::max_element(needs.begin(), needs.end());
    if (*most <= enough || left <= 0 ||
        !mendOnce(static_cast<int32_t>(most - needs.begin())))
      return std::move(order);
  }
}

} // namespace

StepOrder baechi::placement::memory::mendWindows(const Steps &steps,
                                                 std::span<const Step> base,
                                                 int64_t enough,
                                                 int64_t effort) {
  StepOrder order(base.begin(), base.end());
  return order.empty()
             ? order
             : WindowMender(steps, std::move(order), effort).run(enough);
}
