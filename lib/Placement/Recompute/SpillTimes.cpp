//===- SpillTimes.cpp - When tensors go to the pool and come back ---------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Recompute/SpillReplay.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

using namespace baechi::placement;
using namespace baechi::placement::recompute;

static constexpr int64_t notYet = std::numeric_limits<int64_t>::max();

namespace {
/// Operators in their order, transfers as soon as what they wait for is there
/// and the link is free, the one that is due first.
class Times {
public:
  Times(const SpillGraph &graph, const SpillOptions &options,
        std::span<const int32_t> order, std::vector<Stay> stays, int64_t mostNs)
      : graph(graph), tensors(graph.tensors), options(options), mostNs(mostNs) {
    plan.order.assign(order.begin(), order.end());
    plan.stays = std::move(stays);
    std::stable_sort(plan.stays.begin(), plan.stays.end(),
                     [&](const Stay &a, const Stay &b) {
                       return tensorOf(a) != tensorOf(b)
                                  ? tensorOf(a) < tensorOf(b)
                                  : a.gone < b.gone;
                     });
    plan.inPool = graph.inPool;
    plan.startNs.assign(tensors.numOps(), 0);
    for (int32_t op : order)
      leftNs += tensors.timeNs[op];
  }

  std::optional<SpillPlan> run() {
    findTransfers();
    auto count = static_cast<int32_t>(plan.order.size());
    openFetches();
    for (int64_t now = 0; now < notYet; now = nextEvent(now)) {
      for (int32_t &running : onLink)
        if (running >= 0 && endOf(transfers[running]) <= now)
          finish(std::exchange(running, -1));
      startTransfers(now);
      // Operators without a time follow each other at once.
      while (next < count && deviceFreeNs <= now && hasRoom(next) &&
             insDue[next] == 0) {
        int32_t op = plan.order[next];
        plan.startNs[op] = now;
        deviceFreeNs = endNs[op] = now + tensors.timeNs[op];
        leftNs -= tensors.timeNs[op];
        for (int32_t out : outsOf[op])
          open.push_back(out);
        ++next;
        openFetches();
        startTransfers(now);
      }
      if (std::max(now, deviceFreeNs) + leftNs >= mostNs)
        return std::nullopt;
    }
    storeUpdates();
    // They are there all the time.
    for (int32_t argument : plan.inPool)
      plan.startNs[argument] = 0;
    for (int32_t op : plan.order)
      reach(endNs[op]);
    for (const Stay &stay : plan.stays) {
      reach(std::max(stay.outEndNs, stay.inEndNs));
      reach(stay.stashStartNs + stay.stashNs);
    }
    if (plan.makespanNs >= mostNs)
      return std::nullopt;
    return std::move(plan);
  }

private:
  struct Transfer {
    int32_t stay;
    bool isOut;
    int32_t due;   ///< a position that waits for it
    int32_t after; ///< an earlier transfer of the tensor; -1: none
    bool isDone = false;
    int64_t readyNs = notYet; ///< as far as that is known
  };

  int32_t tensorOf(const Stay &stay) const {
    return tensors.firstTensor[stay.tensor.op] + stay.tensor.output;
  }
  int64_t endOf(const Transfer &transfer) const {
    const Stay &stay = plan.stays[transfer.stay];
    return transfer.isOut ? stay.outEndNs : stay.inEndNs;
  }
  void reach(int64_t ns) { plan.makespanNs = std::max(plan.makespanNs, ns); }

  void findTransfers() {
    size_t positions = plan.order.size() + 1;
    endNs.assign(tensors.numOps(), notYet);
    outsOf.resize(tensors.numOps());
    insFrom.resize(positions);
    outsDue.assign(positions, 0);
    insDue.assign(positions, 0);
    int32_t before = -1, tensor = -1;
    for (size_t k = 0; k < plan.stays.size(); ++k) {
      const Stay &stay = plan.stays[k];
      auto add = [&](bool isOut, int32_t due) {
        auto number = static_cast<int32_t>(transfers.size());
        transfers.push_back({static_cast<int32_t>(k), isOut, due, before});
        before = number;
        (isOut ? plan.outBytes : plan.inBytes) += graph.moved[tensor];
        ++(isOut ? outsDue : insDue)[due];
        return number;
      };
      if (tensorOf(stay) != tensor) {
        tensor = tensorOf(stay);
        before = -1;
        if (!graph.atHome[tensor])
          outsOf[stay.tensor.op].push_back(add(true, stay.gone));
      }
      if (stay.use >= 0)
        insFrom[stay.fetch].push_back(add(false, stay.use));
    }
  }

  void openFetches() {
    open.insert(open.end(), insFrom[next].begin(), insFrom[next].end());
  }

  /// All that had to leave before this position has left.
  bool hasRoom(int32_t position) {
    while (leftBefore <= position && outsDue[leftBefore] == 0)
      ++leftBefore;
    return leftBefore > position;
  }

  /// When a transfer that is open may begin, as far as that is known by now.
  int64_t readyOf(const Transfer &transfer, int64_t now) {
    Stay &stay = plan.stays[transfer.stay];
    if (transfer.isOut)
      return endNs[stay.tensor.op];
    // What ran before has let go of its room.
    if ((stay.fetch == next && deviceFreeNs > now) || !hasRoom(stay.fetch))
      return notYet;
    if (transfer.after < 0)
      return now;
    const Transfer &before = transfers[transfer.after];
    if (!before.isDone)
      return notYet;
    if (stay.stashStartNs < 0)
      stash(stay, before, now);
    return std::max(now, stay.stashStartNs + stay.stashNs);
  }

