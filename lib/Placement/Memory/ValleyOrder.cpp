//===- ValleyOrder.cpp - From one valley of the memory to the next --------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Orders made of segments from one low level of memory to the next, as those
/// of Liu 1987 (An application of generalized tree pebbling to sparse matrix
/// factorization, section 4), which are optimal for trees. A graph has no such
/// decomposition: here a few segments are tried out from where the order is,
/// and taken back.
///
//===----------------------------------------------------------------------===//

#include "Memory/Orders.h"

#include <algorithm>
#include <functional>
#include <tuple>

using namespace baechi::placement;
using namespace baechi::placement::memory;

namespace {

/// Of ready steps, and of waiting ones, what begins a segment.
constexpr size_t kTried = 12;
/// Steps that a waiting step may lack, itself included.
constexpr size_t kLacking = 24;
/// Steps that follow the first one of a segment.
constexpr size_t kFollowing = 48;
/// How far back the order is searched for what waits for its results.
constexpr size_t kRecent = 256;
/// Steps that are looked at for one that is taken, over the whole order; beyond
/// it the first ready ones are taken.
constexpr int64_t kWork = 4000;

class ValleyFinder {
public:
  ValleyFinder(const Steps &steps, std::span<const Step> base, bool climbs);
  StepOrder run();

private:
  struct Segment {
    std::vector<Step> steps;
    int64_t peak = 0;   ///< above the level that it begins with
    int64_t growth = 0; ///< of the level, at its end
  };

  int64_t growth(Step s) const;
  int64_t need(Step s) const;
  void apply(Step s, std::vector<Step> &enabled);
  void undo(Step s);
  void consider(Step s);
  void commit(Step s);
  bool commitShrinking();
  bool collect(Step s, std::vector<Step> &lacking, size_t depth = 0);
  Segment tryOut(std::span<const Step> first);
  std::vector<Step> candidates();
  void commitBest();
  Step firstLeft();

