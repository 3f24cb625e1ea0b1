//===- Calibrate.cpp - Fit a machine to measured steps -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Calibrate.h"
#include "Baechi/Runtime/Machine.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>
#include <map>
#include <numeric>

using namespace baechi;

namespace {
/// The medians of what copies of each size took, with the rendezvous that a
/// copy's record does not have.
std::vector<runtime::TransferSample> copySamples(const Execution &placed,
                                                 double rendezvousNs) {
  std::map<int64_t, std::vector<double>> times;
  const runtime::Program &program = placed.program();
  const runtime::Timeline &timeline = placed.fastest();
  for (auto [queue, records] : llvm::zip(program.queues, timeline.queues))
    for (auto [message, record] : llvm::zip(queue.messages, records))
      if (record.happened() && message.bytes > 0)
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
} // namespace

void baechi::calibrate(placement::Machine &machine, const Execution &placed,
                       const Execution &single) {
  // The same operators ran in both, in turns.
  double shared = total(placed.measurement().busyNs) /
                  std::max(1.0, total(single.measurement().busyNs));
  machine.runtime->sharedPercent =
      std::clamp<int64_t>(std::llround(100 * shared), 1, 10'000);
  llvm::errs() << llvm::format(
      "calibrated: operators take %lld %% of what they take on one device\n",
      static_cast<long long>(machine.runtime->sharedPercent));

  int64_t n = machine.devices.size();
  auto links = llvm::make_filter_range(
      machine.links, [](const auto &link) { return link.has_value(); });
  if (links.empty())
    return;
  int64_t rendezvousNs = (*links.begin())->latencyNs;
  runtime::Expected<runtime::LinkFit> fit =
      runtime::fitLink(copySamples(placed, rendezvousNs));
  // Copies of one size alone make no line: the links stay.
  if (!fit)
    return;
  llvm::errs() << llvm::format(
      "calibrated: links %.0f ns + bytes / %.2f GB/s, residual %.1f %%\n",
      fit->latencyNs, fit->bytesPerNs, 100 * fit->residual);
  for (int64_t from = 0; from < n; ++from)
    for (int64_t to = 0; to < n; ++to)
      if (from != to && machine.links[from * n + to])
        machine.links[from * n + to] = placement::Link{
            std::max<int64_t>(0, std::llround(fit->latencyNs)),
            std::max<int64_t>(1, std::llround(fit->bytesPerNs * 1000))};
}
