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

namespace baechi::placement {

/// Every device that may run the whole graph; of devices that are alike the
/// first.
Proposals proposeSingle(const PlacerContext &context);

/// Units on the devices in turn, in the topological order of their first
/// nodes.
Proposals proposeRoundRobin(const PlacerContext &context);

/// An expert's rules (`PlaceOptions::expert`): the first that matches an
/// operator's name gives its device; a colocation group follows its first
/// operator that matches; what no rule matches follows its first operand, or
/// its first user when it has none.
Proposals proposeExpert(const PlacerContext &context);

} // namespace baechi::placement

#endif // BAECHI_LIB_PLACEMENT_BASELINES_H
