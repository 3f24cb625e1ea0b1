//===- CudaOverhead.h - Memory of a GPU beside the arenas -------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Code, graphs and libraries take memory of which the driver tells no more
/// than that it is no longer free. So it is what has gone since the arena was
/// there, less what this process's other devices on the GPU took for arenas of
/// theirs. It is the GPU's, not a device's: devices that share one see the sum,
/// and what other code and other processes took or gave meanwhile counts, too.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_DRIVERS_CUDA_CUDAOVERHEAD_H
#define BAECHI_RUNTIME_DRIVERS_CUDA_CUDAOVERHEAD_H

#include "drivers/cuda/CudaContexts.h"

#include <atomic>
#include <cstdint>

namespace baechi::runtime::cuda {

class Overhead {
public:
  /// The arena is there; the context is current.
  void begin(const Api &api, const ContextUse &context);
  /// Looks how much it is by now; the context is current.
  void look(const Api &api, const ContextUse &context);
  /// The most that any look has seen.
  int64_t bytes() const { return most.load(std::memory_order_relaxed); }

private:
  /// Free, and in arenas; negative: the driver does not tell.
  int64_t atFirst = -1;
  std::atomic<int64_t> most{0};
};

} // namespace baechi::runtime::cuda

#endif // BAECHI_RUNTIME_DRIVERS_CUDA_CUDAOVERHEAD_H
