//===- Numbers.h - Bytes and times for people -------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_SUPPORT_NUMBERS_H
#define BAECHI_SUPPORT_NUMBERS_H

#include <cstdint>
#include <string>

namespace baechi::support {

/// "512 B", "4.2 MiB": so many digits after the point from KiB on.
std::string bytesText(double bytes, int digits = 1);
/// The same, not rounded down: of what is needed.
std::string bytesTextUp(double bytes, int digits = 1);

/// "41.203 ms", below a microsecond "313 ns".
std::string millisecondsText(int64_t ns);

} // namespace baechi::support

#endif // BAECHI_SUPPORT_NUMBERS_H
