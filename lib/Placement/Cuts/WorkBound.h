//===- WorkBound.h - What no placement of ways can better -------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_CUTS_WORKBOUND_H
#define BAECHI_LIB_PLACEMENT_CUTS_WORKBOUND_H

#include "Baechi/Placement/Model/Alternatives.h"

namespace baechi::placement::cuts {

/// All that operators take in their ways, each piece on the kind that is the
/// fastest for it, in equal shares on all devices: no step is shorter and no
/// pipeline's load less. It needs no expansion.
class WorkBound {
public:
  WorkBound(const Problem &problem, const Alternatives &alternatives);

  int64_t of(const Ways &ways) const;
  /// Whatever the ways.
  int64_t ofAll() const;
  /// How many operators the graph has then, without sums and exchanges.
  int64_t pieces(const Ways &ways) const;

private:
  int64_t shared(__int128 work) const;

  /// By operator; first as it is, then by alternative.
  std::vector<std::vector<__int128>> work;
  const Alternatives &alternatives;
  int64_t numDevices;
};

} // namespace baechi::placement::cuts

#endif // BAECHI_LIB_PLACEMENT_CUTS_WORKBOUND_H
