//===- Layout.cpp - What a plan for nodes comes to --------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Nodes/Layout.h"
#include "Memory/Memory.h"
#include "Schedule/Evaluator.h"

#include <algorithm>

using namespace baechi::placement;
using namespace baechi::placement::nodes;

Setting::Setting(const Problem &whole, const Alternatives &alternatives,
                 ReplicaShape shape)
    : shape(shape),
      replica(replicaGraph(whole.graph, alternatives, shape.replicas)),
      chain(replica), machine(replicaMachine(whole.machine, shape)),
      likes(replica.graph.ops.size(), 0), whole(whole) {
  for (int32_t first : replica.first)
    ++likes[first];
  findOrder();
  const std::string &kind = machine.devices.front().kind;
  for (size_t op = 0; op < likes.size(); ++op) {
    auto &times = timesOf.emplace_back();
    times.push_back(pieceTimes.size());
    pieceTimes.push_back(timeOn(replica.graph.ops[op], kind).value_or(0));
    for (const Alternative &way : replica.alternatives.of[op]) {
      times.push_back(pieceTimes.size());
      Operator each;
      for (const Piece &piece : way.pieces) {
        each.timeNs = piece.timeNs;
        pieceTimes.push_back(timeOn(each, kind).value_or(0));
      }
    }
  }
}

void Setting::findOrder() {
  users.resize(likes.size());
  std::vector<int32_t> waits(likes.size(), 0);
  for (const Edge &edge : replica.graph.edges) {
    users[edge.from].push_back(edge.to);
    ++waits[edge.to];
  }
  for (size_t op = 0; op < likes.size(); ++op)
    if (waits[op] == 0)
      order.push_back(static_cast<int32_t>(op));
  for (size_t k = 0; k < order.size(); ++k)
    for (int32_t user : users[order[k]])
      if (--waits[user] == 0)
        order.push_back(user);
}

/// Of an operator on a lane.
int64_t Setting::pieceNs(int32_t op, const Ways &ways, int32_t lanes,
                         int32_t lane) const {
  if (ways[op] < 0)
    return lane == 0 ? pieceTimes[timesOf[op][0]] : 0;
  int64_t sum = 0;
  size_t begin = timesOf[op][ways[op] + 1];
  size_t count = replica.alternatives.of[op][ways[op]].pieces.size();
  for (size_t p = lane; p < count; p += lanes)
    sum += pieceTimes[begin + p];
  return sum;
}

std::vector<int64_t> Setting::loads(const Ways &ways, int32_t lanes) const {
  std::vector<int64_t> load(chain.numLinks, 0);
  for (size_t op = 0; op < likes.size(); ++op) {
    if (likes[op] == 0)
      continue;
    auto id = static_cast<int32_t>(op);
    int64_t longest = 0;
    for (int32_t lane = 0; lane < lanes; ++lane)
      longest = std::max(longest, pieceNs(id, ways, lanes, lane));
    load[chain.linkOf[op]] += longest * likes[op];
  }
  return load;
}

Ways Setting::waysNamed(std::string_view name) const {
  Ways ways;
  for (const auto &of : replica.alternatives.of) {
    auto it = std::find_if(of.begin(), of.end(), [&](const Alternative &a) {
      return a.name == name;
    });
    ways.push_back(it == of.end() ? -1 : static_cast<int32_t>(it - of.begin()));
  }
  return ways;
}

void Setting::setWay(Ways &ways, int32_t first, int32_t way) const {
  for (size_t op = 0; op < ways.size(); ++op)
    if (replica.first[op] == first)
      ways[op] = way;
}

int64_t Setting::lowerBound(const Layout &layout) const {
  const Graph &graph = replica.graph;
  size_t n = graph.ops.size();
  // Of each, the shortest piece: others may not wait for the rest.
  std::vector<int64_t> least(n, 0), head(n, 0), tail(n, 0);
  for (size_t op = 0; op < n; ++op) {
    auto id = static_cast<int32_t>(op);
    int32_t way = layout.ways[op];
    size_t pieces =
        way < 0 ? 1 : replica.alternatives.of[op][way].pieces.size();
    auto count = static_cast<int32_t>(pieces);
    least[op] = pieceNs(id, layout.ways, count, 0);
    for (int32_t p = 1; p < count; ++p)
      least[op] = std::min(least[op], pieceNs(id, layout.ways, count, p));
  }
  for (int32_t op : order)
    for (int32_t user : users[op])
      head[user] = std::max(head[user], head[op] + least[op]);
  for (size_t k = order.size(); k-- > 0;)
    for (int32_t user : users[order[k]])
      tail[order[k]] = std::max(tail[order[k]], least[user] + tail[user]);
  auto stages = static_cast<int32_t>(layout.cuts.size());
  std::vector<int64_t> load(size_t(stages) * layout.lanes, 0);
  std::vector<int64_t> first(stages, never), last(stages, never);
  for (size_t op = 0; op < n; ++op) {
    if (least[op] == 0 || !graph.ops[op].part)
      continue;
    auto stage = static_cast<int32_t>(std::upper_bound(layout.cuts.begin(),
                                                       layout.cuts.end(),
                                                       chain.linkOf[op]) -
                                      layout.cuts.begin() - 1);
    first[stage] = std::min(first[stage], head[op]);
    last[stage] = std::min(last[stage], tail[op]);
    bool isSpread =
        layout.lanes > 1 && layout.ways[op] < 0 && !graph.ops[op].group;
    for (int32_t lane = 0; lane < layout.lanes && !isSpread; ++lane)
      load[size_t(stage) * layout.lanes + lane] +=
          pieceNs(static_cast<int32_t>(op), layout.ways, layout.lanes, lane);
  }
  int64_t bound = 0;
  for (int32_t stage = 0; stage < stages; ++stage)
    if (first[stage] != never)
      bound = std::max(
          bound, first[stage] + last[stage] +
                     *std::max_element(
                         load.begin() + ptrdiff_t(stage) * layout.lanes,
                         load.begin() + ptrdiff_t(stage + 1) * layout.lanes));
  return bound;
}

