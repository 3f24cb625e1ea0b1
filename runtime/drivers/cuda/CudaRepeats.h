//===- CudaRepeats.h - Operators' times by repeats -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// An operator's commands are held back until it ends. Then they are repeated
/// as a graph, on the data that the step has for them, and timed; what the
/// arena held before them is put back, and they are done once more, for the
/// step. That is for a step of one device alone: no other one's copy may meet
/// the repeats.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_DRIVERS_CUDA_CUDAREPEATS_H
#define BAECHI_RUNTIME_DRIVERS_CUDA_CUDAREPEATS_H

#include "drivers/cuda/CudaCommands.h"
#include "drivers/cuda/CudaStopwatch.h"

namespace baechi::runtime::cuda {

class Repeater {
public:
  Repeater(CudaDevice &device, size_t operators)
      : device(device), watch(device), times(operators) {}
  Repeater(const Repeater &) = delete;

  /// Memory for a copy of the arena, `bytes` at `arena`; a problem where there
  /// is none.
  Problem open(DevicePointer arena, size_t bytes);
  /// While the device's context is there.
  void close();

  void begin() {
    words.clear();
    isOpen = true;
  }
  /// Whether commands belong to an operator, and are held back.
  bool holdsBack() const { return isOpen; }
  void add(std::span<const uint64_t> command) {
    words.insert(words.end(), command.begin(), command.end());
  }
  Problem end(size_t op);
  /// What operator `op` took in its last step.
  int64_t ns(size_t op) const { return times[op]; }

private:
  CudaDevice &device;
  Stopwatch watch;
  std::vector<int64_t> times;
  Words words;
  bool isOpen = false;
  DevicePointer arena = 0, copy = 0;
  size_t bytes = 0;
};

} // namespace baechi::runtime::cuda

#endif // BAECHI_RUNTIME_DRIVERS_CUDA_CUDAREPEATS_H