  const Steps &steps;
  bool climbs; ///< a segment may go up again before its valley
  std::vector<int32_t> place;
  std::vector<int32_t> waiting, uses; ///< per step, per holding
  std::vector<int64_t> userSum; ///< per holding: of the users that are left
  std::vector<int32_t> since;   ///< step -> when it became ready
  std::vector<uint8_t> done;
  std::vector<Step> ready; ///< the last ones are the newest; some are done
  /// A heap of (growth, place), least first, of steps that add nothing.
  std::vector<std::pair<int64_t, int32_t>> shrinking;
  std::span<const Step> base;
  size_t first = 0; ///< in base: all before are done
  int64_t level = 0, work = 0;
  StepOrder order;
};

ValleyFinder::ValleyFinder(const Steps &steps, std::span<const Step> base,
                           bool climbs)
    : steps(steps), climbs(climbs), place(steps.size()),
      waiting(steps.size(), 0), uses(steps.numHoldings(), 0),
      userSum(steps.numHoldings(), 0), since(steps.size(), 0),
      done(steps.size(), 0), base(base) {
  for (size_t k = 0; k < base.size(); ++k)
    place[base[k]] = static_cast<int32_t>(k);
  for (Step s = 0; s < steps.size(); ++s) {
    steps.forEachPrevious(s, [&](Step) { ++waiting[s]; });
    steps.forEachRead(s, [&](int32_t h) {
      ++uses[h];
      userSum[h] += s;
    });
  }
  for (Step s : base)
    if (waiting[s] == 0) {
      ready.push_back(s);
      consider(s);
    }
}

int64_t ValleyFinder::growth(Step s) const {
  int64_t bytes = 0;
  steps.forEachBorn(s, [&](int32_t h) {
    if (uses[h] > 0 || steps.isKept(h))
      bytes += steps.bytesOf(h);
  });
  steps.forEachRead(s, [&](int32_t h) {
    if (uses[h] == 1 && !steps.isKept(h))
      bytes -= steps.bytesOf(h);
  });
  return bytes;
}

/// Bytes above the level while it runs.
int64_t ValleyFinder::need(Step s) const {
  if (steps.isInstant(s))
    return growth(s);
  int64_t bytes = steps.isRun(s) ? steps.model.scratch[s] : 0;
  steps.forEachBorn(s, [&](int32_t h) { bytes += steps.bytesOf(h); });
  return bytes;
}

void ValleyFinder::apply(Step s, std::vector<Step> &enabled) {
  level += growth(s);
  done[s] = 1;
  steps.forEachRead(s, [&](int32_t h) {
    --uses[h];
    userSum[h] -= s;
  });
  steps.forEachNext(s, [&](Step next) {
    ++work;
    if (--waiting[next] == 0)
      enabled.push_back(next);
  });
}

void ValleyFinder::undo(Step s) {
  steps.forEachNext(s, [&](Step next) { ++waiting[next]; });
  steps.forEachRead(s, [&](int32_t h) {
    ++uses[h];
    userSum[h] += s;
  });
  done[s] = 0;
  level -= growth(s);
}

void ValleyFinder::consider(Step s) {
  if (int64_t now = growth(s); now <= 0) {
    shrinking.emplace_back(now, place[s]);
    std::push_heap(shrinking.begin(), shrinking.end(), std::greater<>());
  }
}

void ValleyFinder::commit(Step s) {
  std::vector<Step> enabled;
  apply(s, enabled);
  order.push_back(s);
  for (Step next : enabled) {
    ready.push_back(next);
    since[next] = static_cast<int32_t>(order.size());
    consider(next);
  }
  // The last user of what it read may free it now.
  steps.forEachRead(s, [&](int32_t h) {
    if (uses[h] != 1)
      return;
    auto last = static_cast<Step>(userSum[h]);
    if (waiting[last] == 0 && !done[last])
      consider(last);
  });
}

/// What adds nothing is worth taking before anything else.
bool ValleyFinder::commitShrinking() {
  while (!shrinking.empty()) {
    Step s = base[shrinking.front().second];
    std::pop_heap(shrinking.begin(), shrinking.end(), std::greater<>());
    shrinking.pop_back();
    if (done[s])
      continue;
    commit(s);
    return true;
  }
  return false;
}

/// \p s behind all that it lacks; false where that is too much.
bool ValleyFinder::collect(Step s, std::vector<Step> &lacking, size_t depth) {
  if (done[s] || std::find(lacking.begin(), lacking.end(), s) != lacking.end())
    return true;
  bool few = depth < kLacking && lacking.size() < kLacking;
  if (few && waiting[s] > 0)
    steps.forEachPrevious(s, [&](Step previous) {
      ++work;
      few = few && collect(previous, lacking, depth + 1);
    });
  if (!few || lacking.size() >= kLacking)
    return false;
  lacking.push_back(s);
  return true;
}

/// Takes \p first and then, of what that has made ready, what adds least, up to
/// the lowest level; and takes all back.
ValleyFinder::Segment ValleyFinder::tryOut(std::span<const Step> first) {
  Segment segment;
  const int64_t start = level;
  std::vector<Step> enabled;
  auto take = [&](Step s) {
    segment.peak = std::max(segment.peak, level - start + need(s));
    apply(s, enabled);
    segment.steps.push_back(s);
  };
  for (Step s : first)
    take(s);
  int64_t low = level;
  size_t keep = segment.steps.size();
  for (size_t k = 0; k < kFollowing && (low > start || !climbs); ++k) {
    Step next = -1;
    int64_t least = climbs ? never : 1;
    for (Step s : enabled) {
      ++work;
      if (int64_t now = done[s] ? never : growth(s); now < least) {
        least = now;
        next = s;
      }
    }
    if (next < 0)
      break;
    take(next);
    if (level <= low) {
      low = level;
      keep = segment.steps.size();
    }
  }
  for (size_t k = segment.steps.size(); k-- > 0;)
    undo(segment.steps[k]);
  segment.steps.resize(keep);
  segment.growth = low - start;
  return segment;
}

/// The newest of what is ready, and of what waits for recent results.
std::vector<Step> ValleyFinder::candidates() {
  std::vector<Step> found;
  size_t passedOver = 0;
  for (size_t k = ready.size();
       k-- > 0 && found.size() < kTried && passedOver < kRecent;)
    if (done[ready[k]])
      ++passedOver;
    else
      found.push_back(ready[k]);
  if (passedOver == kRecent)
    std::erase_if(ready, [&](Step s) { return done[s]; });
  size_t waiters = 0;
  for (size_t k = 0; k < kRecent && k < order.size() && waiters < kTried; ++k)
    steps.forEachNext(order[order.size() - 1 - k], [&](Step next) {
      if (++work; !done[next] && waiting[next] > 0 && waiters < kTried) {
        found.push_back(next);
        ++waiters;
      }
    });
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

/// The segment that comes down again with the least peak; without one, the
/// first step of what adds least.
void ValleyFinder::commitBest() {
  using Key = std::tuple<bool, int64_t, int64_t, int32_t>;
  Key least(true, never, never, 0);
  std::vector<Step> best;
  for (Step candidate : candidates()) {
    std::vector<Step> lacking;
    if (!collect(candidate, lacking))
      continue;
    Segment segment = tryOut(lacking);
    Key key;
    if (segment.growth <= 0) {
      key = {false, segment.peak, segment.growth, place[candidate]};
    } else {
      int32_t newest = 0;
      for (Step s : lacking)
        newest = std::max(newest, since[s]);
      key = {true, segment.growth, segment.peak, -newest};
      segment.steps.resize(1);
    }
    if (key < least) {
      least = key;
      best = std::move(segment.steps);
    }
  }
  if (best.empty())
    best.push_back(firstLeft());
  for (Step s : best)
    commit(s);
}

/// Of the base, which is topological: so it is ready.
Step ValleyFinder::firstLeft() {
  while (done[base[first]])
    ++first;
  return base[first];
}

StepOrder ValleyFinder::run() {
  const int64_t mostWork = kWork * (steps.size() + 1);
  while (static_cast<Step>(order.size()) < steps.size()) {
    if (commitShrinking())
      continue;
    if (work <= mostWork)
      commitBest();
    else
      commit(firstLeft());
  }
  return std::move(order);
}

} // namespace

StepOrder baechi::placement::memory::valleyOrder(const Steps &steps,
                                                 std::span<const Step> base,
                                                 bool climbs) {
  return ValleyFinder(steps, base, climbs).run();
}
