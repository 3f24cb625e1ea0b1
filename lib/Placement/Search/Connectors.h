//===- Connectors.h - Units between clusters --------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A group of co-placement holds, beside a layer, what connects it with others:
/// residual sums, concatenations. These take no time, but with the wrong one of
/// three layers every step in time waits for it: one of GNMT's best placements
/// of whole layers is a fifth longer with an encoder's residual sums on the
/// device of the layer below, and looked worse than what it beats.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_SEARCH_CONNECTORS_H
#define BAECHI_LIB_PLACEMENT_SEARCH_CONNECTORS_H

#include "Search/Levels.h"
#include "Search/Traffic.h"

namespace baechi::placement::search {

/// Units of a cluster that take less time than one of their transfers and that
/// exchange tensors with the same other clusters: they are where one of these
/// is.
struct Connector {
  std::vector<Unit> units;
  /// Clusters, their own first.
  std::vector<int32_t> around;
};

/// Those with the most traffic that do little of all work.
std::vector<Connector> findConnectors(const UnitTable &units,
                                      const Traffic &traffic,
                                      const Level &level);

} // namespace baechi::placement::search

#endif // BAECHI_LIB_PLACEMENT_SEARCH_CONNECTORS_H
