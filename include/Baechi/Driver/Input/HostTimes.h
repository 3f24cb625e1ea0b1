//===- HostTimes.h - What was measured of a host, in a machine --*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_DRIVER_INPUT_HOSTTIMES_H
#define BAECHI_DRIVER_INPUT_HOSTTIMES_H

#include "Baechi/Costs/Profile.h"
#include "Baechi/Placement/Model/Problem.h"
#include "llvm/ADT/SmallVector.h"
#include <optional>

namespace baechi {

/// Whose memory the processor reads and writes.
bool isHostMemory(const placement::Device &device);

/// The devices by their numbers.
llvm::SmallVector<int32_t>
devicesWhere(const placement::Machine &machine,
             bool (*holds)(const placement::Device &));

/// What was measured is a copy; whether the link lends is the machine's word.
void setMeasured(placement::Machine &machine, size_t from, size_t to,
                 const placement::Link &measured);

/// Of all links between devices in host memory.
void setHostLinks(placement::Machine &machine, const placement::Link &link);

/// Of a host with so many processors.
void setRuntime(placement::Machine &machine,
                const placement::RuntimeCosts &runtime, int64_t cores);

/// What measureLinks() or measureRuntime() has found out about \p machine, for
/// others of this host; nullopt where that is more than a profile has.
std::optional<HostTimes> hostTimesOf(const placement::Machine &machine);

/// Gives \p machine what was measured before; false where it needs more.
bool setHostTimes(placement::Machine &machine, const HostTimes &times);

} // namespace baechi

#endif // BAECHI_DRIVER_INPUT_HOSTTIMES_H
