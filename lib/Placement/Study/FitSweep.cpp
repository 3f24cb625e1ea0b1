//===- FitSweep.cpp - The step over the memory ----------------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Study/FitSweep.h"
#include "Baechi/Placement/Io/Files.h"
#include "Baechi/Placement/Model/Pool.h"
#include "Baechi/Placement/Model/Text.h"
#include "Baechi/Placement/Recompute/Chains.h"
#include "Baechi/Placement/Recompute/Rewrite.h"
#include "Baechi/Placement/Recompute/Sums.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <set>
#include <stdexcept>

using namespace baechi::placement;

static constexpr int64_t ample = std::numeric_limits<int64_t>::max() / 4;
/// So many of the rewrites, those for the least memory, are tried with a pool.
static constexpr size_t mostRewrites = 6;

const FitWay *FitPoint::best() const {
  const FitWay *best = nullptr;
  for (const FitWay *way : {&order, &again, &pool, &both, &inTurn})
    if (way->fits && (!best || way->stepNs < best->stepNs))
      best = way;
  return best;
}

const char *FitPoint::bestName() const {
  const FitWay *way = best();
  return way == &order   ? "order"
         : way == &again ? "again"
         : way == &pool  ? "pool"
         : way == &both  ? "both"
         : way           ? "sums in turn"
                         : "none";
}

namespace {

class FitSweeper {
public:
  FitSweeper(const Problem &given, const FitSweepOptions &options)
      : given(given), graph(given.graph), options(options) {}

  FitSweep run();

private:
  void findDevice();
  void assumePool();
  void findBases();
  bool isLikeSum(int32_t op) const;
  std::vector<int64_t> limits() const;
  void say(const std::string &what) const;
  FitWay judged(const Graph &written, const SpillPlan &plan, int64_t limit);
  FitWay inOrder(int64_t limit);
  FitWay oneAfterTheOther(std::span<const int32_t> runs, int64_t limit);
  void countRepeats(std::span<const int32_t> runs, FitWay &way) const;
  FitWay runningAgain(int64_t limit);
  FitWay waiting(const Graph &written, std::span<const RepeatedOrder> orders,
                 int64_t limit);
  FitWay withBoth(int64_t limit);
  FitWay bestOfSmall(const FitWay &known, int64_t limit);
  void sumInTurn();
  int64_t timeOf(const Operator &op) const { return *timeOn(op, kind); }

