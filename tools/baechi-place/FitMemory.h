//===- FitMemory.h - Graphs that do not fit as they are ---------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_TOOLS_BAECHI_PLACE_FITMEMORY_H
#define BAECHI_TOOLS_BAECHI_PLACE_FITMEMORY_H

#include "Baechi/Placement/Study/FitPlacement.h"

#include <string>

/// What a refusal of \p problem adds: whether --fit-memory may help. Empty:
/// with more memory it is not placed either, or on other grounds not fitted.
std::string adviseFit(const baechi::placement::Problem &problem,
                      const baechi::placement::PlaceOptions &options);

#endif // BAECHI_TOOLS_BAECHI_PLACE_FITMEMORY_H
