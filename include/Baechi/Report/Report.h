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
#ifndef BAECHI_REPORT_REPORT_H
#define BAECHI_REPORT_REPORT_H

#include "Baechi/Placement/Session/Place.h"
#include "Baechi/Placement/Study/Compare.h"
#include "Baechi/Placement/Study/FitPlacement.h"
#include "Baechi/Placement/Study/Sweep.h"

#include <string>
#include <vector>

namespace baechi::report {

/// Of a result with a placement.
std::string reportText(const placement::Problem &problem,
                       const placement::PlaceOptions &options,
                       const placement::PlaceResult &result);
/// \p explanations, unless empty, is what `explainAll` gave as JSON.
std::string reportJson(const placement::Problem &problem,
                       const placement::PlaceOptions &options,
                       const placement::PlaceResult &result,
                       const std::string &explanations = "");

/// Why operators are where they are: for a person, and as a JSON array with an
/// entry a pattern.
struct Explanations {
  std::string text;
  std::string json;
};

/// Explains the operators that each of \p patterns names; all patterns have
/// been found by `findOperators` (Explain.h).
Explanations explainAll(const placement::Problem &problem,
                        const placement::Placement &placement,
                        placement::Objective objective,
                        const std::vector<std::string> &patterns);

std::string comparisonText(const placement::Problem &problem,
                           const placement::Comparison &comparison);
std::string comparisonJson(const placement::Problem &problem,
                           const placement::Comparison &comparison);

std::string sweepText(const placement::Sweep &sweep);
std::string sweepJson(const placement::Sweep &sweep);

std::string fitSweepText(const placement::FitSweep &sweep);
std::string fitSweepJson(const placement::FitSweep &sweep);
/// What was done so that a graph fits; as JSON, \p report, the text of
/// `reportJson`, with a member "memory_fit" beside its own.
std::string fitText(const placement::FitPlan &plan);
std::string fitJson(const std::string &report, const placement::FitPlan &plan);

} // namespace baechi::report

#endif // BAECHI_REPORT_REPORT_H
