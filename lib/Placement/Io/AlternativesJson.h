//===- AlternativesJson.h - Alternatives in graph files ---------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_IO_ALTERNATIVESJSON_H
#define BAECHI_LIB_PLACEMENT_IO_ALTERNATIVESJSON_H

#include "Baechi/Placement/Model/Alternatives.h"
#include "Baechi/Support/Json.h"

namespace baechi::placement::io {

using Times = std::vector<std::pair<std::string, int64_t>>;

/// A number, or one for each kind of device. Throws FormatError, as the
/// functions below.
Times readTimes(const support::json::Cursor &at);
/// "time_ns" and what is read back as \p times.
void appendTimes(std::string &text, const Times &times);

/// The member "alternatives" of an operator; none: empty.
std::vector<Alternative> readAlternatives(const support::json::Cursor &op);
/// The same as a member, with a comma before it; nothing where there are none.
void appendAlternatives(std::string &text,
                        const std::vector<Alternative> &alternatives);

} // namespace baechi::placement::io

#endif // BAECHI_LIB_PLACEMENT_IO_ALTERNATIVESJSON_H
