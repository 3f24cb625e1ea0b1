//===- TestProblems.h - Small problems for tests ----------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_UNITTESTS_PLACEMENT_TESTPROBLEMS_H
#define BAECHI_UNITTESTS_PLACEMENT_TESTPROBLEMS_H

#include "Baechi/Placement/Session/Place.h"

#include <random>
#include <string>

namespace baechi::placement::test {

inline Operator makeOp(const std::string &name, int64_t time,
                       std::vector<int64_t> outputs = {8}) {
  Operator op;
  op.name = name;
  op.timeNs = {{"", time}};
  for (int64_t bytes : outputs)
    op.outputs.emplace_back(bytes);
  return op;
}

/// \p n equal devices of kind "gpu" that are called d0, d1, ...
inline Machine makeMachine(int32_t n, int64_t memory = int64_t(1) << 40,
                           Link link = {10, 1000},
                           LinkModel model = LinkModel::Sequential) {
  Machine machine;
  machine.linkModel = model;
  for (int32_t d = 0; d < n; ++d)
    machine.devices.push_back({"d" + std::to_string(d), "gpu", memory});
  machine.links.assign(static_cast<size_t>(n) * n, link);
  for (int32_t d = 0; d < n; ++d)
    machine.links[static_cast<size_t>(d) * n + d].reset();
  return machine;
}

/// a -> b, a -> c, b -> d, c -> d; b and c are the work.
inline Problem diamond(int64_t work = 1000, int64_t bytes = 10) {
  Problem problem;
  problem.machine = makeMachine(2);
  problem.graph.ops = {makeOp("a", 10, {bytes}), makeOp("b", work, {bytes}),
                       makeOp("c", work, {bytes}), makeOp("d", 10, {bytes})};
  problem.graph.edges = {{0, 0, 1}, {0, 0, 2}, {1, 0, 3}, {2, 0, 3}};
  return problem;
}

/// A random problem: layered graph with groups, pins, control edges, aliases
/// and results; every link model and one or two kinds of devices.
inline Problem randomProblem(uint32_t seed) {
  std::mt19937 random(seed);
  // Not std::uniform_int_distribution: its numbers differ between libraries.
  auto below = [&](int64_t n) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(n));
  };
  Problem problem;
  auto devices = static_cast<int32_t>(1 + below(4));
  problem.machine =
      makeMachine(devices, int64_t(1) << 40, {below(200), 1 + below(2000)},
                  static_cast<LinkModel>(below(4)));
  bool mixed = below(3) == 0;
  if (mixed)
    problem.machine.devices.back().kind = "cpu";
  auto n = static_cast<int32_t>(1 + below(60));
  for (int32_t i = 0; i < n; ++i) {
    Operator op =
        makeOp("op" + std::to_string(i), below(5) ? below(1000) : 0, {});
    for (int64_t k = below(3); k >= 0; --k) {
      Output output(below(3000));
      if (below(4) == 0)
        output.memory = 0;
      op.outputs.push_back(output);
    }
    if (mixed)
      op.timeNs.emplace_back("cpu", below(3000));
    op.scratch = below(3) ? 0 : below(1000);
    op.resident = below(3) ? 0 : below(2000);
    op.result = below(8) == 0;
    if (below(4) == 0)
      op.group = "g" + std::to_string(below(8));
    else if (below(20) == 0)
      op.pin = "d" + std::to_string(below(devices));
    problem.graph.ops.push_back(std::move(op));
  }
  for (int32_t i = 1; i < n; ++i)
    for (int64_t k = below(4); k > 0; --k) {
      auto from = static_cast<int32_t>(std::max<int64_t>(0, i - 1 - below(12)));
      auto outputs =
          static_cast<int64_t>(problem.graph.ops[from].outputs.size());
      problem.graph.edges.push_back(
          {from, static_cast<int32_t>(below(5) ? below(outputs) : -1), i});
    }
  return problem;
}

/// Vertices to the parts in turn.
class InTurn : public Partitioner {
public:
  std::string name() const override { return "in turn"; }
  std::string partition(const PartitionProblem &problem,
                        std::vector<int32_t> &part) const override {
    part = problem.fixed;
    for (size_t v = 0; v < part.size(); ++v)
      if (part[v] < 0)
        part[v] = static_cast<int32_t>(v % problem.share.size());
    return "";
  }
};

/// What \p placer alone makes of a problem, with what it needs beside the
/// problem itself.
inline PlaceOptions onlyPlacer(const std::string &placer,
                               const Problem &problem) {
  PlaceOptions options;
  options.placer = placer;
  options.budget = Budget::none();
  static const InTurn inTurn;
  options.partitioner = &inTurn;
  const auto &devices = problem.machine.devices;
  options.expert = {{"[02468]$", devices.front().name},
                    {".", devices.back().name}};
  return options;
}

} // namespace baechi::placement::test

#endif // BAECHI_UNITTESTS_PLACEMENT_TESTPROBLEMS_H
