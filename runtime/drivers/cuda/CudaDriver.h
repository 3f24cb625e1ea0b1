//===- CudaDriver.h - Devices that are GPUs, or shares of one -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_DRIVERS_CUDA_CUDADRIVER_H
#define BAECHI_RUNTIME_DRIVERS_CUDA_CUDADRIVER_H

#include "core/Driver.h"

namespace baechi::runtime {

/// A logical CUDA device: an arena, a compute stream and a stream for each
/// queue that moves to or from it. Where there are more devices than GPUs,
/// neighbours share one.
std::unique_ptr<Driver> makeCudaDriver(const DeviceInfo &device, Entry entry,
                                       const Share &share);

} // namespace baechi::runtime

#endif // BAECHI_RUNTIME_DRIVERS_CUDA_CUDADRIVER_H
