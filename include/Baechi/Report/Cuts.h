//===- Cuts.h - What was done in pieces -------------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_REPORT_CUTS_H
#define BAECHI_REPORT_CUTS_H

#include "Baechi/Placement/Cuts/PlanCuts.h"

#include <string>

namespace baechi::report {

/// Lines for people: what of \p graph is done in which ways, and what that is
/// predicted to save.
std::string cutsText(const placement::Graph &graph,
                     const placement::Alternatives &alternatives,
                     const placement::CutPlan &plan,
                     placement::Objective objective);

/// \p report, the text of `reportJson`, with a member "pieces" beside its own.
std::string cutsJson(const std::string &report, const placement::Graph &graph,
                     const placement::Alternatives &alternatives,
                     const placement::CutPlan &plan);

} // namespace baechi::report

#endif // BAECHI_REPORT_CUTS_H
