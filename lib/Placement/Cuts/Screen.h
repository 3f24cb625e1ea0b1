//===- Screen.h - What a graph in pieces is worth, quickly ------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_CUTS_SCREEN_H
#define BAECHI_LIB_PLACEMENT_CUTS_SCREEN_H

#include "Baechi/Placement/Model/Alternatives.h"
#include "Baechi/Placement/Model/PlaceOptions.h"

#include <limits>

namespace baechi::placement::cuts {

/// No placement was found.
constexpr int64_t never = std::numeric_limits<int64_t>::max();

/// The devices that lanes lie on: those that compute, without what transfers
/// are only staged through.
std::vector<int32_t> laneDevices(const Machine &machine);

/// The objective of the better of two placements within the memories, found
/// without a search: lanes on devices, and m-ETF's. `never`: neither fits, or
/// \p problem is not well formed.
int64_t screen(const Problem &problem,
               const std::vector<Expansion::Origin> &origins,
               Objective objective);

} // namespace baechi::placement::cuts

#endif // BAECHI_LIB_PLACEMENT_CUTS_SCREEN_H
