//===- Chain.cpp - An order as a chain of stages --------------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Recompute/Chain.h"

#include <algorithm>
#include <utility>

using namespace baechi::placement;
using namespace baechi::placement::recompute;

Chain::Chain(const RepeatGraph &graph, std::vector<int32_t> order, int32_t turn,
             int32_t mostStages)
    : graph(&graph), base(std::move(order)), turn(turn),
      position(graph.numOps()) {
  for (int32_t p = 0; p < static_cast<int32_t>(base.size()); ++p)
    position[base[p]] = p;
  findUses();
  findLoose();
  findBack();
  chooseCuts(mostStages);
  findKept();
  findMissing();
  countOthers();
}

void Chain::findUses() {
  int32_t count = graph->numTensors();
  lastForward.assign(count, -1);
  firstBack.assign(count, -1);
  lastBack.assign(count, -1);
  for (int32_t tensor = 0; tensor < count; ++tensor)
    for (int32_t user : graph->users[tensor]) {
      int32_t at = position[user];
      if (at < turn) {
        lastForward[tensor] = std::max(lastForward[tensor], at);
        continue;
      }
      lastBack[tensor] = std::max(lastBack[tensor], at);
      firstBack[tensor] =
          firstBack[tensor] < 0 ? at : std::min(firstBack[tensor], at);
    }
}

/// An operator may run again until what waits for it has run, and must until
/// the way back reads nothing of what comes behind it.
void Chain::findLoose() {
  isLoose.assign(graph->numTensors(), 0);
  int32_t behind = turn;
  for (int32_t p = turn; p-- > 0;) {
    int32_t op = base[p];
    bool mayRepeat = graph->canRepeat(op);
    for (int32_t waiting : graph->controlUsers[op])
      mayRepeat &= position[waiting] >= behind;
    for (int32_t tensor = graph->firstTensor[op];
         tensor < graph->firstTensor[op + 1]; ++tensor) {
      isLoose[tensor] =
          mayRepeat && graph->bytes[tensor] > 0 && !graph->kept[tensor];
      if (isLoose[tensor])
        behind = std::max(behind, lastBack[tensor] + 1);
    }
  }
}

void Chain::findBack() {
  backAt.assign(turn + 1, turn);
  for (int32_t p = turn; p-- > 0;) {
    backAt[p] = backAt[p + 1];
    for (int32_t tensor = graph->firstTensor[base[p]];
         tensor < graph->firstTensor[base[p] + 1]; ++tensor)
      if (isLoose[tensor])
        backAt[p] = std::max(backAt[p], lastBack[tensor] + 1);
  }
  readUntil.assign(graph->numTensors(), -1);
  for (int32_t tensor = 0; tensor < graph->numTensors(); ++tensor) {
    if (!isLoose[tensor])
      continue;
    readUntil[tensor] = lastForward[tensor];
    if (firstBack[tensor] < 0)
      continue;
    // The cuts whose way back begins to read it: backAt falls.
    auto end =
        std::partition_point(backAt.begin(), backAt.end(), [&](int32_t at) {
          return at > firstBack[tensor];
        });
    readUntil[tensor] = std::max(
        readUntil[tensor], static_cast<int32_t>(end - backAt.begin()) - 1);
  }
}

