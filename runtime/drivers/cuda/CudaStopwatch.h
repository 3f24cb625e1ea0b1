//===- CudaStopwatch.h - Times of work on a compute stream ------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_DRIVERS_CUDA_CUDASTOPWATCH_H
#define BAECHI_RUNTIME_DRIVERS_CUDA_CUDASTOPWATCH_H

#include "drivers/cuda/CudaApi.h"

#include <functional>

namespace baechi::runtime::cuda {

class CudaDevice;

/// Times work on a device's compute stream by events. Small kernels that are
/// told one by one take as long as the host takes to tell them, so what is
/// timed is a graph of as many repeats as make a sample long enough.
class Stopwatch {
public:
  explicit Stopwatch(CudaDevice &device) : device(device) {}
  Stopwatch(const Stopwatch &) = delete;
  /// Tells the stream the work once. While that is captured, `capturing` says
  /// so.
  using Work = std::function<Problem(bool capturing)>;

  Problem open();
  /// While the device's context is there.
  void close();

  /// How often the work is repeated, and the graph that does it; null where it
  /// cannot be captured.
  struct Repeats {
    int64_t calls = 1;
    GraphExec graph = nullptr;
  };
  /// Runs the work `warmUps` times, as what it loads no capture may, and
  /// prepares its repeats by the last time.
  Problem prepare(const Work &work, int warmUps, Repeats &repeats);
  /// What the work takes once, in a sample of its repeats, which run twice.
  Problem sample(const Work &work, const Repeats &repeats, double &ns);
  void release(Repeats &repeats);

private:
  Problem time(const std::function<Problem()> &begun, double &ns);
  GraphExec capture(const Work &work, int64_t calls);

  CudaDevice &device;
  Event begin = nullptr, end = nullptr;
};

} // namespace baechi::runtime::cuda

#endif // BAECHI_RUNTIME_DRIVERS_CUDA_CUDASTOPWATCH_H
