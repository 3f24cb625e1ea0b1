//===- CudaRanks.h - CUDA devices of several ranks --------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_TRANSPORT_NCCL_CUDARANKS_H
#define BAECHI_RUNTIME_TRANSPORT_NCCL_CUDARANKS_H

#include "core/Driver.h"

namespace baechi::runtime {

/// CUDA's part in sessions of several ranks, see DriverKind: messages between
/// GPUs of two processes by NCCL, others through host memory.
Expected<RankConnections> connectCudaRanks(const RankDevices &devices);

} // namespace baechi::runtime

#endif // BAECHI_RUNTIME_TRANSPORT_NCCL_CUDARANKS_H
