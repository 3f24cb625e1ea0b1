//===- MachineVariant.h - Machines made from one ----------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_MACHINEVARIANT_H
#define BAECHI_LIB_PLACEMENT_MACHINEVARIANT_H

#include "Baechi/Placement/Model/Problem.h"

namespace baechi::placement::study {

/// Makes machines after the first device of one (Sweep.h has the rules).
class MachineVariants {
public:
  /// \p problem must pass `check` and must outlive this.
  explicit MachineVariants(const Problem &problem);

  /// The pattern's copies come first, then the other devices that are kept.
  Machine make(int32_t devices, int64_t memory, double linkSpeed) const;
  /// True when some operator needs a device of another kind.
  bool keepsOthers() const { return !others.empty(); }
  /// True when there is no link that one between copies could be like.
  bool lacksLink() const { return !between; }
  const Device &pattern() const { return base.devices.front(); }
  /// What a user should know of the machines.
  const std::vector<std::string> &notes() const { return remarks; }

private:
  void findLink();

  const Machine &base;
  std::vector<int32_t> alike;  ///< devices of the pattern's kind
  std::vector<int32_t> others; ///< devices that are kept as they are
  std::optional<Link> between; ///< two of the pattern's kind
  std::vector<std::string> remarks;
};

} // namespace baechi::placement::study

#endif // BAECHI_LIB_PLACEMENT_MACHINEVARIANT_H
