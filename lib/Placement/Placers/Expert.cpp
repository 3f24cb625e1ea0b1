//===- Expert.cpp - Placement by an expert's rules --------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The "expert" of Mirhoseini et al., "Device Placement Optimization with
/// Reinforcement Learning" (ICML 2017), and of Tarnawski et al. (NeurIPS 2020):
/// a model's layers on devices, by their names.
///
//===----------------------------------------------------------------------===//

#include "Io/Pattern.h"
#include "Placers/Baselines.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

using namespace baechi::placement;
using namespace baechi::placement::placers;

namespace {

/// The rules with their devices' ids.
struct Rules {
  std::vector<std::unique_ptr<io::Pattern>> patterns;
  std::vector<int32_t> devices;
  std::string error;

  explicit Rules(const PlacerContext &context);
  /// The device of the first rule that matches; -1: none does.
  int32_t deviceOf(const std::string &name) const {
    for (size_t k = 0; k < patterns.size(); ++k)
      if (patterns[k]->occursIn(name))
        return devices[k];
    return -1;
  }
};

Rules::Rules(const PlacerContext &context) {
  if (context.options.expert.empty())
    error = "there are no rules: give an expert file, expert=FILE "
            "(docs/formats.md)";
  const auto &machine = context.problem.machine.devices;
  for (const ExpertRule &rule : context.options.expert) {
    patterns.push_back(std::make_unique<io::Pattern>(rule.pattern));
    auto device =
        std::find_if(machine.begin(), machine.end(),
                     [&](const Device &d) { return d.name == rule.device; });
    devices.push_back(static_cast<int32_t>(device - machine.begin()));
    if (!patterns.back()->error().empty())
      error = patterns.back()->error();
    else if (device == machine.end())
      error = fmt::format("a rule names the unknown device '{}'", rule.device);
  }
}

} // namespace

Proposals
baechi::placement::placers::proposeExpert(const PlacerContext &context) {
  // As one of the candidates it is left out.
  if (context.options.expert.empty() && context.options.placer != "expert")
    return {};
  Rules rules(context);
  if (!rules.error.empty())
    return {{}, rules.error};
  const Model &model = context.model;
  const auto &ops = context.problem.graph.ops;
  std::vector<int32_t> home(model.numUnits, -1);
  for (int32_t i = 0; i < model.numNodes; ++i)
    if (int32_t &d = home[model.unit[i]]; d < 0)
      d = rules.deviceOf(ops[i].name);
  int64_t unmatched = std::count_if(model.unit.begin(), model.unit.end(),
                                    [&](Unit u) { return home[u] < 0; });
  // Pins and kinds hold whatever the rules say.
  int64_t moved = followOperands(context.problem.graph, model, home);
  if (unmatched > 0)
    context.notes.push_back(
        fmt::format("expert: no rule matches {} of {} operators: they follow "
                    "their first operands",
                    unmatched, model.numNodes));
  if (moved > 0)
    context.notes.push_back(
        fmt::format("expert: {} operators cannot run on the device that their "
                    "rule names: pins and kinds decide",
                    moved));
  return {{{"", perNode(model, home)}}, ""};
}
