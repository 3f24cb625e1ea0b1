//===- CudaRoutes.h - How messages get to other ranks' GPUs -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Between GPUs of two processes messages go by NCCL. NCCL takes a GPU once, so
/// two processes that share one exchange theirs through host memory, as every
/// message does that has a host device at an end. All ranks find the same
/// routes, from what all of them know.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_DRIVERS_CUDA_CUDAROUTES_H
#define BAECHI_RUNTIME_DRIVERS_CUDA_CUDAROUTES_H

#include "core/Driver.h"

#include <compare>

namespace baechi::runtime::cuda {

/// The GPUs that this process sees: the machine's name, then each GPU's
/// address, a line each; or "error: " and why they cannot be told.
std::string describeGpus();
/// Why the GPUs of a rank that has CUDA devices could not be told.
Error findUnknownGpus(const RankDevices &devices);

/// The GPU, of those that a process sees, that a device lies on: each its own
/// where there are enough; else neighbours share one.
int gpuOf(const Share &share, int gpus);

struct Routes {
  enum class Kind : uint8_t {
    Other, ///< not between ranks, or without a CUDA device
    Staged,
    Nccl
  };
  /// A GPU of a rank; its position is its rank in NCCL's communicator.
  struct Member {
    int32_t rank;
    std::string gpu;
    auto operator<=>(const Member &) const = default;
  };

  int memberOf(int32_t device) const;

  std::vector<Kind> queues;
  std::vector<Member> members;
  /// Of each device; no rank where it is none of CUDA's.
  std::vector<Member> places;
  /// Why messages between GPUs do not go by NCCL, a line each.
  std::vector<std::string> notes;
};

/// `withoutNccl`: why there is no NCCL; "" where there is.
Routes planRoutes(const RankDevices &devices, const std::string &withoutNccl);

} // namespace baechi::runtime::cuda

#endif // BAECHI_RUNTIME_DRIVERS_CUDA_CUDAROUTES_H