  const Problem &given;
  const Graph &graph;
  const FitSweepOptions &options;
  FitSweep result;
  Machine machine; ///< the device, and the pool
  std::string kind;
  RecomputeOptions repeats;
  std::vector<RepeatedOrder> bases;
  LeanestOrder leanest;
  std::optional<ChainRewrites> chains;
  /// Of the limits so far, each for less memory than the one before.
  std::vector<RepeatedOrder> rewrites;
};

struct WasCancelled {};

void FitSweeper::say(const std::string &what) const {
  if (options.place.cancelled && options.place.cancelled())
    throw WasCancelled();
  if (options.place.progress)
    options.place.progress(what);
}

/// The first that can run all operators, and the pool beside it.
void FitSweeper::findDevice() {
  auto runsAll = [&](const Device &device) {
    return std::all_of(graph.ops.begin(), graph.ops.end(),
                       [&](const Operator &op) {
                         return timeOn(op, device.kind).has_value();
                       });
  };
  auto count = static_cast<int32_t>(given.machine.devices.size());
  int32_t device = 0;
  while (device < count && (isPool(given.machine.devices[device]) ||
                            !runsAll(given.machine.devices[device])))
    ++device;
  if (device == count) {
    result.error = "no device of the machine can run all operators, and the "
                   "step over the memory is one device's";
    return;
  }
  kind = given.machine.devices[device].kind;
  machine.linkModel = given.machine.linkModel;
  machine.devices = {given.machine.devices[device]};
  for (int32_t pool : poolsOf(given.machine)) {
    const auto &out = given.machine.link(device, pool);
    const auto &in = given.machine.link(pool, device);
    if (!out || !in || machine.devices.size() > 1)
      continue;
    machine.devices.push_back(given.machine.devices[pool]);
    machine.links = {std::nullopt, out, in, std::nullopt};
  }
  if (machine.devices.size() == 1)
    assumePool();
  result.device = machine.devices[0].name;
  result.pool = machine.devices[1].name;
  result.poolBytes = machine.devices[1].memory;
  result.out = *machine.links[1];
  result.in = *machine.links[2];
  if (numComputing(given.machine) > 1)
    result.notes.push_back(fmt::format(
        "all is of the device {} alone, of those that compute", result.device));
}

/// As in the short form of a machine.
void FitSweeper::assumePool() {
  Machine assumed;
  std::string error = readMachineSpec("host:1@1GiB+pool:1GiB", assumed);
  if (!error.empty())
    throw std::logic_error(error);
  assumed.devices[1].memory = ample;
  machine.devices.push_back(assumed.devices[1]);
  machine.links = {std::nullopt, assumed.link(0, 1), assumed.link(1, 0),
                   std::nullopt};
  result.notes.push_back(fmt::format(
      "the machine has no pool: one with all the room it needs is assumed, {} "
      "ns and {} bytes a microsecond away",
      machine.links[1]->latencyNs, machine.links[1]->bytesPerUs));
}

bool FitSweeper::isLikeSum(int32_t op) const {
  auto reads = std::count_if(
      graph.edges.begin(), graph.edges.end(),
      [op](const Edge &edge) { return edge.to == op && edge.output >= 0; });
  return reads > 2 && whyNoSums(graph, std::span(&op, 1)).empty();
}

void FitSweeper::findBases() {
  say("orders");
  repeats = repeatsOf(graph, kind);
  bases = leanOrdersOf(graph, repeats);
  say("checkpoints");
  chains.emplace(graph, repeats, bases);
  result.fileBytes = *peakOfRuns(graph, orderOfFile(graph));
  leanest = leanestOf(graph, bases);
  result.leanBytes = leanest.order.peakBytes;
  result.orderFloor.bytes = leanest.floorBytes;
  for (int32_t op : leanest.floorOps)
    result.orderFloor.ops.push_back(graph.ops[op].name);
  MemoryFloor floor = memoryFloor(graph);
  result.floor = {floor.bytes, graph.ops[floor.op].name};
  result.mayBeSum = options.sums.empty() && isLikeSum(floor.op);
  for (const Operator &op : graph.ops) {
    result.unlimitedNs += timeOf(op);
    result.residentBytes += op.resident;
  }
}

/// The memories that are asked for, the most first.
std::vector<int64_t> FitSweeper::limits() const {
  std::set<int64_t> all;
  for (const SweepMemory &memory : options.memory)
    all.insert(
        memory.kind == SweepMemory::Kind::AsIs ? machine.devices[0].memory
        : memory.kind == SweepMemory::Kind::Bytes
            ? static_cast<int64_t>(memory.value)
            : static_cast<int64_t>(static_cast<double>(result.fileBytes) *
                                   memory.value / 100));
  return {all.rbegin(), all.rend()};
}

/// What the rules of placements say of a plan.
FitWay FitSweeper::judged(const Graph &written, const SpillPlan &plan,
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
  return way;
}

/// Runs without a pool; a graph of its own, where operators run twice.
FitWay FitSweeper::oneAfterTheOther(std::span<const int32_t> runs,
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

void FitSweeper::countRepeats(std::span<const int32_t> runs,
                              FitWay &way) const {
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
FitWay FitSweeper::inOrder(int64_t limit) {
  if (result.leanBytes <= limit)
    return oneAfterTheOther(leanest.order.runs, limit);
  Problem alone{graph, {}};
  alone.machine.devices = {machine.devices[0]};
  alone.machine.devices[0].memory = limit;
  alone.machine.links.resize(1);
  for (Operator &op : alone.graph.ops)
    op.pin.reset();
  PlaceOptions own = options.place;
  own.placer = "single";
  own.progress = nullptr;
  PlaceResult found = place(alone, own);
  if (found.error == cancelledError)
    throw WasCancelled();
  if (!found.placement)
    return {};
  FitWay way;
  way.fits = true;
  way.stepNs = found.placement->makespanNs;
  way.peakBytes = found.usage.front().peakBytes;
  return way;
}

FitWay FitSweeper::runningAgain(int64_t limit) {
  std::optional<RepeatedOrder> found =
      recomputeWithin(graph, repeats, bases, limit, *chains);
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

FitWay FitSweeper::waiting(const Graph &written,
                           std::span<const RepeatedOrder> orders,
                           int64_t limit) {
  SpillOptions spills =
      spillsOf(written, kind, result.out, result.in, machine.linkModel);
  std::optional<SpillPlan> plan = spillWithin(written, spills, orders, limit);
  return plan ? judged(written, *plan, limit) : FitWay();
}

/// What little runs again for more memory, and the rest waits.
FitWay FitSweeper::withBoth(int64_t limit) {
  FitWay best;
  std::span<const RepeatedOrder> few = rewrites;
  if (few.size() > mostRewrites)
    few = few.last(mostRewrites);
  for (const RepeatedOrder &rewrite : few) {
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
FitWay FitSweeper::bestOfSmall(const FitWay &known, int64_t limit) {
  SpillOptions spills =
      spillsOf(graph, kind, result.out, result.in, machine.linkModel);
  auto found = repeatAndSpillWithin(graph, repeats, spills, limit,
                                    known.fits ? known.stepNs : ample);
  if (!found)
    return known;
  FitWay way = judged(withRepeats(graph, found->runs), found->plan, limit);
  countRepeats(found->runs, way);
  return way.fits ? way : known;
}

/// The same memories for the graph whose sums are done one after the other.
void FitSweeper::sumInTurn() {
  if (std::vector<int32_t> few = sumsOfTwo(graph, options.sums); !few.empty())
    result.notes.push_back(fmt::format(
        "of the {} operators that are to be done in turn {} read two tensors "
        "or fewer, as '{}', and stay as they are",
        options.sums.size(), few.size(), graph.ops[few.front()].name));
  Problem written{withSumsInTurn(graph, options.sums), given.machine};
  FitSweepOptions again;
  again.place = options.place;
  if (again.place.progress)
    again.place.progress = [this](const std::string &what) {
      say("sums in turn: " + what);
    };
  for (const FitPoint &point : result.points)
    again.memory.push_back(
        {SweepMemory::Kind::Bytes, static_cast<double>(point.memoryBytes)});
  FitSweep found = FitSweeper(written, again).run();
  result.floorInTurn = found.floor;
  for (size_t k = 0; k < result.points.size(); ++k)
    if (const FitWay *best = found.points[k].best())
      result.points[k].inTurn = *best;
}

FitSweep FitSweeper::run() {
  findDevice();
  if (!result.error.empty() || graph.ops.empty())
    return std::move(result);
  findBases();
  std::vector<int64_t> all = limits();
  for (int64_t limit : all) {
    FitPoint &point = result.points.emplace_back();
    point.memoryBytes = limit;
    std::string where = fmt::format("{} of {}, {}", result.points.size(),
                                    all.size(), bytesText(limit));
    say(where + ": order");
    point.order = inOrder(limit);
    if (limit < result.floor.bytes)
      continue;
    say(where + ": running again");
    point.again = runningAgain(limit);
    say(where + ": waiting in the pool");
    point.pool = waiting(graph, bases, limit);
    say(where + ": both");
    if (!point.order.fits)
      point.both = withBoth(limit);
    for (const FitWay *way : {&point.pool, &point.again, &point.order})
      if (way->fits && (!point.both.fits || way->stepNs <= point.both.stepNs))
        point.both = *way;
    if (!point.order.fits)
      point.both = bestOfSmall(point.both, limit);
  }
  // What fits less memory fits more.
  constexpr std::array means = {&FitPoint::order, &FitPoint::again,
                                &FitPoint::pool, &FitPoint::both};
  for (size_t k = result.points.size(); k-- > 1;)
    for (FitWay FitPoint::*way : means) {
      const FitWay &less = result.points[k].*way;
      FitWay &more = result.points[k - 1].*way;
      if (less.fits && (!more.fits || less.stepNs < more.stepNs))
        more = less;
    }
  if (!options.sums.empty())
    sumInTurn();
  return std::move(result);
}

} // namespace

FitSweep baechi::placement::fitSweep(const Problem &problem,
                                     const FitSweepOptions &options) {
  FitSweep failed;
  if (auto errors = check(problem); !errors.empty()) {
    failed.error = fmt::format("{}", fmt::join(errors, "\n"));
    return failed;
  }
  failed.error = whyNoSums(problem.graph, options.sums);
  if (failed.error.empty() && !options.sums.empty() &&
      sumsOfTwo(problem.graph, options.sums).size() == options.sums.size())
    failed.error = fmt::format(
        "no sum of more than two tensors is named, as it takes to do sums in "
        "turn: '{}' reads two or fewer",
        problem.graph.ops[options.sums.front()].name);
  if (!failed.error.empty())
    return failed;
  try {
    return FitSweeper(problem, options).run();
  } catch (const WasCancelled &) {
    failed.error = cancelledError;
    return failed;
  }
}
