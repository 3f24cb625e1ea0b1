//===- Calibrate.cpp - Fit a machine to measured steps -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Costs/Measure/Calibrate.h"
#include "Baechi/Runtime/Machine.h"
#include "llvm/Support/FormatVariadic.h"
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

using namespace baechi;

namespace {
using Tell = llvm::function_ref<void(const llvm::Twine &line)>;

/// The medians of what copies of each size took, with the rendezvous that a
/// copy's record does not have.
std::vector<runtime::TransferSample> copySamples(const MeasuredSteps &placed,
                                                 double rendezvousNs) {
  std::map<int64_t, std::vector<double>> times;
  const runtime::Program &program = placed.program;
  const runtime::Timeline &timeline = placed.fastest;
  for (auto [queue, records] : llvm::zip(program.queues, timeline.queues))
    for (auto [message, record] : llvm::zip(queue.messages, records))
      if (record.happened() && message.bytes > 0 && !message.lent)
        times[message.bytes].push_back(record.durationNs());
  std::vector<runtime::TransferSample> samples;
  for (auto &[bytes, durations] : times) {
    auto middle = durations.begin() + durations.size() / 2;
    std::nth_element(durations.begin(), middle, durations.end());
    samples.push_back({bytes, rendezvousNs + *middle});
  }
  return samples;
}

double total(const std::vector<double> &times) {
  return std::accumulate(times.begin(), times.end(), 0.0);
}
/// Whether copies of these sizes tell latency and bandwidth apart: those of a
/// small model are all rendezvous.
bool spanLinks(llvm::ArrayRef<runtime::TransferSample> samples) {
  constexpr size_t fewest = 4;
  constexpr int64_t largest = 64 << 10, span = 16;
  return samples.size() >= fewest && samples.back().bytes >= largest &&
         samples.back().bytes >= span * samples.front().bytes;
}

/// Brings the links to what the step's copies took, their differences kept.
void calibrateLinks(placement::Machine &machine, const MeasuredSteps &placed,
                    Tell tell) {
  llvm::SmallVector<placement::Link *> links;
  for (std::optional<placement::Link> &link : machine.links)
    if (link)
      links.push_back(&*link);
  if (links.empty())
    return;
  auto mean = [&](auto &&what) {
    double sum = 0;
    for (const placement::Link *link : links)
      sum += static_cast<double>(what(*link));
    return std::max(1.0, sum / links.size());
  };
  double latencyNs = mean([](auto &link) { return link.latencyNs; });
  double bandwidth = mean([](auto &link) { return link.bytesPerUs; });
  auto samples = copySamples(placed, latencyNs);
  runtime::Expected<runtime::LinkFit> fit = runtime::fitLink(samples);
  if (!spanLinks(samples) || !fit) {
    tell("calibrated: the links stay: this step's " +
         llvm::Twine(samples.size()) +
         " sizes of copies are too few or too small to tell latency "
         "and bandwidth");
    return;
  }
  tell(llvm::formatv("calibrated: links {0:F0} ns + bytes / {1:F2} "
                     "GB/s, residual {2:F1} %",
                     fit->latencyNs, fit->bytesPerNs, 100 * fit->residual));
  auto scaled = [](int64_t value, double by, int64_t least) {
    return std::max(least, int64_t(std::llround(double(value) * by)));
  };
  for (placement::Link *link : links) {
    link->latencyNs = scaled(link->latencyNs, fit->latencyNs / latencyNs, 0);
    link->bytesPerUs =
        scaled(link->bytesPerUs, fit->bytesPerNs * 1000 / bandwidth, 1);
  }
}
} // namespace

void baechi::calibrate(placement::Machine &machine, const MeasuredSteps &placed,
                       const MeasuredSteps &single, Tell tell) {
  if (machine.runtime->cores > 0) {
    tell("calibrated: what operators take on several devices stays: devices "
         "that take turns on processors do not tell");
    return calibrateLinks(machine, placed, tell);
  }
  // The same operators ran in both, in turns.
  double shared = total(placed.busyNs) / std::max(1.0, total(single.busyNs));
  machine.runtime->sharedPercent =
      std::clamp<int64_t>(std::llround(100 * shared), 1, 10'000);
  tell("calibrated: operators take " +
       llvm::Twine(machine.runtime->sharedPercent) +
       " % of what they take on one device");
  constexpr double shortStepNs = 1e6;
  if (single.medianNs < shortStepNs)
    tell("calibrated: a step of less than a millisecond tells little "
         "of this: calibrate with a larger model");
  calibrateLinks(machine, placed, tell);
}