/// Before the operators that make what is loose; where these are many, where
/// fewest bytes are kept among as many that are made.
void Chain::chooseCuts(int32_t mostStages) {
  std::vector<int64_t> keptAtCut(turn + 2, 0);
  std::vector<int32_t> makers;
  std::vector<int64_t> made;
  int64_t all = 0;
  for (int32_t p = 0; p < turn; ++p) {
    int64_t bytes = 0;
    for (int32_t tensor = graph->firstTensor[base[p]];
         tensor < graph->firstTensor[base[p] + 1]; ++tensor) {
      if (!isLoose[tensor])
        continue;
      bytes += graph->bytes[tensor];
      if (readUntil[tensor] > p) {
        keptAtCut[p + 1] += graph->bytes[tensor];
        keptAtCut[readUntil[tensor] + 1] -= graph->bytes[tensor];
      }
    }
    if (bytes > 0) {
      makers.push_back(p);
      made.push_back(all);
      all += bytes;
    }
  }
  for (int32_t p = 0; p < turn; ++p)
    keptAtCut[p + 1] += keptAtCut[p];
  cut.push_back(0);
  auto count = static_cast<int32_t>(makers.size());
  if (count <= mostStages) {
    for (int32_t k = 1; k < count; ++k)
      cut.push_back(makers[k]);
  } else {
    for (int32_t k = 0, stage = 0; k < count; ++stage) {
      int32_t best = k;
      for (;
           k < count && (k == best || made[k] * mostStages < all * (stage + 1));
           ++k)
        if (keptAtCut[makers[k]] < keptAtCut[makers[best]])
          best = k;
      if (makers[best] > cut.back())
        cut.push_back(makers[best]);
    }
  }
  if (turn > cut.back())
    cut.push_back(turn);
  for (int32_t p : cut)
    back.push_back(backAt[p]);
}

void Chain::findKept() {
  int32_t stages = numStages();
  stageOf.assign(graph->numTensors(), -1);
  for (auto &at : keptAt)
    at.resize(stages + 1);
  for (int32_t stage = 0; stage < stages; ++stage)
    for (int32_t p = cut[stage]; p < cut[stage + 1]; ++p)
      for (int32_t tensor = graph->firstTensor[base[p]];
           tensor < graph->firstTensor[base[p] + 1]; ++tensor) {
        if (!isLoose[tensor])
          continue;
        stageOf[tensor] = stage;
        for (int32_t at = stage + 1;
             at <= stages && cut[at] <= readUntil[tensor]; ++at)
          keptAt[Checkpoint][at].push_back(tensor);
      }
  std::vector<int32_t> seen(graph->numTensors(), -1);
  for (int32_t at = 1; at <= stages; ++at) {
    std::vector<int32_t> &kept = keptAt[WithStage][at];
    kept = keptAt[Checkpoint][at];
    for (int32_t tensor : kept)
      seen[tensor] = at;
    for (int32_t p = back[at]; p < back[at - 1]; ++p)
      for (int32_t tensor : graph->operands[base[p]])
        if (isLoose[tensor] && std::exchange(seen[tensor], at) != at)
          kept.push_back(tensor);
  }
}

void Chain::findMissing() {
  int32_t stages = numStages();
  std::vector<int32_t> seen(graph->numTensors(), -1);
  for (Keep keep : keeps) {
    missing[keep].resize(stages + 1);
    for (int32_t at = 1; at <= stages; ++at) {
      int32_t stamp = at * 2 + keep;
      for (int32_t tensor : kept(at, keep))
        seen[tensor] = stamp;
      missing[keep][at].assign(at, -1);
      for (int32_t stage = 0; stage < at; ++stage)
        for (int32_t p = back[stage + 1]; p < back[stage]; ++p)
          for (int32_t tensor : graph->operands[base[p]])
            if (isLoose[tensor] && seen[tensor] != stamp)
              missing[keep][at][stage] =
                  std::max(missing[keep][at][stage], stageOf[tensor]);
    }
  }
}

int32_t Chain::returnsTo(int32_t from, int32_t at, Keep keep) const {
  int32_t to = at;
  while (to > from && missing[keep][at][to - 1] < from)
    --to;
  return to;
}

