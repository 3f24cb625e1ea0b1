//===- SmallFitPlan.cpp - What a way through states does ------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Recompute/SmallFit.h"

#include <algorithm>
#include <utility>

using namespace baechi::placement;
using namespace baechi::placement::recompute;
using namespace baechi::placement::recompute::small;

namespace {

class PlanWriter {
public:
  explicit PlanWriter(const SpillGraph &graph)
      : graph(graph), tensors(graph.tensors), name(tensors.numTensors()),
        stays(tensors.numTensors()) {}

  std::optional<RunsWithStays> write(std::span<const State> way) {
    for (const State &state : way)
      hold(state);
    for (size_t step = 1; step < way.size(); ++step)
      follow(way[step - 1], way[step]);
    for (int32_t tensor = 0; tensor < tensors.numTensors(); ++tensor)
      close(tensor, /*isLatest=*/true);
    if (!isPossible)
      return std::nullopt;
    finish();
    return std::move(found);
  }

private:
  void hold(const State &state) {
    int64_t bytes = tensors.resident;
    for (Set here = state.here; here; here &= here - 1)
      bytes += tensors.bytes[firstOf(here)];
    if (state.running != none)
      bytes += tensors.scratch[state.running];
    plan.peakBytes = std::max(plan.peakBytes, bytes);
  }

  void follow(const State &before, const State &now) {
    auto position = static_cast<int32_t>(found.runs.size());
    // What has been let go since.
    for (Set gone = before.here & ~now.here; gone; gone &= gone - 1)
      if (std::vector<Stay> &all = stays[firstOf(gone)];
          !all.empty() && all.back().gone < 0)
        all.back().gone = position;
    if (now.act == Act::Run) {
      run(now, position);
    } else if (now.act == Act::Out) {
      Stay stay{name[now.what]};
      stay.outStartNs = now.now;
      stay.outEndNs = stay.stashStartNs = now.moveEnd;
      stays[now.what].push_back(stay);
    } else if (now.act == Act::In) {
      fetch(now, position - (before.running != none));
    }
  }

  void run(const State &now, int32_t position) {
    for (int32_t tensor : tensors.operands[now.what])
      for (Stay &stay : stays[tensor])
        if (stay.fetch >= 0 && stay.use < 0)
          stay.use = position;
    for (int32_t tensor = tensors.firstTensor[now.what];
         tensor < tensors.firstTensor[now.what + 1]; ++tensor) {
      close(tensor, /*isLatest=*/false);
      name[tensor] = {position, tensor - tensors.firstTensor[now.what]};
    }
    found.runs.push_back(now.what);
    plan.startNs.push_back(now.now);
  }

  void fetch(const State &now, int32_t position) {
    std::vector<Stay> &all = stays[now.what];
    if (all.back().fetch >= 0) {
      // It was fetched before: the pool makes another one of it, one tensor
      // after the other.
      Stay again{name[now.what], all.back().use + 1};
      again.stashStartNs = std::max(copyEnd, all.back().inEndNs);
      again.stashNs = graph.inNs[now.what];
      copyEnd = again.stashStartNs + again.stashNs;
      isPossible &= copyEnd <= now.now;
      all.push_back(again);
    }
    all.back().fetch = position;
    all.back().inStartNs = now.now;
    all.back().inEndNs = now.moveEnd;
  }

  /// Nobody reads what this run has made any more, or it is the last one.
  void close(int32_t tensor, bool isLatest) {
    std::vector<Stay> &all = stays[tensor];
    // What comes and goes unread may come later at once.
    for (size_t k = 0; k + 1 < all.size();)
      if (all[k].use < 0) {
        all[k].fetch = all[k + 1].fetch;
        all[k].use = all[k + 1].use;
        all[k].inStartNs = all[k + 1].inStartNs;
        all[k].inEndNs = all[k + 1].inEndNs;
        all.erase(all.begin() + static_cast<std::ptrdiff_t>(k) + 1);
      } else {
        ++k;
      }
    bool isUnread = !all.empty() && all.back().use < 0;
    if (isUnread && all.size() == 1 && all.back().gone >= 0 && isLatest &&
        tensors.kept[tensor]) {
      // A result stays away.
      all.back().fetch = -1;
      all.back().inStartNs = all.back().inEndNs = -1;
    } else if (isUnread) {
      all.pop_back();
    }
    plan.stays.insert(plan.stays.end(), all.begin(), all.end());
    all.clear();
  }

  void finish() {
    std::stable_sort(plan.stays.begin(), plan.stays.end(),
                     [](const Stay &a, const Stay &b) {
                       return std::pair(a.tensor.op, a.tensor.output) <
                              std::pair(b.tensor.op, b.tensor.output);
                     });
    for (const Stay &stay : plan.stays) {
      int32_t tensor =
          tensors.firstTensor[found.runs[stay.tensor.op]] + stay.tensor.output;
      plan.outBytes += stay.outStartNs >= 0 ? graph.moved[tensor] : 0;
      plan.inBytes += stay.inStartNs >= 0 ? graph.moved[tensor] : 0;
      plan.makespanNs = std::max({plan.makespanNs, stay.outEndNs, stay.inEndNs,
                                  stay.stashStartNs + stay.stashNs});
    }
    for (size_t run = 0; run < found.runs.size(); ++run) {
      plan.order.push_back(static_cast<int32_t>(run));
      plan.makespanNs = std::max(
          plan.makespanNs, plan.startNs[run] + tensors.timeNs[found.runs[run]]);
    }
  }

  const SpillGraph &graph;
  const RepeatGraph &tensors;
  RunsWithStays found;
  SpillPlan &plan = found.plan;
  std::vector<TensorName> name;         ///< of what its latest run has made
  std::vector<std::vector<Stay>> stays; ///< of that, per tensor
  int64_t copyEnd = 0;                  ///< of the pool
  bool isPossible = true;
};

} // namespace

std::optional<RunsWithStays>
baechi::placement::recompute::small::planOf(const SpillGraph &graph,
                                            std::span<const State> way) {
  return PlanWriter(graph).write(way);
}
