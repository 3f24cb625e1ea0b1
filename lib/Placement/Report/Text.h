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

/// True for two times of one sentence that nanoseconds tell apart: one is below
/// a microsecond and none reaches a millisecond.
bool inNanoseconds(int64_t ns, int64_t beside);

/// \p ns in the unit that suits it and \p beside together.
std::string millisecondsText(int64_t ns, int64_t beside);

} // namespace baechi::placement

#endif // BAECHI_LIB_PLACEMENT_TEXT_H
