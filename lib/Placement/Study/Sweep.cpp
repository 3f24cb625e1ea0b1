//===- Sweep.cpp - What other machines would do -----------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Study/Sweep.h"
#include "Baechi/Placement/Model/Text.h"
#include "Schedule/Schedule.h"
#include "Study/LeastMemory.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>

using namespace baechi::placement;
using namespace baechi::placement::study;

namespace {

/// More than any graph that passes `check` can hold on one device.
constexpr int64_t ample = std::numeric_limits<int64_t>::max() / 2;

class Sweeper {
public:
  Sweeper(const Problem &given, const SweepOptions &options)
      : options(options), variants(given) {
    problem.graph = given.graph;
  }
  Sweep run();

private:
  PlaceOptions placing(const std::string &what) const;
  void reference();
  int64_t bytesOf(const SweepMemory &memory) const;
  void makePoints();
  void measure(SweepPoint &point, std::optional<Placement> &placement);
  void findLeastMemory();
  void takeOver();
  bool tryTakingOver(SweepPoint &point, int32_t devices,
                     const Placement &placement);
  int64_t valueOf(const SweepPoint &point) const {
    return result.objective == Objective::MaxLoad ? point.maxLoadNs
                                                  : point.makespanNs;
  }
  void findPeak(SweepPoint &point, const std::vector<DeviceUsage> &usage) const;

