//===- InstanceFile.h - Reads what baechi-choose is given -------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_TOOLS_BAECHI_CHOOSE_INSTANCEFILE_H
#define BAECHI_TOOLS_BAECHI_CHOOSE_INSTANCEFILE_H

#include "Baechi/Placement/Choice/SolveChoice.h"

/// Reads an instance of the contest. Returns an error, empty if none, as the
/// others do.
std::string readInstance(const std::string &path,
                         baechi::placement::ChoiceProgram &program);

/// Reads a list of integers, the strategies of the nodes.
std::string readChoice(const std::string &path,
                       baechi::placement::Choice &choice);

/// Writes it as that.
std::string formatChoice(const baechi::placement::Choice &choice);

#endif // BAECHI_TOOLS_BAECHI_CHOOSE_INSTANCEFILE_H
