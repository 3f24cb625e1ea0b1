//===- Placement.h - A solution of the placement problem ------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_PLACEMENT_MODEL_PLACEMENT_H
#define BAECHI_PLACEMENT_MODEL_PLACEMENT_H

#include "Baechi/Placement/Model/Problem.h"

namespace baechi::placement {

/// One tensor moved from one device to another.
struct Transfer {
  int32_t op = 0;
  int32_t output = 0;
  int32_t from = 0;
  int32_t to = 0;
  int64_t startNs = 0;
  int64_t endNs = 0;
};

/// A device and a start for every operator, and every transfer.
struct Placement {
  std::vector<int32_t> device;     ///< per operator
  std::vector<int64_t> startNs;    ///< per operator
  std::vector<Transfer> transfers; ///< ordered by start
  int64_t makespanNs = 0;
};

} // namespace baechi::placement

#endif // BAECHI_PLACEMENT_MODEL_PLACEMENT_H
