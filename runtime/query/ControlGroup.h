//===- ControlGroup.h - Limits of control groups ----------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_QUERY_CONTROLGROUP_H
#define BAECHI_RUNTIME_QUERY_CONTROLGROUP_H

#include <cstdint>
#include <filesystem>
#include <optional>

namespace baechi::runtime {

/// What the control groups leave to this process; nothing where they set no
/// limit.
struct ControlGroupLimits {
  std::optional<int64_t> memoryBytes;
  std::optional<double> cores;
};

/// Reads versions 1 and 2. A limit holds for a group and all below it, so the
/// tightest from the process's group up to the root counts. `root` is "/"
/// except in tests: it holds proc/self/cgroup and sys/fs/cgroup.
ControlGroupLimits queryControlGroups(const std::filesystem::path &root = "/");

} // namespace baechi::runtime

#endif // BAECHI_RUNTIME_QUERY_CONTROLGROUP_H
