//===- FitMeans.cpp - What makes a step fit one device --------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Study/FitMeans.h"
#include "Baechi/Placement/Io/Files.h"
#include "Baechi/Placement/Model/Pool.h"
#include "Baechi/Placement/Recompute/Rewrite.h"
#include "Baechi/Placement/Recompute/Sums.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <stdexcept>

using namespace baechi::placement;
using namespace baechi::placement::study;

static constexpr int64_t ample = std::numeric_limits<int64_t>::max() / 4;
/// So many of the rewrites are tried with a pool.
static constexpr size_t mostRewrites = 6;

FitMeans::FitMeans(const Problem &given, const PlaceOptions &place,
                   bool keepsPlans, FitSweep &about)
    : given(given), graph(given.graph), place(place), keepsPlans(keepsPlans),
      about(about) {
  findDevice();
}

void FitMeans::say(const std::string &what) const {
  if (place.cancelled && place.cancelled())
    throw WasCancelled();
  if (place.progress)
    place.progress(what);
}

/// The first that can run all operators, and the pool beside it.
void FitMeans::findDevice() {
  auto runsAll = [&](const Device &device) {
    return std::all_of(graph.ops.begin(), graph.ops.end(),
                       [&](const Operator &op) {
                         return timeOn(op, device.kind).has_value();
                       });
  };
  auto count = static_cast<int32_t>(given.machine.devices.size());
  while (device < count && (isPool(given.machine.devices[device]) ||
                            !runsAll(given.machine.devices[device])))
    ++device;
  if (device == count) {
    about.error = "no device of the machine can run all operators, and the "
                  "step over the memory is one device's";
    return;
  }
  kind = given.machine.devices[device].kind;
  machine.linkModel = given.machine.linkModel;
  machine.devices = {given.machine.devices[device]};
  for (int32_t candidate : poolsOf(given.machine)) {
    const auto &out = given.machine.link(device, candidate);
    const auto &in = given.machine.link(candidate, device);
    if (!out || !in || pool)
      continue;
    pool = candidate;
    machine.devices.push_back(given.machine.devices[candidate]);
    machine.links = {std::nullopt, out, in, std::nullopt};
  }
  if (!pool)
    assumePool();
  about.device = machine.devices[0].name;
  about.pool = machine.devices[1].name;
  about.poolBytes = machine.devices[1].memory;
  about.out = *machine.links[1];
  about.in = *machine.links[2];
  if (numComputing(given.machine) > 1)
    about.notes.push_back(fmt::format(
        "all is of the device {} alone, of those that compute", about.device));
}

/// As in the short form of a machine.
void FitMeans::assumePool() {
  Machine assumed;
  std::string error = readMachineSpec("host:1@1GiB+pool:1GiB", assumed);
  if (!error.empty())
    throw std::logic_error(error);
  assumed.devices[1].memory = ample;
  machine.devices.push_back(assumed.devices[1]);
  machine.links = {std::nullopt, assumed.link(0, 1), assumed.link(1, 0),
                   std::nullopt};
  about.notes.push_back(fmt::format(
      "the machine has no pool: one with all the room it needs is assumed, {} "
      "ns and {} bytes a microsecond away",
      machine.links[1]->latencyNs, machine.links[1]->bytesPerUs));
}

bool FitMeans::isLikeSum(int32_t op) const {
  auto reads = std::count_if(
      graph.edges.begin(), graph.edges.end(),
      [op](const Edge &edge) { return edge.to == op && edge.output >= 0; });
  return reads > 2 && whyNoSums(graph, std::span(&op, 1)).empty();
}

void FitMeans::findBases() {
  say("orders");
  repeats = repeatsOf(graph, kind);
  bases = leanOrdersOf(graph, repeats);
  say("checkpoints");
  chains.emplace(graph, repeats, bases);
  about.fileBytes = *peakOfRuns(graph, orderOfFile(graph));
  leanest = leanestOf(graph, bases);
  about.leanBytes = leanest.order.peakBytes;
  about.orderFloor.bytes = leanest.floorBytes;
  for (int32_t op : leanest.floorOps)
    about.orderFloor.ops.push_back(graph.ops[op].name);
  MemoryFloor floor = memoryFloor(graph);
  about.floor = {floor.bytes, graph.ops[floor.op].name};
  about.mayBeSum = isLikeSum(floor.op);
  for (const Operator &op : graph.ops) {
    about.unlimitedNs += timeOf(op);
    about.residentBytes += op.resident;
  }
}

/// What the rules of placements say of a plan.
FitWay FitMeans::judged(const Graph &written, const SpillPlan &plan,
                        int64_t limit) {
  PlacedFit fit = placed(written, plan, machine);
  // Whether the pool is large enough is asked below.
  fit.problem.machine.devices[0].memory = limit;
  fit.problem.machine.devices[1].memory = ample;
  std::vector<DeviceUsage> usage;
  if (std::vector<std::string> wrong =
          verify(fit.problem, fit.placement, &usage);
      !wrong.empty())
    throw std::logic_error("a rewrite breaks a rule, which is a defect: " +
                           wrong.front());
  FitWay way;
  way.fits = usage[1].peakBytes <= machine.devices[1].memory;
  way.stepNs = plan.makespanNs;
  way.peakBytes = usage[0].peakBytes;
  way.poolPeakBytes = usage[1].peakBytes;
  way.movedBytes = plan.outBytes + plan.inBytes;
  if (keepsPlans && way.fits) {
    for (size_t run = 0; run < written.ops.size(); ++run)
      fit.problem.graph.ops[run].pin = written.ops[run].pin;
    way.plan = std::make_shared<PlacedFit>(std::move(fit));
  }
  return way;
}

