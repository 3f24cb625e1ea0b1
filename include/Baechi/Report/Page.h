//===- Page.h - A placement as a web page -----------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// One HTML file for a person: timeline, memory, graph, tables and reasons, as
/// planned and, where it ran, as measured. docs/report-page.md.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_REPORT_PAGE_H
#define BAECHI_REPORT_PAGE_H

#include "Baechi/Placement/Session/Place.h"

namespace baechi::report {

/// What the page says beside the placement itself.
struct PageSummary {
  std::string model, machine; ///< for a person
  std::string placer, winner;
  placement::Objective objective = placement::Objective::Makespan;
  int64_t lowerBoundNs = 0; ///< of the objective
  std::string lowerBoundName;
  int64_t maxLoadNs = 0; ///< for Objective::MaxLoad alone
  int64_t periodNs = 0;  ///< for Objective::Period alone
  /// The placers' makespan, which the bound is of, where the placement is the
  /// step as it runs.
  std::optional<int64_t> plannedNs;
  /// As predicted.
  std::optional<int64_t> singleDeviceNs;
  std::vector<std::string> notes;
};

/// A time in a step that ran; what did not happen starts at -1.
struct PageSpan {
  int64_t startNs = -1;
  int64_t endNs = -1;
};

/// What a run measured.
struct PageMeasurement {
  int64_t steps = 0;
  double stepNs = 0; ///< median
  std::optional<double> singleDeviceNs;
  /// Of the step whose spans follow.
  int64_t shownStepNs = 0;
  std::vector<PageSpan> operators; ///< one an operator of the graph
  std::vector<PageSpan> transfers; ///< one a transfer of the placement
  std::vector<int64_t> busyNs;     ///< a device each
  std::vector<int64_t> arenaBytes; ///< a device each
  /// What the arenas hold as predicted and as measured, a device each; empty:
  /// shown is the placement's replay.
  std::vector<std::vector<placement::MemoryLevel>> planned, happened;
};

/// The page, with all that it needs within it. \p placement must have the shape
/// of \p problem. Reasons are given where it is valid.
std::string formatPage(const placement::Problem &problem,
                       const placement::Placement &placement,
                       const PageSummary &summary,
                       const PageMeasurement *measured = nullptr);

} // namespace baechi::report

#endif // BAECHI_REPORT_PAGE_H
