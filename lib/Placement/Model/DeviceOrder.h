//===- DeviceOrder.h - Devices regardless of their numbers ------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Ties between devices go to the first. So that a machine's placement does not
/// depend on the order in which it lists devices of one kind, they are numbered
/// by what tells them apart before anything looks at them.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_MODEL_DEVICEORDER_H
#define BAECHI_LIB_PLACEMENT_MODEL_DEVICEORDER_H

#include "Baechi/Placement/Model/Placement.h"

namespace baechi::placement {

/// The devices of each kind, in the places that the kind has in the machine,
/// sorted by memory (the largest first), what is pinned to them and their
/// links; in the machine's order where none of these differs. Links are told
/// apart by colour refinement (Weisfeiler & Leman 1968). Entry k is the
/// machine's number of the device that comes k-th.
std::vector<int32_t> deviceOrder(const Problem &problem);

/// The machine with its devices in an order, or with those alone that it has.
/// Nodes keep their order.
Machine reorder(const Machine &machine, const std::vector<int32_t> &order);

/// Gives the devices of a placement the numbers \p numberOf.
void renumber(Placement &placement, const std::vector<int32_t> &numberOf);

} // namespace baechi::placement

#endif // BAECHI_LIB_PLACEMENT_MODEL_DEVICEORDER_H
