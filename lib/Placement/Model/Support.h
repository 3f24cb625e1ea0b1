//===- Support.h - Which device can run what --------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_SUPPORT_H
#define BAECHI_LIB_PLACEMENT_SUPPORT_H

#include "Baechi/Placement/Problem.h"

namespace baechi::placement {

/// Time of \p op on a device of \p kind; nullopt: it cannot run there. A kind
/// that is listed by name goes before the kind "" that stands for all.
inline std::optional<int64_t> timeOn(const Operator &op,
                                     const std::string &kind) {
  std::optional<int64_t> any;
  for (const auto &[name, time] : op.timeNs) {
    if (name == kind)
      return time;
    if (name.empty())
      any = time;
  }
  return any;
}

} // namespace baechi::placement

#endif // BAECHI_LIB_PLACEMENT_SUPPORT_H
