//===- LeastMemory.h - How little memory will do ----------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_LEASTMEMORY_H
#define BAECHI_LIB_PLACEMENT_LEASTMEMORY_H

#include "Baechi/Placement/Study/Sweep.h"
#include "Study/MachineVariant.h"

namespace baechi::placement::study {

/// Bisection over the memory of the first \p devices devices of machines of
/// \p variants. \p problem's machine is overwritten. \p enough is a memory
/// that needs no proof to be tried first. \p found is the placement of
/// the result.
LeastMemory leastMemory(Problem &problem, const MachineVariants &variants,
                        int32_t devices, int64_t enough,
                        const PlaceOptions &options,
                        std::optional<Placement> &found);

} // namespace baechi::placement::study

#endif // BAECHI_LIB_PLACEMENT_LEASTMEMORY_H
