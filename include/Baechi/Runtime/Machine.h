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
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace baechi::runtime {

class Ranks;

/// A cache that some processors share, or one has alone.
struct CacheInfo {
  int32_t level = 0;
  int64_t bytes = 0;
  /// As the system writes it: "0-3,8".
  std::string processors;
};

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
  /// The processor's name; "" where the system does not say.
  std::string model;
  /// Caches of data of the usable processors, each once, by level.
  std::vector<CacheInfo> caches;
};

HostInfo queryHost();

struct GpuInfo {
  /// Among those that this process sees.
  int32_t number = 0;
  std::string name;
  /// Its compute capability: 9.0 is 90.
  int32_t capability = 0;
  /// 1: it copies in one direction at a time.
  int32_t copyEngines = 0;
  /// What programs can have: what is free beside CUDA's context, less a reserve
  /// for code, graphs and libraries.
  int64_t memoryBytes = 0;
  /// cuBLASLt's; 0 where there is none.
  int64_t libraryVersion = 0;
  /// cuDNN's; 0 where there is none.
  int64_t convolutionsVersion = 0;

  /// What times of kernels are true for.
  std::string target() const;
};

/// What code, graphs and libraries may take of a GPU, beside arenas.
constexpr int64_t gpuReserveBytes = int64_t(256) << 20;

/// The GPU that the device lies on which is number \p ordinal of a machine's
/// \p count CUDA devices: those share GPUs, neighbours first, where there are
/// more of them. The error says what is missing.
Expected<GpuInfo> queryGpu(int32_t ordinal = 0, int32_t count = 1);

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
  /// Every time it was measured they were so large that other work must have
  /// disturbed it.
  bool disturbed = false;
  std::vector<TransferSample> samples;
};

/// Weighted least squares with weights 1/ns^2, so that every size counts with
/// its relative error and the latency is not drowned by the large ones. A
/// negative latency is fitted again as zero. Fails when the samples hold fewer
/// than two sizes, a time that is not positive, or do not grow with size.
Expected<LinkFit> fitLink(std::span<const TransferSample> samples);

/// What can be said where other work of the machine disturbed every sample (of
/// growing sizes, positive times): no message takes less time than a smaller
/// one, and where all take the same, the largest's bytes go in that time.
LinkFit fitDisturbed(std::vector<TransferSample> samples);

struct LinkMeasureOptions {
  /// The devices of a session that exchange messages: which processors their
  /// threads are bound to. Two different ones.
  int32_t sender = 0;
  int32_t receiver = 1;
  /// 0 and the powers of four up to this many bytes, at most 16 MiB.
  int64_t largestBytes = int64_t(4) << 20;
  /// Messages a size, after one that is not counted; the median is kept.
  int32_t repetitions = 15;
  /// Of the machine's devices, host, cuda, pool or disk: which GPU a device
  /// lies on depends on all of them. Those left off are hosts. A disk's file is
  /// written and read as in a step: as far as the system keeps it in memory,
  /// that is what is measured.
  std::vector<std::string> kinds = {};
  /// What errors call them; those left off are device0, device1, ...
  std::vector<std::string> names = {};
  /// Rank 0 of several processes, among which the devices are divided, hosts
  /// all; the others followLinkMeasure(). What the relay takes is part of it.
  std::shared_ptr<Ranks> ranks = {};
};

/// Measures messages between two devices of a session of their own: rendezvous
/// (half the round trip of one without bytes) and copy, under a step's
/// conditions: from the cache of who has just written the tensor to where
/// nobody was lately. What a GPU does is timed by its events.
Expected<LinkFit> measureLink(const LinkMeasureOptions &options = {});

/// Other ranks than the first: takes part in one measurement, if \p asked is
/// what measureLink() has sent to begin one; false: it is something else.
Expected<bool> followLinkMeasure(const std::shared_ptr<Ranks> &ranks,
                                 const std::string &asked);

/// What the runtime itself takes, ns.
struct StepOverheads {
  /// A step of two devices that do nothing.
  double stepNs = 0;
  /// From an operator's end to the next one's begin. What begins and ends it
  /// within its own time is part of what operators are measured to take.
  double operatorNs = 0;
  /// From a message's offer to the moment that its receiver, which fell asleep
  /// over it, goes on.
  double wakeNs = 0;
  /// A step of one device that does nothing.
  double aloneNs = 0;
  /// Measurements differed, as other work disturbed them.
  bool disturbed = false;
};

/// Measures sessions of one and of two host devices, medians of some dozen
/// steps, until they settle; takes about 30 ms, thrice that at most.
Expected<StepOverheads> measureHostStep();

/// Calls \p measure until two calls agree about all times, five times at most,
/// and gives the least of each: what else the machine does only adds to them.
/// Where no two agree, the times are disturbed.
Expected<StepOverheads>
settleOverheads(const std::function<Expected<StepOverheads>()> &measure);

} // namespace baechi::runtime

#endif // BAECHI_RUNTIME_MACHINE_H
