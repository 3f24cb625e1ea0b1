//===- PlaceBriefly.h - Placements without advice ---------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_PLACEMENT_SESSION_PLACEBRIEFLY_H
#define BAECHI_PLACEMENT_SESSION_PLACEBRIEFLY_H

#include "Baechi/Placement/Session/Place.h"

#include <limits>

namespace baechi::placement {

/// What `place` finds. Where that is nothing for the memories, the error does
/// not say what is missing and how much would do: looking for that takes about
/// as long as placing.
PlaceResult placeBriefly(const Problem &problem, const PlaceOptions &options);

/// What `place` finds; no placement where the lower bound is \p most or more.
PlaceResult placeBelow(const Problem &problem, const PlaceOptions &options,
                       int64_t most);

/// The same of the placers, without a search.
PlaceResult placeByPlacers(const Problem &problem, PlaceOptions options,
                           int64_t most = std::numeric_limits<int64_t>::max());

/// The same with a search of the machine itself: of those that can do less only
/// links are looked at, by placers.
PlaceResult placeOnce(const Problem &problem, const PlaceOptions &options,
                      int64_t most);

} // namespace baechi::placement

#endif // BAECHI_PLACEMENT_SESSION_PLACEBRIEFLY_H
