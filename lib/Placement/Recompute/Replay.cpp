//===- Replay.cpp - An order replayed within a number of bytes ------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Recompute/Replay.h"

#include <algorithm>
#include <limits>

using namespace baechi::placement;
using namespace baechi::placement::recompute;

namespace {

constexpr int32_t never = std::numeric_limits<int32_t>::max();
/// Of operators that need each other's results again.
constexpr int32_t deepestChain = 2000;
/// So many are looked at for what a tensor would cost.
constexpr int32_t widestChain = 64;
/// So many tensors and operators in all, and for each operator of the graph.
constexpr int64_t mostVisits = 4'000'000;
constexpr int64_t mostVisitsEach = 1'000;

class Replay {
public:
  Replay(const RepeatGraph &graph, std::span<const int32_t> base, int64_t limit,
         const Price &price, int64_t mostAgainNs)
      : graph(graph), base(base), limit(limit), price(price),
        mostAgainNs(mostAgainNs), level(graph.resident),
        nextUser(graph.numTensors(), 0), locks(graph.numTensors(), 0),
        liveAt(graph.numTensors(), -1), seen(graph.numOps(), 0),
        hasRun(graph.numOps(), 0) {
    sortUses();
    findWhatCanGo();
  }

  std::optional<RepeatedOrder> run() {
    order.peakBytes = level;
    for (position = 0; position < static_cast<int32_t>(base.size()); ++position)
      if (!make(base[position], /*wanted=*/-1, /*depth=*/0))
        return std::nullopt;
    return std::move(order);
  }

private:
  void sortUses();
  void findWhatCanGo();
  bool make(int32_t op, int32_t wanted, int32_t depth);
  bool makeRoom(int64_t bytes);
  int64_t costOf(int32_t tensor);
  int32_t nextUse(int32_t tensor);
  bool isLive(int32_t tensor) const { return liveAt[tensor] >= 0; }
  void begin(int32_t tensor);
  void end(int32_t tensor);
  void endIfUnused(int32_t tensor);

