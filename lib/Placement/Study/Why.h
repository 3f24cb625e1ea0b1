//===- Why.h - Explanations in words ----------------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_WHY_H
#define BAECHI_LIB_PLACEMENT_WHY_H

#include "Baechi/Placement/Study/Explain.h"

namespace baechi::placement::study {

/// The sentence for Limit::Memory.
std::string memoryReason(const DeviceChoice &choice, int32_t groupSize);

/// Why the operator of \p explanation, whose devices are filled in, is where it
/// is.
std::string why(const Problem &problem, const Explanation &explanation);

} // namespace baechi::placement::study

#endif // BAECHI_LIB_PLACEMENT_WHY_H
