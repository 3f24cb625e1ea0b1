//===- Text.h - Bytes and culprits in words ---------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_MEMORY_NAMES_H
#define BAECHI_LIB_PLACEMENT_MEMORY_NAMES_H

#include "Model/Model.h"

#include <string>

namespace baechi::placement::memory {

/// A number of bytes, \p what they are (" bytes"), and from 1 KiB on the size
/// in units for people.
std::string sizeText(__int128 bytes, const char *what = "");

/// "operator 3 'conv'"
std::string nodeName(const Problem &problem, int32_t i);

/// "group 'g' (3 operators)", or its only operator's name.
std::string unitName(const Problem &problem, const Model &model, Unit u);

} // namespace baechi::placement::memory

#endif // BAECHI_LIB_PLACEMENT_MEMORY_NAMES_H
