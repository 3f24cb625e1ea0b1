//===- CudaMover.h - Messages to and from CUDA devices -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_DRIVERS_CUDA_CUDAMOVER_H
#define BAECHI_RUNTIME_DRIVERS_CUDA_CUDAMOVER_H

#include "drivers/cuda/CudaDevice.h"

#include <memory>
#include <span>

namespace baechi::runtime::cuda {

/// Moves messages between `device` and another, which sends if
/// `otherSends`: `peer`, or a host device (null) with `hostArena`, which is
/// pinned as long as the mover lives.
Expected<std::unique_ptr<Mover>>
makeCudaMover(CudaDevice &device, CudaDevice *peer, std::span<char> hostArena,
              bool otherSends, const std::vector<MessageInfo> &messages);

} // namespace baechi::runtime::cuda

#endif // BAECHI_RUNTIME_DRIVERS_CUDA_CUDAMOVER_H
