//===- Nodes.h - Plans for machines of nodes in words -----------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_REPORT_NODES_H
#define BAECHI_REPORT_NODES_H

#include "Baechi/Placement/Nodes/PlanNodes.h"

#include <string>

namespace baechi::report {

/// Stages, replicas and ways in a few lines, however many devices there are.
std::string nodesText(const placement::Problem &whole,
                      const placement::Alternatives &alternatives,
                      const placement::NodePlan &plan);

/// The report of `reportJson` with what was decided below "nodes".
std::string nodesJson(const std::string &report,
                      const placement::NodePlan &plan);

} // namespace baechi::report

#endif // BAECHI_REPORT_NODES_H
