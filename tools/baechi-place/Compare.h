//===- Compare.h - The table of all placers ---------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_TOOLS_BAECHI_PLACE_COMPARE_H
#define BAECHI_TOOLS_BAECHI_PLACE_COMPARE_H

#include "Baechi/Placement/Compare.h"

/// For a person.
std::string comparisonText(const baechi::placement::Problem &problem,
                           const baechi::placement::Comparison &comparison);

/// The same as data.
std::string comparisonJson(const baechi::placement::Problem &problem,
                           const baechi::placement::Comparison &comparison);

#endif // BAECHI_TOOLS_BAECHI_PLACE_COMPARE_H