  /// The pool makes another tensor of the one that came before, in its place
  /// unless that is an argument's.
  void stash(Stay &stay, const Transfer &before, int64_t now) {
    const Stay &earlier = plan.stays[before.stay];
    if (before.isOut || earlier.stashStartNs >= 0) {
      stay.stashStartNs = before.isOut ? earlier.outEndNs : earlier.inEndNs;
      return;
    }
    stay.stashNs = graph.inNs[tensorOf(stay)];
    stay.stashStartNs = std::max(now, poolFreeNs);
    poolFreeNs = stay.stashStartNs + stay.stashNs;
    poolBusy.emplace_back(stay.stashStartNs, poolFreeNs);
  }

  void startTransfers(int64_t now) {
    for (int link = 0; link < (options.isShared ? 1 : 2); ++link) {
      if (onLink[link] >= 0)
        continue;
      size_t best = open.size();
      for (size_t k = 0; k < open.size(); ++k) {
        Transfer &transfer = transfers[open[k]];
        if (!options.isShared && transfer.isOut != (link == 0))
          continue;
        transfer.readyNs = readyOf(transfer, now);
        if (transfer.readyNs <= now &&
            (best == open.size() || transfer.due < transfers[open[best]].due))
          best = k;
      }
      if (best == open.size())
        continue;
      onLink[link] = open[best];
      open.erase(open.begin() + static_cast<std::ptrdiff_t>(best));
      const Transfer &transfer = transfers[onLink[link]];
      Stay &stay = plan.stays[transfer.stay];
      const auto &takes = transfer.isOut ? graph.outNs : graph.inNs;
      (transfer.isOut ? stay.outStartNs : stay.inStartNs) = now;
      (transfer.isOut ? stay.outEndNs : stay.inEndNs) =
          now + takes[tensorOf(stay)];
    }
  }

  void finish(int32_t number) {
    Transfer &transfer = transfers[number];
    transfer.isDone = true;
    Stay &stay = plan.stays[transfer.stay];
    --(transfer.isOut ? outsDue : insDue)[transfer.due];
    if (transfer.isOut && !graph.mustGo[tensorOf(stay)])
      stay.stashStartNs = stay.outEndNs;
  }

  int64_t nextEvent(int64_t now) const {
    int64_t then = notYet;
    auto see = [&](int64_t at) {
      if (at > now)
        then = std::min(then, at);
    };
    see(deviceFreeNs);
    for (int32_t running : onLink)
      if (running >= 0)
        see(endOf(transfers[running]));
    for (int32_t waiting : open)
      see(transfers[waiting].readyNs);
    return then;
  }

  /// An argument's next value takes its place when the argument was read last;
  /// the pool does one thing at a time.
  void storeUpdates() {
    std::sort(poolBusy.begin(), poolBusy.end());
    for (int32_t argument : plan.inPool) {
      TensorName next = options.nextValue[argument];
      if (next.op < 0)
        continue;
      Stay *update = nullptr;
      int64_t from = 0;
      for (Stay &stay : plan.stays) {
        if (stay.tensor == next)
          update = &stay;
        if (stay.tensor.op == argument)
          from =
              std::max({from, stay.inEndNs, stay.stashStartNs + stay.stashNs});
      }
      for (int32_t user : tensors.users[tensors.firstTensor[argument]])
        from = std::max(from, endNs[user] + options.out.latencyNs);
      update->stashNs = graph.inNs[tensorOf(*update)];
      from = std::max(from, update->outEndNs);
      auto gap = poolBusy.begin();
      for (; gap != poolBusy.end(); ++gap) {
        if (gap->first >= from + update->stashNs)
          break;
        from = std::max(from, gap->second);
      }
      update->stashStartNs = from;
      poolBusy.insert(gap, {from, from + update->stashNs});
    }
  }

  const SpillGraph &graph;
  const RepeatGraph &tensors;
  const SpillOptions &options;
  SpillPlan plan;
  std::vector<Transfer> transfers;
  std::vector<std::vector<int32_t>> outsOf;  ///< per operator
  std::vector<std::vector<int32_t>> insFrom; ///< per position
  /// Per position: transfers that it waits for.
  std::vector<int32_t> outsDue, insDue;
  std::vector<int32_t> open; ///< transfers that could begin
  std::array<int32_t, 2> onLink{-1, -1};
  std::vector<int64_t> endNs; ///< per operator, as far as they have begun
  std::vector<std::pair<int64_t, int64_t>> poolBusy;
  int64_t mostNs;
  int64_t leftNs = 0; ///< of the operators that have not begun
  int64_t poolFreeNs = 0, deviceFreeNs = 0;
  int32_t next = 0;       ///< position of the operator to run
  int32_t leftBefore = 0; ///< all that had to leave before it has left
};
} // namespace

std::optional<SpillPlan> baechi::placement::recompute::timesOf(
    const SpillGraph &graph, const SpillOptions &options,
    std::span<const int32_t> order, std::vector<Stay> stays, int64_t mostNs) {
  return Times(graph, options, order, std::move(stays), mostNs).run();
}
