//===- RooflineFit.cpp - Peaks from measured kernels ------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Costs/Roofline.h"
#include "llvm/ADT/STLExtras.h"
#include <array>
#include <cmath>

using namespace mlir;
using namespace baechi;

namespace {
constexpr size_t fewestSamples = 4;
/// Thresholds that are tried; with more samples evenly among them.
constexpr size_t mostThresholds = 64;

/// Nanoseconds of a launch, a floating-point operation and a byte.
using Coefficients = std::array<double, 3>;

/// Solves the normal equations restricted to the unknowns in \p used (a bit
/// each); nullopt when they are singular or a value is negative.
std::optional<Coefficients> solve(const double (&matrix)[3][4], unsigned used) {
  double rows[3][4];
  SmallVector<int, 3> unknowns;
  for (int i = 0; i < 3; ++i)
    if (used >> i & 1)
      unknowns.push_back(i);
  int n = unknowns.size();
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j)
      rows[i][j] = matrix[unknowns[i]][unknowns[j]];
    rows[i][n] = matrix[unknowns[i]][3];
  }
  for (int i = 0; i < n; ++i) {
    int pivot = i;
    for (int k = i + 1; k < n; ++k)
      if (std::abs(rows[k][i]) > std::abs(rows[pivot][i]))
        pivot = k;
    std::swap(rows[i], rows[pivot]);
    if (std::abs(rows[i][i]) < 1e-12)
      return std::nullopt;
    for (int k = 0; k < n; ++k)
      if (k != i) {
        double factor = rows[k][i] / rows[i][i];
        for (int j = i; j <= n; ++j)
          rows[k][j] -= factor * rows[i][j];
      }
  }
  Coefficients values{};
  for (int i = 0; i < n; ++i) {
    values[unknowns[i]] = rows[i][n] / rows[i][i];
    if (!(values[unknowns[i]] >= 0))
      return std::nullopt;
  }
  return values;
}

/// Fits with the first \p memoryBound samples bound by memory, the others by
/// arithmetic. Every sample weighs by its relative error.
std::optional<Coefficients> fitSplit(ArrayRef<RooflineSample> samples,
                                     size_t memoryBound) {
  // Scaled, so that one tolerance serves all unknowns.
  Coefficients scale{1, 1, 1};
  double matrix[3][4] = {};
  for (bool summing : {false, true})
    for (auto [k, sample] : llvm::enumerate(samples)) {
      double row[3] = {1 / sample.ns, 0, 0};
      (k < memoryBound ? row[2] : row[1]) =
          (k < memoryBound ? sample.work.bytes : sample.work.flops) / sample.ns;
      for (int i = 0; i < 3; ++i) {
        if (!summing) {
          scale[i] = k == 0 ? row[i] : std::max(scale[i], row[i]);
          continue;
        }
        for (int j = 0; j < 3; ++j)
          if (scale[i] > 0 && scale[j] > 0)
            matrix[i][j] += row[i] / scale[i] * (row[j] / scale[j]);
        if (scale[i] > 0)
          matrix[i][3] += row[i] / scale[i];
      }
    }
  // Three unknowns: of all subsets the one of least error is the solution.
  std::optional<Coefficients> best;
  double least = 0;
  for (unsigned used = 1; used < 8; ++used) {
    std::optional<Coefficients> values = solve(matrix, used);
    if (!values)
      continue;
    for (int i = 0; i < 3; ++i)
      (*values)[i] = scale[i] > 0 ? (*values)[i] / scale[i] : 0;
    double error = 0;
    for (auto [k, sample] : llvm::enumerate(samples)) {
      double ns =
          (*values)[0] + (k < memoryBound ? (*values)[2] * sample.work.bytes
                                          : (*values)[1] * sample.work.flops);
      error += std::pow(ns / sample.ns - 1, 2);
    }
    if (!best || error < least) {
      best = values;
      least = error;
    }
  }
  return best;
}
} // namespace

std::optional<RooflineFit> baechi::fitRoofline(ArrayRef<RooflineSample> given,
                                               const Roofline &assumed) {
  SmallVector<RooflineSample> samples;
  for (const RooflineSample &sample : given)
    if (sample.ns > 0 && sample.work.bytes > 0)
      samples.push_back(sample);
  if (samples.size() < fewestSamples)
    return std::nullopt;
  llvm::stable_sort(samples, [](const auto &a, const auto &b) {
    return a.work.flops / a.work.bytes < b.work.flops / b.work.bytes;
  });

  std::optional<RooflineFit> best;
  double least = 0;
  size_t thresholds = std::min(samples.size(), mostThresholds);
  for (size_t k = 0; k <= thresholds; ++k) {
    size_t memoryBound = samples.size() * k / thresholds;
    std::optional<Coefficients> values = fitSplit(samples, memoryBound);
    if (!values)
      continue;
    RooflineFit fit;
    fit.roofline = assumed;
    fit.roofline.launchNs = std::llround((*values)[0]);
    if ((*values)[1] > 0)
      fit.roofline.flopsPerSecond = 1e9 / (*values)[1];
    if ((*values)[2] > 0)
      fit.roofline.bytesPerSecond = 1e9 / (*values)[2];
    // Judged as it will be used: by the larger of the two.
    double error = 0;
    SmallVector<double> errors;
    for (const RooflineSample &sample : samples) {
      double ns = std::max<int64_t>(1, fit.roofline.timeNs(sample.work));
      error += std::abs(std::log(ns / sample.ns));
      errors.push_back(std::abs(ns / sample.ns - 1));
    }
    if (best && error >= least)
      continue;
    llvm::sort(errors);
    fit.medianError = errors[errors.size() / 2];
    best = fit;
    least = error;
  }
  return best;
}
