//===- Choice.cpp - Which of a loop's schemes is best ----------*- C++ -*--===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Loops/Choice.h"
#include "Baechi/Support/Numbers.h"
#include <algorithm>
#include <cmath>

using namespace baechi::loops;

namespace {
/// Parts of about as many entries of the sample.
std::vector<int64_t> cutsOf(const Loop &loop, const std::vector<int64_t> &axis,
                            const Sample &sample, int32_t parts) {
  constexpr int64_t kMostBins = 1 << 12;
  int64_t first = 0, end = 1;
  for (size_t k = 0; k < axis.size(); ++k) {
    int64_t a = axis[k] * loop.keys[k].lower;
    int64_t b = axis[k] * (loop.keys[k].upper - 1);
    first += std::min(a, b);
    end += std::max(a, b);
  }
  int64_t width = (end - first + kMostBins - 1) / kMostBins;
  std::vector<int64_t> counts((end - first + width - 1) / width, 0);
  for (const std::vector<int64_t> &entry : sample.entries)
    ++counts[(Affine{axis, 0}.of(entry) - first) / width];
  std::vector<int64_t> cuts = balancedCuts(0, counts, parts);
  for (int64_t &cut : cuts)
    cut = std::min(first + cut * width, end);
  return cuts;
}

/// How many parts the axes of \p verdict may have, fewest first.
std::vector<std::vector<int32_t>> partsOf(const Verdict &verdict, size_t axes,
                                          int32_t workers) {
  bool inWaves =
      verdict.scheme == Scheme::Wavefront || verdict.scheme == Scheme::Timed;
  std::vector<std::vector<int32_t>> made;
  for (int32_t times : {1, 2, 4}) {
    if (times > 1 && (axes < 2 || (times > 2 && !inWaves)))
      break;
    made.emplace_back(axes, workers * times);
    made.back()[0] = workers;
  }
  return made;
}
} // namespace

Sample baechi::loops::sampleBox(const Loop &loop, size_t most,
                                std::optional<int64_t> entries) {
  double all = 1;
  for (const Key &key : loop.keys)
    all *= static_cast<double>(key.upper - key.lower);
  size_t count = all > static_cast<double>(most) ? most : size_t(all);
  Sample sample;
  // Where all are taken, each once; otherwise points of a Kronecker sequence,
  // whose components are as far from each other as can be.
  std::vector<int64_t> key;
  for (const Key &each : loop.keys)
    key.push_back(each.lower);
  for (size_t n = 0; n < count; ++n) {
    if (count < all) {
      double root = 1;
      for (size_t k = 0; k < key.size(); ++k) {
        root /= 1.6180339887498949 + 0.1 * static_cast<double>(k);
        double part = std::fmod(0.5 + root * static_cast<double>(n + 1), 1.0);
        int64_t extent = loop.keys[k].upper - loop.keys[k].lower;
        key[k] = loop.keys[k].lower +
                 std::min<int64_t>(int64_t(part * double(extent)), extent - 1);
      }
    }
    bool isInside =
        std::all_of(loop.domain.begin(), loop.domain.end(),
                    [&](const Affine &each) { return each.of(key) >= 0; });
    if (isInside)
      sample.entries.push_back(key);
    if (count < all)
      continue;
    for (size_t k = key.size(); k-- > 0;) {
      if (++key[k] < loop.keys[k].upper)
        break;
      key[k] = loop.keys[k].lower;
    }
  }
  double stands = entries ? static_cast<double>(*entries) : all;
  size_t of = entries ? std::max<size_t>(sample.entries.size(), 1)
                      : std::max<size_t>(count, 1);
  sample.each = stands / static_cast<double>(of);
  return sample;
}

std::vector<Plan> baechi::loops::plansOf(const Loop &loop, const Verdict &first,
                                         const Sample &sample,
                                         int32_t workers) {
  // Three keys of 24 workers have more; simulating them all ways would take
  // longer than the rest of the analysis.
  constexpr double kMostBlocks = 1 << 12;
  std::vector<Plan> plans;
  for (Verdict &verdict : schemesOf(loop, first)) {
    std::vector<std::vector<int64_t>> axes = axesOf(loop, verdict);
    if (axes.empty())
      continue;
    for (std::vector<int32_t> &parts : partsOf(verdict, axes.size(), workers)) {
      double blocks = 1;
      for (int32_t each : parts)
        blocks *= each;
      if (!plans.empty() && blocks > kMostBlocks)
        continue;
      std::vector<std::vector<int64_t>> cuts;
      for (size_t axis = 0; axis < axes.size(); ++axis)
        cuts.push_back(cutsOf(loop, axes[axis], sample, parts[axis]));
      Schedule schedule = makeSchedule(loop, verdict, std::move(cuts), workers);
      PassCost cost = simulatePass(loop, verdict, schedule, sample);
      plans.push_back({verdict, std::move(parts), cost});
    }
  }
  if (plans.empty())
    return plans;
  double least = plans[0].cost.nanoseconds;
  for (const Plan &plan : plans)
    least = std::min(least, plan.cost.nanoseconds);
  auto best = plans.begin();
  auto isFast = [&](const Plan &plan) {
    return plan.cost.nanoseconds <= 1.05 * least;
  };
  for (auto plan = plans.begin(); plan != plans.end(); ++plan)
    if (isFast(*plan) &&
        (!isFast(*best) || plan->cost.bytes < best->cost.bytes))
      best = plan;
  std::rotate(plans.begin(), best, best + 1);
  std::stable_sort(plans.begin() + 1, plans.end(),
                   [](const Plan &a, const Plan &b) {
                     return a.cost.nanoseconds < b.cost.nanoseconds;
                   });
  return plans;
}

std::string baechi::loops::text(const Loop &loop, const Plan &plan) {
  std::string parts;
  for (int32_t each : plan.parts)
    parts += (parts.empty() ? "" : " x ") + std::to_string(each);
  std::string along;
  if (plan.verdict.scheme == Scheme::Independent && !plan.verdict.keys.empty())
    along = " along " + loop.keys[plan.verdict.keys[0]].name;
  return schemeText(loop, plan.verdict) + along + " in " + parts + " parts: " +
         support::millisecondsText(std::llround(plan.cost.nanoseconds)) +
         " a pass, " +
         support::bytesText(static_cast<double>(plan.cost.bytes)) + " moved";
}

std::string baechi::loops::explainChoice(const Loop &loop,
                                         const std::vector<Plan> &plans) {
  constexpr size_t kMost = 4;
  std::string made = "simulated: " + text(loop, plans[0]);
  for (size_t n = 1; n < std::min(kMost, plans.size()); ++n)
    made += "; rather than " + text(loop, plans[n]);
  return made;
}