  const RepeatGraph &graph;
  std::span<const int32_t> base;
  int64_t limit;
  const Price &price;
  int64_t mostAgainNs;
  RepeatedOrder order;
  int32_t position = 0;
  int64_t level;
  std::vector<std::vector<int32_t>> uses; ///< per tensor: sorted positions
  std::vector<int32_t> nextUser;          ///< per tensor: the first to come
  std::vector<uint8_t> canGo;             ///< per tensor
  std::vector<int32_t> locks;             ///< per tensor: what waits to run
  std::vector<int32_t> live;              ///< tensors
  std::vector<int32_t> liveAt;            ///< per tensor: its place in `live`
  std::vector<int32_t> seen;              ///< per operator: by which costOf()
  int32_t asked = 0;
  int64_t visits = 0;
  std::vector<uint8_t> hasRun; ///< per operator
};

void Replay::sortUses() {
  std::vector<int32_t> at(graph.numOps());
  for (int32_t p = 0; p < static_cast<int32_t>(base.size()); ++p)
    at[base[p]] = p;
  uses.resize(graph.numTensors());
  for (int32_t tensor = 0; tensor < graph.numTensors(); ++tensor) {
    for (int32_t user : graph.users[tensor])
      uses[tensor].push_back(at[user]);
    std::sort(uses[tensor].begin(), uses[tensor].end());
  }
}

/// A tensor can go if it can be computed again until its last use: its producer
/// until what waits for that begins, and its operands as long as they are there
/// or can themselves be computed again.
void Replay::findWhatCanGo() {
  // Per operator: the last position at which it can run again.
  std::vector<int32_t> at(graph.numOps()), until(graph.numOps(), -1);
  canGo.assign(graph.numTensors(), 0);
  for (int32_t p = 0; p < static_cast<int32_t>(base.size()); ++p)
    at[base[p]] = p;
  auto lastUse = [&](int32_t tensor) {
    return graph.kept[tensor]     ? never
           : uses[tensor].empty() ? -1
                                  : uses[tensor].back();
  };
  for (int32_t op : base) {
    if (graph.canRepeat(op)) {
      until[op] = never;
      for (int32_t waiting : graph.controlUsers[op])
        until[op] = std::min(until[op], at[waiting]);
      for (int32_t tensor : graph.operands[op])
        until[op] =
            std::min(until[op],
                     std::max(lastUse(tensor), until[graph.producer[tensor]]));
    }
    for (int32_t tensor = graph.firstTensor[op];
         tensor < graph.firstTensor[op + 1]; ++tensor)
      canGo[tensor] = graph.bytes[tensor] > 0 && !graph.kept[tensor] &&
                      until[op] >= 0 && lastUse(tensor) <= until[op];
  }
}

int32_t Replay::nextUse(int32_t tensor) {
  const std::vector<int32_t> &all = uses[tensor];
  int32_t &next = nextUser[tensor];
  while (next < static_cast<int32_t>(all.size()) && all[next] < position)
    ++next;
  return next < static_cast<int32_t>(all.size()) ? all[next] : never;
}

void Replay::begin(int32_t tensor) {
  if (isLive(tensor))
    return;
  liveAt[tensor] = static_cast<int32_t>(live.size());
  live.push_back(tensor);
  level += graph.bytes[tensor];
}

void Replay::end(int32_t tensor) {
  int32_t place = liveAt[tensor];
  live[place] = live.back();
  liveAt[live[place]] = place;
  live.pop_back();
  liveAt[tensor] = -1;
  level -= graph.bytes[tensor];
}

/// The operator at `position` has run if it is the one whose turn it is.
void Replay::endIfUnused(int32_t tensor) {
  if (isLive(tensor) && locks[tensor] == 0 && !graph.kept[tensor] &&
      nextUse(tensor) == never)
    end(tensor);
}

/// The time until a tensor that was let go is there again, and of what is gone
/// and it needs.
int64_t Replay::costOf(int32_t tensor) {
  int32_t first = graph.producer[tensor];
  if (!price.chain)
    return graph.timeNs[first] + 1;
  ++asked;
  std::vector<int32_t> chain{first};
  seen[first] = asked;
  int64_t ns = 1;
  ++visits;
  for (size_t next = 0; next < chain.size(); ++next) {
    ns += graph.timeNs[chain[next]];
    ++visits;
    if (static_cast<int32_t>(chain.size()) > widestChain)
      break;
    for (int32_t operand : graph.operands[chain[next]])
      if (int32_t op = graph.producer[operand];
          !isLive(operand) && seen[op] != asked) {
        seen[op] = asked;
        chain.push_back(op);
      }
  }
  return ns;
}

bool Replay::makeRoom(int64_t bytes) {
  while (level + bytes > limit) {
    if (visits > mostVisits + mostVisitsEach * graph.numOps())
      return false;
    int32_t best = -1;
    double least = 0;
    for (int32_t tensor : live) {
      if (!canGo[tensor] || locks[tensor] > 0)
        continue;
      double gain = static_cast<double>(graph.bytes[tensor]);
      if (price.span)
        gain *= nextUse(tensor) - position + 1;
      double each = static_cast<double>(costOf(tensor)) / gain;
      if (best < 0 || each < least || (each == least && tensor < best)) {
        best = tensor;
        least = each;
      }
    }
    if (best < 0)
      return false;
    end(best);
  }
  return true;
}

/// Runs an operator once its operands are there. \p wanted: a result that
/// somebody waits for.
bool Replay::make(int32_t op, int32_t wanted, int32_t depth) {
  if (depth > deepestChain)
    return false;
  auto operands = graph.operands[op];
  std::vector<int32_t> missing;
  // What is there stays while the rest is brought.
  for (int32_t tensor : operands)
    if (isLive(tensor))
      ++locks[tensor];
    else
      missing.push_back(tensor);
  for (int32_t tensor : missing) {
    int32_t from = graph.producer[tensor];
    // The same operator may have brought it with another result.
    if (!isLive(tensor) &&
        (!graph.canRepeat(from) || !make(from, tensor, depth + 1)))
      return false;
    ++locks[tensor];
  }
  bool again = hasRun[op];
  // Results that are still there from before are made a second time.
  if (!makeRoom(graph.needs[op]))
    return false;
  if (again) {
    order.againNs += graph.timeNs[op];
    if (order.againNs > mostAgainNs)
      return false;
  }
  hasRun[op] = 1;
  order.runs.push_back(op);
  order.peakBytes = std::max(order.peakBytes, level + graph.needs[op]);
  for (int32_t tensor = graph.firstTensor[op];
       tensor < graph.firstTensor[op + 1]; ++tensor)
    begin(tensor);
  for (int32_t tensor : operands)
    --locks[tensor];
  // Its own turn: these uses are over.
  if (depth == 0)
    ++position;
  for (int32_t tensor : operands)
    endIfUnused(tensor);
  for (int32_t tensor = graph.firstTensor[op];
       tensor < graph.firstTensor[op + 1]; ++tensor)
    if (tensor != wanted)
      endIfUnused(tensor);
  if (depth == 0)
    --position;
  return true;
}

} // namespace

std::optional<RepeatedOrder> baechi::placement::recompute::replay(
    const RepeatGraph &graph, std::span<const int32_t> base, int64_t limit,
    const Price &price, int64_t mostAgainNs) {
  return Replay(graph, base, limit, price, mostAgainNs).run();
}
