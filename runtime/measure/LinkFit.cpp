//===- LinkFit.cpp - Fitting latency and bandwidth ------------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Runtime/Machine.h"

#include <algorithm>
#include <cassert>
#include <cmath>

using namespace baechi::runtime;

namespace {

struct Line {
  double intercept;
  double slope;
};

} // namespace

/// Minimises the sum of ((intercept + slope * bytes - ns) / ns)^2.
static Line fitLine(std::span<const TransferSample> samples) {
  double w = 0, x = 0, y = 0, xx = 0, xy = 0;
  for (const TransferSample &sample : samples) {
    double weight = 1 / (sample.ns * sample.ns);
    double bytes = static_cast<double>(sample.bytes);
    w += weight;
    x += weight * bytes;
    y += weight * sample.ns;
    xx += weight * bytes * bytes;
    xy += weight * bytes * sample.ns;
  }
  double slope = (w * xy - x * y) / (w * xx - x * x);
  double intercept = (y - slope * x) / w;
  if (intercept >= 0)
    return {intercept, slope};
  return {0, xy / xx};
}

Expected<LinkFit>
baechi::runtime::fitLink(std::span<const TransferSample> samples) {
  bool severalSizes = false;
  for (const TransferSample &sample : samples) {
    if (!(sample.ns > 0) || sample.bytes < 0)
      return Error("cannot fit a link: a sample of " +
                   std::to_string(sample.bytes) + " bytes took " +
                   std::to_string(sample.ns) + " ns");
    severalSizes |= sample.bytes != samples.front().bytes;
  }
  if (!severalSizes)
    return Error("cannot fit a link: samples of two sizes are needed");
  Line line = fitLine(samples);
  if (!(line.slope > 0))
    return Error("cannot fit a link: the times do not grow with the size");

  LinkFit fit;
  fit.latencyNs = line.intercept;
  fit.bytesPerNs = 1 / line.slope;
  double squares = 0;
  for (const TransferSample &sample : samples) {
    double predicted = line.intercept + line.slope * double(sample.bytes);
    double relative = (predicted - sample.ns) / sample.ns;
    squares += relative * relative;
  }
  fit.residual = std::sqrt(squares / double(samples.size()));
  fit.samples.assign(samples.begin(), samples.end());
  return fit;
}

LinkFit baechi::runtime::fitDisturbed(std::vector<TransferSample> samples) {
  assert(samples.size() > 1 && samples.front().ns > 0 &&
         samples.back().bytes > samples.front().bytes);
  for (size_t i = 1; i < samples.size(); ++i)
    samples[i].ns = std::max(samples[i].ns, samples[i - 1].ns);
  LinkFit fit;
  if (samples.front().ns < samples.back().ns) {
    fit = *fitLink(samples);
  } else {
    fit.latencyNs = samples.front().ns;
    fit.bytesPerNs = double(samples.back().bytes) / samples.back().ns;
    fit.samples = std::move(samples);
  }
  fit.disturbed = true;
  return fit;
}
