//===- Text.h - Numbers for people ------------------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_PLACEMENT_MODEL_TEXT_H
#define BAECHI_PLACEMENT_MODEL_TEXT_H

#include "Baechi/Support/Numbers.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace baechi::placement {

/// A number of bytes with an optional unit, binary or decimal: "4096",
/// "512MiB", "1.5GiB", "2GB".
std::optional<int64_t> parseBytes(std::string_view text);

using support::bytesText;
using support::bytesTextUp;
using support::millisecondsText;

/// True for two times of one sentence that nanoseconds tell apart: one is below
/// a microsecond and none reaches a millisecond.
bool inNanoseconds(int64_t ns, int64_t beside);

/// \p ns in the unit that suits it and \p beside together.
std::string millisecondsText(int64_t ns, int64_t beside);

/// Insertions, deletions, replacements and exchanges of neighbours from \p a to
/// \p b (Damerau, "A technique for computer detection and correction of
/// spelling errors", 1964); \p limit when there are as many or more.
size_t editDistance(std::string_view a, std::string_view b, size_t limit);

/// " (did you mean 'msct'?)": the word that a wrong one stands for; empty when
/// none is near.
std::string suggestion(std::string_view wrong,
                       const std::vector<std::string> &known);

} // namespace baechi::placement

#endif // BAECHI_PLACEMENT_MODEL_TEXT_H
