//===- Descent.cpp - Choices within the limit -------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Choice/Descent.h"

#include <algorithm>
#include <numeric>
#include <queue>

using namespace baechi::placement;
using namespace baechi::placement::choice;

namespace {

std::vector<double> excess(const Core &core, const Strategies &choice) {
  std::vector<double> bytes = core.usage(choice);
  for (size_t t = 0; t < bytes.size(); ++t)
    bytes[t] -= core.capacity[t];
  return bytes;
}

} // namespace

Descent::Descent(const Core &core, const Strategies &start, WorkMeter &meter)
    : core(core), chosen(start), tree(excess(core, start)), meter(meter),
      before(core.size(), -1), besideSums(core.size()) {}

void Descent::change(int32_t node, int32_t strategy) {
  if (before[node] < 0) {
    before[node] = chosen[node];
    changed.push_back(node);
  }
  const std::vector<Member> &members = core.members[node];
  for (const Member &member : members) {
    double bytes = member.usage[strategy] - member.usage[chosen[node]];
    if (bytes != 0)
      tree.add(member.begin, member.end, bytes);
  }
  meter.charge(20 * members.size() + core.neighbours[node].size());
  chosen[node] = strategy;
  for (const Neighbour &neighbour : core.neighbours[node])
    besideSums[neighbour.node].clear();
}

double Descent::costChange() const {
  double sum = 0;
  for (int32_t i : changed) {
    int32_t now = chosen[i], then = before[i];
    size_t own = core.costs[i].size();
    sum += core.costs[i][now] - core.costs[i][then];
    for (const Neighbour &neighbour : core.neighbours[i]) {
      int32_t j = neighbour.node;
      if (before[j] >= 0 && j < i)
        continue; // counted there
      int32_t nowBeside = chosen[j];
      int32_t thenBeside = before[j] >= 0 ? before[j] : nowBeside;
      sum += neighbour.table[nowBeside * own + now] -
             neighbour.table[thenBeside * own + then];
    }
    meter.charge(core.neighbours[i].size());
  }
  return sum;
}

void Descent::commit() {
  for (int32_t i : changed)
    before[i] = -1;
  changed.clear();
}

void Descent::rollBack() {
  std::vector<int32_t> nodes = changed;
  for (int32_t i : nodes)
    if (chosen[i] != before[i])
      change(i, before[i]);
  commit();
}

const std::vector<double> &Descent::beside(int32_t node) {
  std::vector<double> &sums = besideSums[node];
  if (sums.empty()) {
    core.beside(node, chosen, sums);
    meter.charge(sums.size() * (1 + core.neighbours[node].size()));
  }
  return sums;
}

/// The cheapest move of a node that frees bytes in a slot.
Descent::Move Descent::cheapest(int32_t node, int32_t slot, double excess,
                                const Costs &priced) {
  const std::vector<double> &sums = beside(node), &own = priced[node];
  int32_t from = chosen[node];
  freed.assign(own.size(), 0);
  for (const Member &member : core.members[node]) {
    if (member.begin > slot)
      break; // they are sorted
    if (member.end <= slot)
      continue;
    for (size_t s = 0; s < freed.size(); ++s)
      freed[s] += member.usage[from] - member.usage[s];
  }
  meter.charge(own.size() + core.members[node].size());
  Move best{anyForbidden, node, -1};
  for (size_t s = 0; s < freed.size(); ++s) {
    if (freed[s] <= 0)
      continue;
    double loss = sums[s] + own[s] - sums[from] - own[from];
    double score = loss > 0 ? loss / std::min(freed[s], excess) : loss;
    if (score < best.score)
      best = {score, node, static_cast<int32_t>(s)};
  }
  return best;
}

/// Frees what a slot has too much.
bool Descent::relieve(int32_t slot, double excess, const Costs &priced) {
  std::priority_queue<Move, std::vector<Move>, std::greater<>> moves;
  auto push = [&](int32_t node) {
    Move move = cheapest(node, slot, excess, priced);
    if (move.strategy >= 0)
      moves.push(move);
  };
  int32_t last = -1;
  core.visitAlive(slot, [&](int32_t node, const Member &) {
    if (node != last)
      push(node);
    last = node;
  });
  while (excess > 0) {
    if (moves.empty() || meter.isSpent())
      return false;
    Move move = moves.top();
    moves.pop();
    // What was done since may have made it dearer.
    Move now = cheapest(move.node, slot, excess, priced);
    if (now.strategy < 0)
      continue;
    if (!moves.empty() && now > moves.top()) {
      moves.push(now);
      continue;
    }
    excess -= freed[now.strategy];
    change(now.node, now.strategy);
    push(now.node);
  }
  return true;
}

bool Descent::repair(const Costs &priced) {
  size_t most = 50 + core.capacity.size();
  for (size_t step = 0; tree.most() > 0; ++step)
    if (step == most || !relieve(tree.fullest(), tree.most(), priced))
      return false;
  return true;
}

void Descent::descend(Random &random) {
  std::vector<int32_t> order(core.size());
  std::iota(order.begin(), order.end(), 0);
  std::vector<std::pair<double, int32_t>> better;
  for (bool improved = true; improved && !meter.isSpent();) {
    improved = false;
    for (size_t k = order.size(); k > 1; --k)
      std::swap(order[k - 1], order[random.below(static_cast<int64_t>(k))]);
    for (int32_t i : order) {
      const std::vector<double> &sums = beside(i);
      const std::vector<double> &own = core.costs[i];
      int32_t had = chosen[i];
      double now = sums[had] + own[had];
      meter.charge(sums.size());
      better.clear();
      for (size_t s = 0; s < sums.size(); ++s)
        if (sums[s] + own[s] < now)
          better.push_back({sums[s] + own[s], static_cast<int32_t>(s)});
      std::sort(better.begin(), better.end());
      for (auto [cost, s] : better) {
        change(i, s);
        if (fits()) {
          improved = true;
          break;
        }
        change(i, had);
      }
    }
  }
}
