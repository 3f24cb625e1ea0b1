//===- MachineIdentity.h - Whether two processes share a machine -*- C++
//-*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_RANKS_MACHINEIDENTITY_H
#define BAECHI_RUNTIME_RANKS_MACHINEIDENTITY_H

#include <cstdio>
#include <string>
#include <unistd.h>

namespace baechi::runtime {

/// The boot's and the process namespace's: equal on one machine, and where
/// process numbers mean the same. At most 120 characters.
inline std::string machineIdentity() {
  char boot[64] = {}, space[64] = {};
  if (FILE *file = std::fopen("/proc/sys/kernel/random/boot_id", "r")) {
    if (!std::fgets(boot, 60, file))
      boot[0] = 0;
    std::fclose(file);
  }
  if (readlink("/proc/self/ns/pid", space, 60) < 0)
    space[0] = 0;
  return std::string(boot) + space;
}

} // namespace baechi::runtime

#endif // BAECHI_RUNTIME_RANKS_MACHINEIDENTITY_H
