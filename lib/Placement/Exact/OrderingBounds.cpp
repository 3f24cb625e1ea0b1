//===- OrderingBounds.cpp - What a started schedule must still take -------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Exact/Ordering.h"

#include <algorithm>

using namespace baechi::placement;
using namespace baechi::placement::exact;

/// When \p copy, which has not been started, can be complete, each hop on its
/// own.
int64_t Ordering::arrivalOf(const State &state, const Heads &heads,
                            int32_t index) const {
  const Copy &copy = problem.copies[index];
  const Moved &tensor = problem.moved[copy.of];
  int64_t available = heads.available[copy.of];
  if (instance.numDevices == 2) {
    auto [a, b] = problem.carriers(tensor.home, copy.to);
    for (int32_t carrier : {a, b})
      if (carrier >= 0)
        available = std::max(available, state.linkFree[carrier]);
  }
  int64_t soonest =
      available + instance.pathNs(copy.tensor, tensor.home, copy.to);
  for (int32_t c = tensor.firstCopy; c < tensor.endCopy; ++c) {
    if (!state.progress.copyStarted[c])
      continue;
    int64_t ns = instance.pathNs(copy.tensor, problem.copies[c].to, copy.to);
    if (ns != never)
      soonest = std::min(soonest, std::max(state.now, state.copyEnd[c]) + ns);
  }
  return soonest;
}

/// Longest paths from what has started; false when one reaches the cut-off.
bool Ordering::findHeads(const State &state, Heads &heads) const {
  const Progress &at = state.progress;
  heads.available.assign(problem.moved.size(), 0);
  // Copies of a tensor are looked at when its producer is.
  auto offer = [&](int32_t i, int64_t end) {
    auto [begin, last] = model.tensorsOf(i);
    for (int32_t t = begin; t < last; ++t)
      if (int32_t k = problem.movedOf[t]; k >= 0) {
        heads.available[k] = std::max(state.now, end);
        for (int32_t c = problem.moved[k].firstCopy;
             c < problem.moved[k].endCopy; ++c)
          heads.arrival[c] =
              at.copyStarted[c] ? state.copyEnd[c] : arrivalOf(state, heads, c);
      }
  };
  int64_t bound = 0;
  for (int32_t i : model.order) {
    if (at.started >> i & 1) {
      bound = std::max(bound, state.end[i]);
      heads.node[i] = state.end[i] - problem.time[i];
      offer(i, state.end[i]);
      continue;
    }
    int64_t head = state.now;
    if (problem.time[i] > 0)
      head = std::max(head, state.deviceFree[problem.device[i]]);
    forEachBit(problem.localSources[i], [&](int32_t source) {
      head = std::max(head, heads.node[source] + problem.time[source]);
    });
    for (int32_t c : problem.copiesRead[i])
      head = std::max(head, heads.arrival[c]);
    for (const auto &signal : problem.signalsTo[i])
      head = std::max(head, heads.node[signal.from] +
                                problem.time[signal.from] + signal.latency);
    heads.node[i] = head;
    bound = std::max(bound, head + problem.tail[i]);
    if (bound >= cutoff)
      return false;
    offer(i, head + problem.time[i]);
  }
  for (size_t c = 0; c < problem.copies.size(); ++c)
    if (at.copyStarted[c])
      bound = std::max(bound, state.copyEnd[c]);
  return bound < cutoff;
}

bool Ordering::machinesAllow(const State &state, const Heads &heads) {
  if (cutoff == never)
    return true;
  for (int32_t d = 0; d < instance.numDevices; ++d) {
    jobs.clear();
    for (int32_t i = 0; i < instance.numNodes; ++i)
      if (problem.device[i] == d && !(state.progress.started >> i & 1) &&
          problem.time[i] > 0)
        jobs.push_back({heads.node[i], problem.time[i],
                        problem.tail[i] - problem.time[i]});
    if (jobs.size() > 1 && oneMachineBound(jobs) >= cutoff)
      return false;
  }
  return true;
}

/// Transfers that must still come, by what carries them. Beyond two devices a
/// copy needs a last hop into its device from anywhere, and a tensor that has
/// not been sent a first hop out of home.
bool Ordering::linksAllow(const State &state, const Heads &heads) {
  if (cutoff == never || linkModel == LinkModel::Unlimited)
    return true;
  const Progress &at = state.progress;
  int32_t devices = instance.numDevices;
  bool direct = devices == 2;
  if (linkModel == LinkModel::Parallel && !direct)
    return true;
  // With two devices a carrier has either the transfers into one of them, or
  // all.
  bool shared = linkModel == LinkModel::Sequential;
  for (int32_t d = 0; d < devices; ++d) {
    auto addIn = [&](int32_t c) {
      const Copy &copy = problem.copies[c];
      int64_t least = never;
      forEachBit(copy.sources, [&](int32_t from) {
        least = std::min(least, problem.copyNs(copy, from));
      });
      jobs.push_back({heads.available[copy.of], least, copy.tail});
    };
    auto addOut = [&](size_t k) {
      const Moved &tensor = problem.moved[k];
      int64_t least = never, through = 0;
      for (int32_t c = tensor.firstCopy; c < tensor.endCopy; ++c) {
        const Copy &copy = problem.copies[c];
        if (at.copyStarted[c])
          return;
        if (copy.sources >> tensor.home & 1)
          least = std::min(least, problem.copyNs(copy, tensor.home));
        if (copy.readers)
          through = std::max(
              through,
              instance.pathNs(copy.tensor, tensor.home, copy.to) + copy.tail);
      }
      jobs.push_back({heads.available[k], least, through - least});
    };
    auto raise = [&] {
      return jobs.size() < 2 || oneMachineBound(jobs) < cutoff;
    };
    jobs.clear();
    for (size_t c = 0; c < problem.copies.size(); ++c)
      if (problem.copies[c].readers && !at.copyStarted[c] &&
          (problem.copies[c].to == d || (shared && direct)))
        addIn(static_cast<int32_t>(c));
    if (!shared || direct) {
      if (!raise())
        return false;
      jobs.clear();
    }
    if (direct)
      continue;
    for (size_t k = 0; k < problem.moved.size(); ++k)
      if (problem.moved[k].home == d)
        addOut(k);
    if (!raise())
      return false;
  }
  return true;
}