/// The longest path to the end puts likes of all parts one beside the other, so
/// that a stage hands on the first part when it has nearly done the last.
/// Pipelines want the older part first (one forward, one backward: Narayanan et
/// al., "PipeDream", SOSP 2019), gradients of parameters in their turn or last
/// of all (Qi et al., "Zero Bubble Pipeline Parallelism", ICLR 2024). Keeps the
/// best.
void Setting::schedulePipelines(const Model &model, const Assignment &device,
                                const std::vector<Expansion::Origin> &origins,
                                int64_t cutoff, Schedule &schedule) const {
  std::vector<int64_t> tail(model.numNodes, 0);
  int64_t longest = 1;
  int32_t parts = 1;
  for (auto it = model.order.rbegin(); it != model.order.rend(); ++it) {
    model.forEachUser(*it, [&](int32_t user) {
      tail[*it] = std::max(tail[*it], tail[user]);
    });
    tail[*it] += model.timeOf(*it, device[*it]);
    longest = std::max(longest, tail[*it] + 1);
    parts = std::max(parts,
                     replica.graph.ops[origins[*it].op].part.value_or(0) + 1);
  }
  Scheduler scheduler(model);
  for (bool isLast : {false, true}) {
    std::vector<int64_t> priority = tail;
    for (int32_t i = 0; i < model.numNodes; ++i) {
      const Operator &op = replica.graph.ops[origins[i].op];
      bool ofParameter = op.backward && op.group;
      int64_t before = !op.part                ? parts + 1
                       : isLast && ofParameter ? 0
                                               : parts - *op.part;
      priority[i] += before * longest;
    }
    Schedule next;
    int64_t most = schedule.makespan == never ? cutoff : schedule.makespan - 1;
    scheduler.run(device, {priority, most}, &next);
    if (next.makespan != never && next.makespan <= most)
      schedule = std::move(next);
  }
}

int64_t Setting::evaluate(const Layout &layout, int64_t cutoff,
                          Outcome *outcome) {
  Expansion expansion;
  std::vector<Ring> rings;
  if (!expandReplica(replica, layout.ways, shape, whole.machine, expansion,
                     rings)
           .empty())
    return never;
  cost +=
      (std::ssize(expansion.graph.ops) + std::ssize(expansion.graph.edges)) *
      (layout.cuts.size() > 1 ? 2 : 1);
  Problem problem{std::move(expansion.graph), machine};
  Model model(problem);
  std::vector<int32_t> home(model.numUnits, -1);
  std::vector<int32_t> ringOf(model.numNodes, -1);
  for (const Ring &ring : rings)
    ringOf[ring.exchange] = ring.of;
  std::vector<int32_t> sums(replica.graph.ops.size(), 0);
  Assignment device(model.numNodes, 0);
  for (int32_t i = 0; i < model.numNodes; ++i) {
    const Expansion::Origin &origin = expansion.origins[i];
    auto stage = static_cast<int32_t>(
        std::upper_bound(layout.cuts.begin(), layout.cuts.end(),
                         chain.linkOf[origin.op]) -
        layout.cuts.begin() - 1);
    const Operator &op = replica.graph.ops[origin.op];
    // Ranges of a sum are where the pieces are that read them; whole operators
    // of different parts go round.
    int32_t lane = origin.piece >= 0 ? origin.piece
                   : origin.isHelper ? sums[origin.op]++
                   : op.group        ? 0
                                     : op.part.value_or(0);
    int32_t &d = home[model.unit[i]];
    if (ringOf[i] >= 0) {
      d = nextReplica(shape, device[ringOf[i]]);
    } else if (d < 0) {
      d = stage * layout.lanes + lane % layout.lanes;
      for (int32_t e = 0; e < shape.devices && !model.mayUse(model.unit[i], d);
           ++e)
        if (model.mayUse(model.unit[i], e))
          d = e;
    }
    device[i] = d;
  }
  Schedule schedule;
  Evaluator(model).run(home, {}, cutoff, &schedule);
  if (layout.cuts.size() > 1)
    schedulePipelines(model, device, expansion.origins, cutoff, schedule);
  if (schedule.makespan == never)
    return never;
  std::vector<int64_t> peaks = schedulePeaks(model, device, schedule);
  bool fits = true;
  for (int32_t d = 0; d < model.numDevices; ++d)
    fits &= peaks[d] <= model.deviceMemory(d);
  if (!fits) {
    Scheduler scheduler(model);
    if (!memory::scheduleWithin(scheduler, model, device, schedule) ||
        schedule.makespan > cutoff)
      return never;
  }
  if (outcome) {
    outcome->problem = std::move(problem);
    outcome->device = std::move(device);
    outcome->schedule = schedule;
  }
  return schedule.makespan;
}
