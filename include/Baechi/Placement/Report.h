//===- Report.h - Answers in words and as data ------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What `baechi-place` prints and writes, and the Python package returns: for a
/// person (...Text), and the same as JSON (...Json).
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_PLACEMENT_REPORT_H
#define BAECHI_PLACEMENT_REPORT_H

#include "Baechi/Placement/Compare.h"
#include "Baechi/Placement/Place.h"
#include "Baechi/Placement/Sweep.h"

#include <string>
#include <vector>

namespace baechi::placement {

/// Of a result with a placement.
std::string reportText(const Problem &problem, const PlaceOptions &options,
                       const PlaceResult &result);
/// \p explanations, unless empty, is what `explainAll` gave as JSON.
std::string reportJson(const Problem &problem, const PlaceOptions &options,
                       const PlaceResult &result,
                       const std::string &explanations = "");

/// Why operators are where they are: for a person, and as a JSON array with an
/// entry a pattern.
struct Explanations {
  std::string text;
  std::string json;
};

/// Explains the operators that each of \p patterns names; all patterns have
/// been found by `findOperators` (Explain.h).
Explanations explainAll(const Problem &problem, const Placement &placement,
                        Objective objective,
                        const std::vector<std::string> &patterns);

std::string comparisonText(const Problem &problem,
                           const Comparison &comparison);
std::string comparisonJson(const Problem &problem,
                           const Comparison &comparison);

std::string sweepText(const Sweep &sweep);
std::string sweepJson(const Sweep &sweep);

} // namespace baechi::placement

#endif // BAECHI_PLACEMENT_REPORT_H
