//===- Text.h - Numbers for people ------------------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_TEXT_H
#define BAECHI_LIB_PLACEMENT_TEXT_H

#include <cstdint>
#include <string>

namespace baechi::placement {

/// "4.2 MiB", "17 B".
std::string bytesText(int64_t bytes);

/// "41.203 ms", below a microsecond "313 ns".
std::string millisecondsText(int64_t ns);

} // namespace baechi::placement

#endif // BAECHI_LIB_PLACEMENT_TEXT_H
