//===- ProcessNumber.h - Whether a process was forked -----------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_CORE_PROCESSNUMBER_H
#define BAECHI_RUNTIME_CORE_PROCESSNUMBER_H

#include <cstdint>

namespace baechi::runtime {

/// A number of the process that calls, which none has that it was forked from:
/// who kept it knows in a forked process that this is another one. As getpid(),
/// without a call of the system.
uint64_t processNumber();

} // namespace baechi::runtime

#endif // BAECHI_RUNTIME_CORE_PROCESSNUMBER_H
