//===- Sweep.h - The table of other machines --------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_TOOLS_BAECHI_PLACE_SWEEP_H
#define BAECHI_TOOLS_BAECHI_PLACE_SWEEP_H

#include "Baechi/Placement/Sweep.h"

/// For a person.
std::string sweepText(const baechi::placement::Sweep &sweep);

/// The same as data: what scripts/plot-sweep reads.
std::string sweepJson(const baechi::placement::Sweep &sweep);

#endif // BAECHI_TOOLS_BAECHI_PLACE_SWEEP_H
