//===- Machine.h - What this machine offers ---------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The facts of a machine file: how many host devices make sense here, how
/// much memory they share, what a message between two of them costs.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_MACHINE_H
#define BAECHI_RUNTIME_MACHINE_H

#include "Baechi/Runtime/Error.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace baechi::runtime {

struct HostInfo {
  /// Logical processors that this process may run on, those of different
  /// physical cores first. Never empty.
  std::vector<int> processors;
  /// How many of them it may keep busy (a control group's quota counts).
  int32_t cores = 1;
  /// Bytes that can be allocated without swapping, within the control groups'
  /// limits.
  int64_t memoryBytes = 0;
  /// The processor's extensions as the system names them, sorted; empty where
  /// it does not say.
  std::vector<std::string> extensions;
};

HostInfo queryHost();

/// One measured transfer time.
struct TransferSample {
  int64_t bytes = 0;
  double ns = 0;
};

/// time = latencyNs + bytes / bytesPerNs, fitted to samples.
struct LinkFit {
  double latencyNs = 0;
  double bytesPerNs = 0;
  /// Root mean square of the relative errors over the samples.
  double residual = 0;
  std::vector<TransferSample> samples;
};

/// Weighted least squares with weights 1/ns^2, so that every size counts with
/// its relative error and the latency is not drowned by the large ones. A
/// negative latency is fitted again as zero. Fails when the samples hold fewer
/// than two sizes, a time that is not positive, or do not grow with size.
Expected<LinkFit> fitLink(std::span<const TransferSample> samples);

struct LinkMeasureOptions {
  /// 0 and the powers of four up to this many bytes.
  int64_t largestBytes = int64_t(16) << 20;
  /// Round trips a size, after one that is not counted; the median is kept.
  int32_t repetitions = 15;
};

/// Measures messages between two host devices of a session of their own: half
/// the round trip, rendezvous and copy included.
Expected<LinkFit> measureHostLink(const LinkMeasureOptions &options = {});

} // namespace baechi::runtime

#endif // BAECHI_RUNTIME_MACHINE_H
