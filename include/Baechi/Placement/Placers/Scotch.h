//===- Scotch.h - The Scotch back end ---------------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Scotch is under CeCILL-C, which is much like the LGPL: this back end is a
/// library of its own, BaechiPlacementScotch, that programs link when they may.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_PLACEMENT_PLACERS_SCOTCH_H
#define BAECHI_PLACEMENT_PLACERS_SCOTCH_H

#include "Baechi/Placement/Placers/Partitioner.h"

#include <memory>

namespace baechi::placement {

std::unique_ptr<Partitioner> createScotchPartitioner();

} // namespace baechi::placement

#endif // BAECHI_PLACEMENT_PLACERS_SCOTCH_H