/// What is not loose is there until its last reader has run for the last time.
void Chain::countOthers() {
  auto count = static_cast<int32_t>(base.size());
  std::vector<int64_t> change(count + 1, 0);
  before.assign(count, 0);
  whileRuns.assign(count, 0);
  std::vector<int32_t> again(count, -1);
  for (int32_t stage = 0; stage < numStages(); ++stage)
    for (int32_t p = cut[stage]; p < cut[stage + 1]; ++p)
      for (int32_t tensor = graph->firstTensor[base[p]];
           tensor < graph->firstTensor[base[p] + 1]; ++tensor)
        if (isLoose[tensor])
          again[p] = back[stage + 1];
  for (int32_t p = 0; p < count; ++p)
    for (int32_t tensor = graph->firstTensor[base[p]];
         tensor < graph->firstTensor[base[p] + 1]; ++tensor) {
      if (isLoose[tensor])
        continue;
      int32_t last = graph->kept[tensor] ? count - 1 : p;
      for (int32_t user : graph->users[tensor])
        last = std::max({last, position[user], again[position[user]]});
      whileRuns[p] += graph->bytes[tensor];
      last = std::min(last, count - 1);
      if (last > p) {
        change[p + 1] += graph->bytes[tensor];
        change[last + 1] -= graph->bytes[tensor];
      }
    }
  int64_t level = graph->resident;
  for (int32_t p = 0; p < count; ++p) {
    level += change[p];
    before[p] = level;
    whileRuns[p] += level;
  }
}

std::vector<int32_t> baechi::placement::recompute::runsAgain(const Chain &chain,
                                                             int32_t from,
                                                             int32_t at,
                                                             Chain::Keep keep) {
  const RepeatGraph &graph = *chain.graph;
  std::vector<int32_t> wanted = chain.kept(at, keep), runs;
  std::sort(wanted.begin(), wanted.end());
  std::vector<uint8_t> isRead(graph.numTensors(), 0);
  for (int32_t tensor : wanted)
    isRead[tensor] = 1;
  for (int32_t p = chain.cut[at]; p-- > chain.cut[from];) {
    int32_t op = chain.base[p];
    bool runsHere = false;
    for (int32_t tensor = graph.firstTensor[op];
         tensor < graph.firstTensor[op + 1]; ++tensor)
      runsHere |= chain.isLoose[tensor] && isRead[tensor];
    if (!runsHere)
      continue;
    runs.push_back(op);
    for (int32_t tensor : graph.operands[op])
      isRead[tensor] = 1;
  }
  std::reverse(runs.begin(), runs.end());
  return runs;
}

std::vector<int32_t>
baechi::placement::recompute::turnsOf(const RepeatGraph &graph,
                                      std::span<const int32_t> base) {
  auto count = static_cast<int32_t>(base.size());
  std::vector<int32_t> position(graph.numOps());
  for (int32_t p = 0; p < count; ++p)
    position[base[p]] = p;
  std::vector<double> waits(count + 2, 0);
  for (int32_t tensor = 0; tensor < graph.numTensors(); ++tensor) {
    if (graph.kept[tensor] || !graph.canRepeat(graph.producer[tensor]))
      continue;
    int32_t made = position[graph.producer[tensor]], last = made;
    for (int32_t user : graph.users[tensor])
      last = std::max(last, position[user]);
    // Neither bytes nor positions say it alone: what is read at once counts
    // for nothing.
    double each =
        static_cast<double>(graph.bytes[tensor]) * std::max(last - made - 1, 0);
    waits[made + 1] += each;
    waits[last + 1] -= each;
  }
  for (int32_t p = 0; p <= count; ++p)
    waits[p + 1] += waits[p];
  double most = *std::max_element(waits.begin(), waits.begin() + count + 1);
  if (most <= 0)
    return {};
  // Before and after what is read at once there are as many.
  int32_t first = 0;
  while (waits[first] < most)
    ++first;
  int32_t last = first;
  while (last + 1 <= count && waits[last + 1] >= most)
    ++last;
  std::vector<int32_t> turns;
  for (int32_t p : {(first + last) / 2, first, last})
    if (std::find(turns.begin(), turns.end(), p) == turns.end())
      turns.push_back(p);
  return turns;
}
