//===- NodesText.cpp - Plans for machines of nodes in words ---------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Report/Nodes.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <iterator>
#include <map>

using namespace baechi::placement;
using namespace baechi::report;

std::string baechi::report::nodesText(const Problem &whole,
                                      const Alternatives &alternatives,
                                      const NodePlan &plan) {
  std::string text;
  auto out = std::back_inserter(text);
  size_t all = whole.machine.devices.size();
  fmt::format_to(
      out,
      "nodes         {} of {} devices: {} replica{} of {} stage{} of "
      "{}; {} plans looked at\n",
      int64_t(plan.shape.replicas) * plan.shape.devices, all,
      plan.shape.replicas, plan.shape.replicas == 1 ? "" : "s", plan.stages,
      plan.stages == 1 ? "" : "s", plan.lanes, plan.looked);
  std::map<std::string, size_t> counts;
  for (size_t op = 0; op < plan.ways.size(); ++op)
    if (plan.ways[op] >= 0)
      ++counts[alternatives.of[op][plan.ways[op]].name];
  for (const auto &[name, count] : counts)
    fmt::format_to(out, "              {}: {} operators of a replica\n", name,
                   count);
  int64_t ring = 0;
  for (const Transfer &t : plan.result.placement->transfers)
    if (t.to >= plan.shape.devices)
      ring += t.endNs - t.startNs;
  if (plan.shape.replicas > 1)
    fmt::format_to(out,
                   "              replicas exchange for {:.3f} ms, the devices "
                   "of one together\n",
                   static_cast<double>(ring) / 1e6);
  return text;
}

std::string baechi::report::nodesJson(const std::string &report,
                                      const NodePlan &plan) {
  nlohmann::ordered_json root = nlohmann::ordered_json::parse(report);
  root["nodes"] = {{"replicas", plan.shape.replicas},
                   {"devices_per_replica", plan.shape.devices},
                   {"stages", plan.stages},
                   {"devices_per_stage", plan.lanes},
                   {"looked_at", plan.looked},
                   {"skipped", plan.skipped}};
  return root.dump(1) + "\n";
}
