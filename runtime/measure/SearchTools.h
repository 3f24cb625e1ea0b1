//===- SearchTools.h - What searches on GPUs share -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_MEASURE_SEARCHTOOLS_H
#define BAECHI_RUNTIME_MEASURE_SEARCHTOOLS_H

#include "Baechi/Runtime/CudaConvolutions.h"
#include "Baechi/Runtime/Program.h"
#include "drivers/cuda/CudaDevice.h"

#include <functional>
#include <vector>

namespace baechi::runtime {

/// Rounds up to where libraries' workspaces may begin.
inline int64_t alignForSearch(int64_t bytes) {
  return (bytes + 255) / 256 * 256;
}

/// Writes so many bytes of numbers of a type (BAECHI_CUDA_F32, ...), of either
/// sign between 0.25 and 0.75: zeros would take less power.
Problem fillNumbers(cuda::CudaDevice &device, int64_t type, char *to,
                    int64_t bytes);

/// Median and spread.
CodeTime summarize(std::vector<double> samples);

/// A program of one GPU for `runSearch`, without operators yet.
Program searchProgram();

/// Runs `step`, whose operators `program` has, as its only step.
Error runSearch(const Program &program,
                std::function<int32_t(baechi_context *, char *)> step);

} // namespace baechi::runtime

#endif // BAECHI_RUNTIME_MEASURE_SEARCHTOOLS_H