  const SweepOptions &options;
  MachineVariants variants;
  Problem problem; ///< the graph, on the machine of the moment
  Sweep result;
  std::vector<std::optional<Placement>> placements; ///< a point each
};

/// The options for one call of `place`, whose progress says what it is for.
PlaceOptions Sweeper::placing(const std::string &what) const {
  PlaceOptions own = options.place;
  if (options.place.progress)
    own.progress = [this, what](const std::string &phase) {
      options.place.progress(what + ": " + phase);
    };
  return own;
}

/// What one device would do that has all the memory it needs.
void Sweeper::reference() {
  problem.machine = variants.make(1, ample, 1);
  PlaceOptions own = placing("one device");
  own.placer = "single";
  own.budget = Budget::none();
  if (variants.keepsOthers())
    own.placer = "metf";
  PlaceResult placed = place(problem, own);
  if (!placed.placement)
    return;
  result.oneDeviceBytes = placed.usage.front().peakBytes;
  if (!variants.keepsOthers())
    result.oneDeviceNs = placed.placement->makespanNs;
}

int64_t Sweeper::bytesOf(const SweepMemory &memory) const {
  switch (memory.kind) {
  case SweepMemory::Kind::AsIs:
    return variants.pattern().memory;
  case SweepMemory::Kind::Bytes:
    return static_cast<int64_t>(memory.value);
  case SweepMemory::Kind::Share:
    return static_cast<int64_t>(static_cast<double>(result.oneDeviceBytes) *
                                memory.value / 100);
  }
  return 0;
}

void Sweeper::makePoints() {
  // The links as they are, where that is asked for.
  auto asIs = std::find(options.links.begin(), options.links.end(), 1.0);
  double usual = options.links.empty()         ? 1
                 : asIs != options.links.end() ? 1
                                               : options.links.front();
  std::vector<int64_t> memories;
  bool unknownShares = false;
  for (const SweepMemory &memory : options.memory) {
    bool known =
        memory.kind != SweepMemory::Kind::Share || result.oneDeviceBytes > 0;
    unknownShares |= !known;
    if (known)
      memories.push_back(bytesOf(memory));
  }
  if (unknownShares)
    result.notes.push_back("memories given as shares are left out: it is not "
                           "known what one device alone needs");
  if (memories.empty())
    memories.push_back(variants.pattern().memory);
  std::set<std::tuple<int32_t, int64_t, double>> keys;
  for (int32_t n : options.devices) {
    for (int64_t memory : memories)
      keys.emplace(n, -memory, usual);
    // One device alone has no links.
    if (n > 1 || variants.keepsOthers())
      for (double speed : options.links)
        keys.emplace(n, -memories.front(), speed);
  }
  for (const auto &[n, memory, speed] : keys) {
    SweepPoint &point = result.points.emplace_back();
    point.devices = n;
    point.memoryBytes = -memory;
    point.linkSpeed = speed;
  }
}

void Sweeper::findPeak(SweepPoint &point,
                       const std::vector<DeviceUsage> &usage) const {
  point.peakBytes = 0;
  for (int32_t d = 0; d < point.devices; ++d)
    point.peakBytes = std::max(point.peakBytes, usage[d].peakBytes);
}

void Sweeper::measure(SweepPoint &point, std::optional<Placement> &placement) {
  auto begin = std::chrono::steady_clock::now();
  problem.machine =
      variants.make(point.devices, point.memoryBytes, point.linkSpeed);
  size_t index = &point - result.points.data();
  PlaceResult placed = place(
      problem,
      placing(fmt::format("{} of {}, {} devices of {}, links x{}", index + 1,
                          result.points.size(), point.devices,
                          bytesText(point.memoryBytes), point.linkSpeed)));
  std::chrono::duration<double> seconds =
      std::chrono::steady_clock::now() - begin;
  point.seconds = seconds.count();
  point.problem = placed.error;
  point.lowerBoundNs = placed.lowerBoundNs;
  point.winner = placed.winner;
  if (!placed.placement)
    return;
  point.valid = true;
  point.makespanNs = placed.placement->makespanNs;
  point.maxLoadNs = placed.maxLoadNs;
  findPeak(point, placed.usage);
  placement = std::move(placed.placement);
}

/// Gives a point the placement of a machine of \p devices devices, if it is
/// valid there and better than what the point has.
bool Sweeper::tryTakingOver(SweepPoint &point, int32_t devices,
                            const Placement &placement) {
  problem.machine =
      variants.make(point.devices, point.memoryBytes, point.linkSpeed);
  // Kept devices come after the pattern's.
  Placement mapped = placement;
  auto map = [&](int32_t &d) {
    if (d >= devices)
      d += point.devices - devices;
  };
  for (int32_t &d : mapped.device)
    map(d);
  for (Transfer &t : mapped.transfers) {
    map(t.from);
    map(t.to);
  }
  if (!verify(problem, mapped).empty())
    return false;
  SweepPoint better = point;
  better.valid = true;
  better.problem.clear();
  better.makespanNs = mapped.makespanNs;
  better.maxLoadNs = maxLoad(Model(problem), mapped);
  if (point.valid && valueOf(better) >= valueOf(point))
    return false;
  findPeak(better, usage(problem, mapped));
  point = std::move(better);
  return true;
}

/// What a machine can do, one with more devices, more memory or faster links
/// can do as well, although the search need not find it.
void Sweeper::takeOver() {
  std::vector<SweepPoint> found = result.points;
  for (size_t k = 0; k < found.size(); ++k) {
    std::vector<size_t> sources;
    for (size_t s = 0; s < found.size(); ++s)
      if (placements[s] && found[s].devices <= found[k].devices &&
          found[s].linkSpeed <= found[k].linkSpeed &&
          (!found[k].valid || valueOf(found[s]) < valueOf(found[k])))
        sources.push_back(s);
    std::sort(sources.begin(), sources.end(), [&](size_t a, size_t b) {
      return std::pair(valueOf(found[a]), a) < std::pair(valueOf(found[b]), b);
    });
    SweepPoint &point = result.points[k];
    for (size_t s : sources)
      if (tryTakingOver(point, found[s].devices, *placements[s])) {
        point.takenFrom = static_cast<int32_t>(s);
        point.winner = found[s].winner;
        break;
      }
  }
}

void Sweeper::findLeastMemory() {
  std::set<int32_t> counts(options.devices.begin(), options.devices.end());
  for (int32_t n : counts) {
    // What does for fewer devices does for more.
    auto &list = result.leastMemory;
    const LeastMemory *fewer =
        list.empty() || !list.back().bytes ? nullptr : &list.back();
    std::optional<Placement> found;
    LeastMemory least = leastMemory(
        problem, variants, n, fewer ? *fewer->bytes : ample,
        placing(fmt::format("least memory of {} devices", n)), found);
    if (fewer && !least.bytes) {
      least.bytes = fewer->bytes;
      least.makespanNs = fewer->makespanNs;
      least.problem.clear();
    }
    for (SweepPoint &point : result.points)
      if (found && !point.valid && point.devices >= n &&
          tryTakingOver(point, n, *found))
        point.winner = "least memory";
    list.push_back(std::move(least));
  }
}

Sweep Sweeper::run() {
  result.objective = options.place.objective;
  result.pattern = variants.pattern().name;
  result.notes = variants.notes();
  if (variants.lacksLink() &&
      std::any_of(options.devices.begin(), options.devices.end(),
                  [](int32_t n) { return n > 1; })) {
    result.error = "the machine has no link that those between more devices "
                   "could be like: give a machine of two devices or more";
    return std::move(result);
  }
  reference();
  makePoints();
  placements.resize(result.points.size());
  for (size_t k = 0; k < result.points.size(); ++k)
    measure(result.points[k], placements[k]);
  takeOver();
  if (options.leastMemory)
    findLeastMemory();
  for (SweepPoint &point : result.points)
    if (point.valid && point.lowerBoundNs > 0)
      point.gap = static_cast<double>(valueOf(point)) /
                      static_cast<double>(point.lowerBoundNs) -
                  1;
  return std::move(result);
}

std::string wrongOptions(const SweepOptions &options) {
  constexpr int32_t most = 4096;
  if (options.devices.empty())
    return "there are no numbers of devices to sweep over";
  for (int32_t n : options.devices)
    if (n < 1 || n > most)
      return fmt::format("{} devices cannot be swept over: use 1 to {}", n,
                         most);
  for (double speed : options.links)
    if (!std::isfinite(speed) || speed <= 0)
      return fmt::format("links cannot be {} times as fast: use a number above "
                         "0",
                         speed);
  return "";
}

} // namespace

Sweep baechi::placement::sweep(const Problem &problem,
                               const SweepOptions &options) {
  Sweep failed;
  if (auto errors = check(problem); !errors.empty())
    failed.error = fmt::format("{}", fmt::join(errors, "\n"));
  else if (problem.machine.nodes)
    failed.error = "a machine of nodes cannot be swept over: state other "
                   "numbers in its file, or list devices and links";
  else
    failed.error = wrongOptions(options);
  return failed.error.empty() ? Sweeper(problem, options).run() : failed;
}
