//===- HostCalls.h - Functions of the host program --------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_HOSTCALLS_H
#define BAECHI_RUNTIME_HOSTCALLS_H

#include <cstddef>
#include <cstdint>

namespace baechi::runtime {

/// Who computes the host calls of a program (docs/host-calls.md).
struct HostCalls {
  /// Computes the function `name`: `places` are those of its operands and then
  /// of its results, which it writes. Called on the threads of host devices,
  /// of several at the same time. 0, or another number after an error, whose
  /// text it writes to `error`, with its terminator in `size` bytes. Throws
  /// nothing.
  using Function = int (*)(void *user, const char *name, void *const *places,
                           char *error, size_t size);

  Function function = nullptr;
  void *user = nullptr;
};

} // namespace baechi::runtime

#endif // BAECHI_RUNTIME_HOSTCALLS_H
