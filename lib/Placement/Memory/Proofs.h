//===- Proofs.h - Why nothing can fit ---------------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Lower bounds of the memory that any placement needs. Whether one exists is
/// NP-hard to say (it contains bin packing), so a proof may be missing.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_MEMORY_PROOFS_H
#define BAECHI_LIB_PLACEMENT_MEMORY_PROOFS_H

#include "Model/Model.h"

#include <string>

namespace baechi::placement::memory {

/// Why no placement at all can fit.
struct Infeasible {
  std::string why = {}; ///< empty: nothing is proven
  /// The operator that it is about; -1: about none alone.
  int32_t op = -1;
};

/// A reason why no placement at all can fit, if one was found. It counts, in
/// this order: what a unit holds for good; that and what an operator and its
/// unit hold while the operator runs; what is alive then on all devices
/// together; how all this goes into the devices that may hold it, as a whole
/// and in pieces. O(nodes + edges) for memories that are ample, else bounded by
/// a constant number of such passes.
Infeasible proveInfeasible(const Problem &problem, const Model &model);

} // namespace baechi::placement::memory

#endif // BAECHI_LIB_PLACEMENT_MEMORY_PROOFS_H
