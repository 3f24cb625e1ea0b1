//===- Draw.h - Pictures of a placement -------------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A placement for the eye: over time (trace viewers) and over the graph
/// (Graphviz). Both expect a placement of the problem's shape, valid or not.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_REPORT_DRAW_H
#define BAECHI_REPORT_DRAW_H

#include "Baechi/Placement/Model/Placement.h"

namespace baechi::report {

/// The step in Chrome's trace-event form (chrome://tracing, Perfetto): a
/// process a device with a row of operators, rows of outgoing and incoming
/// transfers, an arrow from the one to the other, and a counter of the bytes
/// held. Operators and transfers that the makespan hangs on are of the category
/// "critical".
std::string formatTimeline(const placement::Problem &problem,
                           const placement::Placement &placement);

struct DotOptions {
  /// A graph of more operators is drawn by groups.
  int32_t maxNodes = 2000;
};

/// The graph for Graphviz: a cluster and a colour a device, the critical path
/// in red, transfers labelled with their bytes and time. When the graph is
/// large, a box stands for those operators of a co-placed group that are on one
/// device; \p note, unless null, then says so, and is empty otherwise.
std::string formatDot(const placement::Problem &problem,
                      const placement::Placement &placement,
                      const DotOptions &options = {},
                      std::string *note = nullptr);

} // namespace baechi::report

#endif // BAECHI_REPORT_DRAW_H
