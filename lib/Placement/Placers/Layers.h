//===- Layers.h - Placements that people write by hand ----------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What people write who know a model as a list of layers: layers on the
/// devices in turn, contiguous blocks of them, one kind of layer a device. They
/// need no names: layers are the groups of co-placement that do most of the
/// work.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_LAYERS_H
#define BAECHI_LIB_PLACEMENT_LAYERS_H

#include "Placers/Registry.h"

namespace baechi::placement::placers {

/// \p groupOf: the group of every unit. A layer is a group that does at least
/// half a per cent of all work; layers are in the order of their first
/// operators, forward ones first, and of one kind when they have about as many
/// operators. All else is where its first operand is.
///
/// - `turn`, `snake`: layers on the devices in turn, always from the first one,
///   or there and back.
/// - `blocks:N`, `work:N`: contiguous blocks of as many layers, or as much
///   work, on the first N devices.
/// - `kinds`: the kinds on the devices in turn.
/// - `kinds:turn`, `kinds:blocks`: the layers of each kind in turn, or in
///   contiguous blocks on all devices.
std::vector<Proposal> proposeLayers(const Problem &problem, const Model &model,
                                    const std::vector<Unit> &groupOf);

} // namespace baechi::placement::placers

#endif // BAECHI_LIB_PLACEMENT_LAYERS_H
