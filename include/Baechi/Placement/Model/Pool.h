//===- Pool.h - Devices that only hold and copy -----------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A pool is a memory beside the devices that compute: of an operator without a
/// time for its kind it runs none that takes time, whatever stands for every
/// kind.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_PLACEMENT_MODEL_POOL_H
#define BAECHI_PLACEMENT_MODEL_POOL_H

#include "Baechi/Placement/Model/Problem.h"

#include <string_view>
#include <vector>

namespace baechi::placement {

/// The kind of a device that holds and copies tensors, and computes nothing.
constexpr char kPool[] = "pool";
/// The same whose memory is a file.
constexpr char kDisk[] = "disk";

inline bool isPoolKind(std::string_view kind) {
  return kind == kPool || kind == kDisk;
}
inline bool isPool(const Device &device) { return isPoolKind(device.kind); }

/// The pools, in the machine's order.
std::vector<int32_t> poolsOf(const Machine &machine);

/// How many devices compute.
int32_t numComputing(const Machine &machine);

/// The memories of the devices that compute, together.
int64_t computingBytes(const Machine &machine);

/// The devices that compute, and the links between them.
Machine withoutPools(const Machine &machine);

} // namespace baechi::placement

#endif // BAECHI_PLACEMENT_MODEL_POOL_H
