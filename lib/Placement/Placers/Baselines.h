//===- Baselines.h - What placers are compared with -------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The proposals of the baselines. None of them is a recommendation: each is
/// how a placement is made where there is no placer.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_BASELINES_H
#define BAECHI_LIB_PLACEMENT_BASELINES_H

#include "Placers/Registry.h"

namespace baechi::placement::placers {

/// Every device that may run the whole graph; of devices that are alike the
/// first.
Proposals proposeSingle(const PlacerContext &context);
/// The same for devices that may not: what cannot run there goes where it runs
/// fastest. With all of them when it is what was asked for.
Proposals proposeMostlySingle(const PlacerContext &context);

/// Units on the devices in turn, in the topological order of their first
/// nodes.
Proposals proposeRoundRobin(const PlacerContext &context);

/// An expert's rules (`PlaceOptions::expert`): the first that matches an
/// operator's name gives its device; a colocation group follows its first
/// operator that matches; what no rule matches follows its first operand, or
/// its first user when it has none.
Proposals proposeExpert(const PlacerContext &context);

/// The graph's list of forward operators cut into one piece a device, of even
/// work and of even resident bytes; backward operators follow.
Proposals proposeEvenSplit(const PlacerContext &context);

/// Balanced partitions of the colocation groups that cut little traffic, by
/// `PlaceOptions::partitioner`.
Proposals proposeMinCut(const PlacerContext &context);

/// m-ETF of the operators as if there were no groups; then every group goes
/// where its operator with the most work is ("work"), that with the most bytes
/// ("memory"), or most of its operators ("count").
Proposals proposePostAdjusted(const PlacerContext &context);

/// Simulated annealing of the grouped model, a fixed number of evaluations.
Proposals proposeAnnealing(const PlacerContext &context);

/// Gives every unit without a device (-1) that of its first data operand, in
/// the order of the graph's edges, or of its first user, and one that it may
/// use when it may not use that. Returns the number of nodes that had a device
/// and may not use it.
int64_t followOperands(const Graph &graph, const Model &model,
                       std::vector<int32_t> &home);

/// The assignment of a device per unit.
Assignment perNode(const Model &model, const std::vector<int32_t> &home);

} // namespace baechi::placement::placers

#endif // BAECHI_LIB_PLACEMENT_BASELINES_H
