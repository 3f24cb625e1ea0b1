//===- Repair.cpp - Assignments that fit ------------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Grouping/Clusters.h"
#include "Memory/Memory.h"
#include "Memory/Orders.h"
#include "Memory/PeakEstimate.h"
#include "Model/Random.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

using namespace baechi::placement;
using namespace baechi::placement::memory;

namespace {

/// Units and what it costs to separate two of them, in ns.
class Traffic {
public:
  explicit Traffic(const Model &model);
  struct Neighbour {
    Unit unit;
    int64_t ns;
  };
  std::span<const Neighbour> operator[](Unit u) const {
    return {list.data() + begin[u], list.data() + begin[u + 1]};
  }

private:
  std::vector<int32_t> begin;
  std::vector<Neighbour> list;
};

Traffic::Traffic(const Model &model) : begin(model.numUnits + 1, 0) {
  std::vector<std::tuple<Unit, Unit, int64_t>> pairs;
  std::vector<Unit> seen;
  for (int32_t t = 0; t < model.numTensors; ++t) {
    Unit a = model.unit[model.producer[t]];
    seen.clear();
    for (int32_t user : model.users[t])
      if (Unit b = model.unit[user]; b != a)
        seen.push_back(b);
    std::sort(seen.begin(), seen.end());
    seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
    for (Unit b : seen) {
      pairs.emplace_back(a, b, model.meanTransfer(t));
      pairs.emplace_back(b, a, model.meanTransfer(t));
    }
  }
  std::sort(pairs.begin(), pairs.end());
  for (size_t k = 0; k < pairs.size(); ++k) {
    auto [a, b, ns] = pairs[k];
    if (k > 0 && std::get<0>(pairs[k - 1]) == a &&
        std::get<1>(pairs[k - 1]) == b) {
      list.back().ns += ns;
      continue;
    }
    list.push_back({b, ns});
    ++begin[a + 1];
  }
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
}

class Repairer {
public:
  Repairer(const Model &model, Assignment &device, const RepairEffort &effort,
           PeakEstimate estimate);
  bool run();

private:
  struct Move {
    Unit unit;
    int32_t from;
  };
  /// Units in blocks that move together as far as they are on one device.
  struct Level {
    std::vector<int32_t> blockOf;
    Rows members;
  };

  void findLevels();
  int64_t judge();
  bool fits();
  void move(Unit u, int32_t d);
  void undo(const std::vector<Move> &moves);
  int64_t overflow(int32_t d) const { return peaks[d] - model.deviceMemory(d); }
  std::vector<Move> shift(int32_t from, int32_t to, int64_t need,
                          const std::vector<int64_t> &held, const Level &level,
                          bool noisy);
  bool shiftOne();
  std::vector<Move> propose();
  bool anneal();
  Unit pick(int32_t d);

