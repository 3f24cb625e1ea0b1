//===- GpuRun.h - How long a GPU takes for a run of operators ---*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A GPU replays what it does between two messages as one graph, in which an
/// operator follows those that it is in conflict with and runs beside all
/// others (Baechi/Support/Conflicts.h, which the runtime orders them by).
///
/// Those that run at the same time share the GPU: an operator alone has as much
/// of it as its blocks fill, and so much it has beside others, too, as long as
/// all of them fit. Where they ask for more, all become slower by the same
/// factor. So two operators that fill the GPU take as long together as one
/// after the other, and two of a few blocks each as long as the longer one.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_ANALYSIS_GPURUN_H
#define BAECHI_ANALYSIS_GPURUN_H

#include "Baechi/Support/Conflicts.h"
#include "llvm/ADT/ArrayRef.h"
#include <cstdint>
#include <vector>

namespace baechi {

/// ns since a step's or a run's start.
struct SimulatedInterval {
  int64_t start = 0;
  int64_t end = 0;
};

/// An operator of a GPU.
struct GpuOperator {
  /// What it takes alone.
  int64_t ns = 0;
  /// Of its largest launch; 0 where that is not known: it fills the GPU.
  int64_t blocks = 0;
  /// Bytes of the device's arena.
  support::Accesses accesses;
};

/// So many blocks fill a GPU: two on each of an H100's 132 multiprocessors. By
/// this number the predicted steps of docs/benchmarks-gpu.md are nearest to the
/// measured ones; with one or three blocks they are off by up to a third.
inline constexpr int64_t blocksThatFill = 264;

/// Of the GPU, what an operator has alone.
double shareOfGpu(const GpuOperator &op);

/// When each of some operators, in the order that they are asked for in, runs.
std::vector<SimulatedInterval> simulateGpuRun(llvm::ArrayRef<GpuOperator> run);

} // namespace baechi

#endif // BAECHI_ANALYSIS_GPURUN_H
