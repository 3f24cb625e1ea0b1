//===- CheckMachine.h - What is wrong with a machine ------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_CHECKMACHINE_H
#define BAECHI_LIB_PLACEMENT_CHECKMACHINE_H

#include "Baechi/Placement/Model/Problem.h"

#include <string>
#include <vector>

namespace baechi::placement {

/// What is wrong with a machine whatever the graph; empty: nothing.
std::vector<std::string> checkMachine(const Machine &machine);

} // namespace baechi::placement

#endif // BAECHI_LIB_PLACEMENT_CHECKMACHINE_H