/// Runs without a pool; a graph of its own, where operators run twice.
FitWay FitMeans::oneAfterTheOther(std::span<const int32_t> runs,
                                  int64_t limit) {
  Graph written = withRepeats(graph, runs);
  SpillPlan plan;
  plan.order.resize(written.ops.size());
  std::iota(plan.order.begin(), plan.order.end(), 0);
  for (const Operator &op : written.ops) {
    plan.startNs.push_back(plan.makespanNs);
    plan.makespanNs += timeOf(op);
  }
  FitWay way = judged(written, plan, limit);
  countRepeats(runs, way);
  return way;
}

void FitMeans::countRepeats(std::span<const int32_t> runs, FitWay &way) const {
  std::vector<uint8_t> hasRun(graph.ops.size(), 0);
  for (int32_t op : runs) {
    if (hasRun[op]) {
      way.againNs += timeOf(graph.ops[op]);
      for (const Output &output : graph.ops[op].outputs)
        way.againBytes += output.memory;
    }
    hasRun[op] = 1;
  }
}

/// As placement does by itself: any order.
FitWay FitMeans::inOrder(int64_t limit) {
  if (about.leanBytes <= limit)
    return oneAfterTheOther(leanest.order.runs, limit);
  Problem alone{graph, {}};
  alone.machine.devices = {machine.devices[0]};
  alone.machine.devices[0].memory = limit;
  alone.machine.links.resize(1);
  for (Operator &op : alone.graph.ops)
    op.pin.reset();
  PlaceOptions own = place;
  own.placer = "single";
  own.progress = nullptr;
  PlaceResult found = baechi::placement::place(alone, own);
  if (found.error == cancelledError)
    throw WasCancelled();
  if (!found.placement)
    return {};
  FitWay way;
  way.fits = true;
  way.stepNs = found.placement->makespanNs;
  way.peakBytes = found.usage.front().peakBytes;
  if (keepsPlans)
    way.plan = std::make_shared<PlacedFit>(
        PlacedFit{std::move(alone), std::move(*found.placement)});
  return way;
}

FitWay FitMeans::runningAgain(int64_t limit) {
  std::optional<RepeatedOrder> found = repeatedWithin(limit);
  if (!found)
    return {};
  FitWay way = oneAfterTheOther(found->runs, limit);
  // What runs again least is not what is best with a pool: what is let go for
  // the bytes of the moment leaves more to wait there.
  std::optional<RepeatedOrder> greedy = recomputeWithin(
      graph, repeats, bases, limit, ChainRewrites(Graph(), {}, {}));
  if (greedy && greedy->againNs > found->againNs)
    rewrites.push_back(std::move(*greedy));
  if (found->againNs > 0)
    rewrites.push_back(std::move(*found));
  return way;
}

FitWay FitMeans::waiting(const Graph &written,
                         std::span<const RepeatedOrder> orders, int64_t limit) {
  SpillOptions spills =
      spillsOf(written, kind, about.out, about.in, machine.linkModel);
  std::optional<SpillPlan> plan = spillWithin(written, spills, orders, limit);
  return plan ? judged(written, *plan, limit) : FitWay();
}

std::vector<const RepeatedOrder *> FitMeans::pickRewrites(Picked which) const {
  std::vector<const RepeatedOrder *> few;
  size_t count = std::min(rewrites.size(), mostRewrites);
  for (size_t k = 1; k <= count; ++k)
    few.push_back(
        &rewrites[which == Picked::Evenly ? k * rewrites.size() / count - 1
                                          : rewrites.size() - count + k - 1]);
  return few;
}

FitWay FitMeans::withBoth(int64_t limit, Picked which) {
  FitWay best;
  for (const RepeatedOrder *each : pickRewrites(which)) {
    const RepeatedOrder &rewrite = *each;
    Graph written = withRepeats(graph, rewrite.runs);
    RepeatedOrder order{{}, rewrite.peakBytes, 0};
    order.runs.resize(written.ops.size());
    std::iota(order.runs.begin(), order.runs.end(), 0);
    FitWay way = waiting(written, std::span(&order, 1), limit);
    if (!way.fits || (best.fits && best.stepNs <= way.stepNs))
      continue;
    best = way;
    countRepeats(rewrite.runs, best);
  }
  return best;
}

/// All at once, where the graph is small enough.
FitWay FitMeans::bestOfSmall(const FitWay &known, int64_t limit) {
  SpillOptions spills =
      spillsOf(graph, kind, about.out, about.in, machine.linkModel);
  auto found = repeatAndSpillWithin(graph, repeats, spills, limit,
                                    known.fits ? known.stepNs : ample);
  if (!found)
    return known;
  FitWay way = judged(withRepeats(graph, found->runs), found->plan, limit);
  countRepeats(found->runs, way);
  return way.fits ? way : known;
}