  const Model &model;
  Assignment &device;
  int64_t trials; ///< that are left
  PeakEstimate estimate;
  Traffic traffic;
  Scheduler scheduler;
  Random random;
  std::vector<Level> levels; ///< the first: every unit alone
  std::vector<int32_t> home; ///< per unit
  std::vector<int64_t> peaks;
  int64_t excess = 0;
};

Repairer::Repairer(const Model &model, Assignment &device,
                   const RepairEffort &effort, PeakEstimate estimate)
    : model(model), device(device),
      trials(std::clamp<int64_t>(
          effort.visits /
              (3 * (int64_t(model.numNodes) + model.numTensors) + 1),
          8, effort.trials)),
      estimate(std::move(estimate)), traffic(model), scheduler(model),
      home(model.numUnits) {
  for (int32_t i = 0; i < model.numNodes; ++i)
    home[model.unit[i]] = device[i];
}

int64_t Repairer::judge() {
  --trials;
  int64_t over = estimate.excess(device);
  peaks = estimate.peaks();
  return over;
}

/// Whether some order fits; costs as much as many trials.
bool Repairer::fits() {
  Steps steps(model, device);
  if (excessOf(model, leastPossiblePeaks(steps)) > 0)
    return false;
  constexpr int64_t cost = 50;
  trials -= cost;
  return findOrder(steps, plainOrders(steps, estimate.nodeOrders())).excess ==
         0;
}

void Repairer::move(Unit u, int32_t d) {
  home[u] = d;
  for (int32_t i : model.members[u])
    device[i] = d;
}

void Repairer::undo(const std::vector<Move> &moves) {
  for (auto it = moves.rbegin(); it != moves.rend(); ++it)
    move(it->unit, it->from);
}

/// Every unit alone, and clusters of two grains: the first unit of a cluster
/// that moves pays for the others, which a look at single units cannot see.
void Repairer::findLevels() {
  auto add = [&](std::vector<int32_t> blockOf, int32_t count) {
    std::vector<std::pair<int32_t, int32_t>> pairs;
    for (Unit u = 0; u < model.numUnits; ++u)
      pairs.emplace_back(blockOf[u], u);
    levels.push_back({std::move(blockOf), makeRows(count, pairs)});
  };
  std::vector<int32_t> alone(model.numUnits);
  std::iota(alone.begin(), alone.end(), 0);
  add(std::move(alone), model.numUnits);
  constexpr int32_t few = 24, tooMany = 200'000;
  if (model.numUnits < few || model.numUnits > tooMany)
    return;
  for (double grain : {50, 400}) {
    grouping::ClusterOptions options;
    options.small = 1 / grain;
    options.ratio = std::numeric_limits<double>::infinity();
    options.workShare = options.memoryShare = 0.25;
    int32_t count = 0;
    auto clusters = grouping::clusterUnits(model, options, random, count);
    add(std::move(clusters), count);
  }
}

/// Moves blocks from one device to another until the first is relieved by \p
/// need or the other is full: those first that save traffic, then those that
/// cost least of it a byte (after Fiduccia & Mattheyses 1982). The neighbours
/// of what has moved follow because their gains have grown. \p heldBy are the
/// bytes that each unit holds there; \p noisy, the costs are known but roughly.
std::vector<Repairer::Move> Repairer::shift(int32_t from, int32_t to,
                                            int64_t need,
                                            const std::vector<int64_t> &heldBy,
                                            const Level &level, bool noisy) {
  int64_t room = -overflow(to);
  int32_t blocks = level.members.size();
  std::vector<double> gain(blocks, 0), factor(blocks, 1);
  std::vector<int64_t> held(blocks, 0);
  enum State : uint8_t { Absent, Movable, Stays, Moved };
  std::vector<State> state(blocks, Absent);
  // (minus the cost a byte, block); outdated entries are skipped.
  std::vector<std::pair<double, int32_t>> heap;
  auto score = [&](int32_t b) {
    double bytes = gain[b] >= 0 ? 1 : static_cast<double>(held[b]);
    return gain[b] * factor[b] / bytes;
  };
  auto offer = [&](int32_t b) {
    if (held[b] == 0 && gain[b] <= 0)
      return;
    heap.emplace_back(score(b), b);
    std::push_heap(heap.begin(), heap.end());
  };
  for (Unit u = 0; u < model.numUnits; ++u) {
    if (home[u] != from)
      continue;
    int32_t b = level.blockOf[u];
    if (state[b] == Absent)
      state[b] = Movable;
    if (!model.mayUse(u, to))
      state[b] = Stays;
    held[b] += heldBy[u];
    for (auto [other, ns] : traffic[u]) {
      if (home[other] == to)
        gain[b] += static_cast<double>(ns);
      else if (home[other] == from && level.blockOf[other] != b)
        gain[b] -= static_cast<double>(ns);
    }
  }
  for (int32_t b = 0; b < blocks; ++b) {
    if (noisy)
      factor[b] = 0.25 + 2 * random.real();
    if (state[b] == Movable)
      offer(b);
  }
  // Once it is relieved, what follows is kept as far as it saves traffic.
  std::vector<Move> moves;
  double cost = 0, least = 0;
  size_t keep = 0, limit = moves.max_size();
  while (!heap.empty() && moves.size() < limit) {
    auto [known, b] = heap.front();
    std::pop_heap(heap.begin(), heap.end());
    heap.pop_back();
    if (state[b] != Movable || held[b] > room || known != score(b))
      continue;
    state[b] = Moved;
    cost -= gain[b];
    need -= held[b];
    room -= held[b];
    for (Unit u : level.members[b]) {
      if (home[u] != from)
        continue;
      moves.push_back({u, from});
      move(u, to);
      for (auto [other, ns] : traffic[u])
        if (int32_t c = level.blockOf[other]; home[other] == from && c != b) {
          gain[c] += 2 * static_cast<double>(ns);
          if (state[c] == Movable)
            offer(c);
        }
    }
    if (need <= 0 && (keep == 0 || cost < least)) {
      if (keep == 0)
        limit = 2 * moves.size() + 16;
      keep = moves.size();
      least = cost;
    }
  }
  while (keep > 0 && moves.size() > keep) {
    move(moves.back().unit, from);
    moves.pop_back();
  }
  return moves;
}

/// Relieves the device that is most above its limit, to the device where that
/// leaves fewest bytes above the limits; of ways that leave none, the one with
/// the shortest schedule.
bool Repairer::shiftOne() {
  int32_t from = 0;
  for (int32_t d = 1; d < model.numDevices; ++d)
    if (overflow(d) > overflow(from))
      from = d;
  auto before = peaks;
  auto held = estimate.heldAt(estimate.peakOf(from), device, from);
  std::pair<int64_t, int64_t> least(excess, never);
  std::vector<Move> best;
  int32_t bestTo = -1;
  // A quarter of what is left, but every level at least once.
  int64_t last =
      trials -
      std::max<int64_t>(trials / 4, 2 * int64_t(model.numDevices) *
                                        static_cast<int64_t>(levels.size()));
  for (size_t round = 0; trials > last; ++round)
    for (int32_t to = 0; to < model.numDevices && trials > last; ++to) {
      peaks = before;
      std::vector<Move> moves;
      if (to != from)
        moves =
            shift(from, to, overflow(from), held, levels[round % levels.size()],
                  /*noisy=*/round >= levels.size());
      if (moves.empty()) {
        --trials;
        continue;
      }
      std::pair<int64_t, int64_t> value(judge(), never - 1);
      if (value.first == 0) {
        --trials;
        value.second = scheduler.run(device);
      }
      if (value < least) {
        least = value;
        best = moves;
        bestTo = to;
      }
      undo(moves);
    }
  for (const Move &each : best)
    move(each.unit, bestTo);
  // Leaves the peaks of what was chosen.
  excess = judge();
  return bestTo >= 0;
}

/// A unit on a device, at random.
Unit Repairer::pick(int32_t d) {
  Unit u = random.below(model.numUnits);
  for (int32_t k = 0; k < model.numUnits && home[u] != d; ++k)
    u = u + 1 < model.numUnits ? u + 1 : 0;
  return u;
}

/// Some units that move, mostly from devices that are above their limits: many
/// along the traffic, one, or two that change places.
std::vector<Repairer::Move> Repairer::propose() {
  constexpr int32_t many = 48;
  std::vector<int32_t> over;
  for (int32_t d = 0; d < model.numDevices; ++d)
    if (overflow(d) > 0)
      over.push_back(d);
  int32_t from = over.empty() || random.oneIn(4)
                     ? random.below(model.numDevices)
                     : over[random.below(static_cast<int64_t>(over.size()))];
  int32_t to = random.below(model.numDevices);
  std::vector<Move> moves;
  if (from == to)
    return moves;
  if (model.numUnits > many && random.oneIn(2)) {
    --trials;
    double share = 0.2 + random.real();
    auto need =
        static_cast<int64_t>(share * static_cast<double>(std::max<int64_t>(
                                         overflow(from), peaks[from] / many)));
    return shift(from, to, need,
                 estimate.heldAt(estimate.peakOf(from), device, from),
                 levels[random.below(static_cast<int64_t>(levels.size()))],
                 /*noisy=*/true);
  }
  bool exchange = random.oneIn(3);
  Unit u = pick(from), v = pick(to);
  if (home[u] != from || !model.mayUse(u, to))
    return moves;
  moves.push_back({u, from});
  move(u, to);
  if (exchange && home[v] == to && v != u && model.mayUse(v, from)) {
    moves.push_back({v, to});
    move(v, from);
  }
  return moves;
}

/// Annealing of the bytes above the limits.
bool Repairer::anneal() {
  double total = 0;
  for (int64_t bytes : peaks)
    total += static_cast<double>(bytes);
  double hot = total / (model.numUnits + 1);
  int64_t budget = trials, least = excess, checked = never;
  Assignment best = device;
  while (trials > 0) {
    std::vector<Move> moves = propose();
    if (moves.empty()) {
      --trials;
      continue;
    }
    auto before = peaks;
    int64_t now = judge();
    if (now == 0)
      return true;
    double share = static_cast<double>(std::max<int64_t>(trials, 0)) /
                   static_cast<double>(budget);
    double limit = static_cast<double>(excess) -
                   hot * share * share * std::log(random.real() + 1e-12);
    if (static_cast<double>(now) > limit) {
      undo(moves);
      peaks = before;
      continue;
    }
    excess = now;
    if (now < least) {
      least = now;
      best = device;
    }
    // Another order may fit where the estimate's do not.
    if (now <= checked) {
      checked = now;
      if (fits())
        return true;
    }
  }
  for (int32_t i = 0; i < model.numNodes; ++i)
    move(model.unit[i], best[i]);
  return false;
}

bool Repairer::run() {
  excess = judge();
  if (excess > 0)
    findLevels();
  while (excess > 0 && trials > 0)
    if (int64_t before = excess; !shiftOne() || excess >= before)
      break;
  if (excess == 0 || fits())
    return true;
  return anneal();
}

} // namespace

bool baechi::placement::memory::repair(const Model &model, Assignment &device,
                                       const RepairEffort &effort) {
  return Repairer(model, device, effort, PeakEstimate(model)).run();
}

bool baechi::placement::memory::repair(
    const Model &model, Assignment &device, const RepairEffort &effort,
    const std::vector<std::vector<int32_t>> &orders) {
  return Repairer(model, device, effort, PeakEstimate(model, orders)).run();
}
