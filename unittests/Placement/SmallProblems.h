//===- SmallProblems.h - Random problems for the exact search ---*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Random problems of up to 16 operators on 2 or 3 devices with everything that
/// docs/formats.md knows, and memories that are a multiple of the least at
/// which anything is valid. For tests and for the experiment that compares
/// `place` with the proven optimum.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_UNITTESTS_PLACEMENT_SMALLPROBLEMS_H
#define BAECHI_UNITTESTS_PLACEMENT_SMALLPROBLEMS_H

#include "Baechi/Placement/Session/ExactPlacement.h"

#include <random>
#include <string>

namespace baechi::placement::test {

class SmallProblems {
public:
  explicit SmallProblems(uint32_t seed) : random(seed) {}

  /// Memories without limit. Groups, pins and links may contradict each other:
  /// `check` tells.
  Problem draw(int32_t fewest = 4, int32_t most = 16) {
    Problem problem;
    drawMachine(problem.machine);
    auto n = static_cast<int32_t>(fewest + below(most - fewest + 1));
    // Chains, layers, or anything goes.
    int64_t window = 1 + below(below(2) ? n : 4);
    for (int32_t i = 0; i < n; ++i)
      problem.graph.ops.push_back(drawOperator(i));
    for (int32_t i = 1; i < n; ++i)
      for (int64_t k = below(10) ? 1 + below(3) : 0; k > 0; --k) {
        auto from =
            static_cast<int32_t>(std::max<int64_t>(0, i - 1 - below(window)));
        auto outputs =
            static_cast<int64_t>(problem.graph.ops[from].outputs.size());
        problem.graph.edges.push_back(
            {from,
             static_cast<int32_t>(outputs && below(7) ? below(outputs) : -1),
             i});
      }
    return problem;
  }

  /// Scales the memories to `percent` of the least that is enough, as far as
  /// the exact search can tell with \p nodeLimit; false when it cannot.
  static bool tighten(Problem &problem, int64_t percent,
                      int64_t nodeLimit = 2'000'000) {
    const std::vector<Device> shares = problem.machine.devices;
    auto scale = [&](int64_t unit, int64_t of) {
      for (size_t d = 0; d < shares.size(); ++d)
        problem.machine.devices[d].memory =
            unit * (shares[d].memory / ample) / share * of / 100;
    };
    int64_t low = -1, high = 1;
    for (;; high *= 2) {
      scale(high, 100);
      auto fits = fitsSomehow(problem, nodeLimit);
      if (!fits || high > int64_t(1) << 40)
        return false;
      if (*fits)
        break;
      low = high;
    }
    while (high - low > 1) {
      int64_t middle = low + (high - low) / 2;
      scale(middle, 100);
      auto fits = fitsSomehow(problem, nodeLimit);
      if (!fits)
        return false;
      (*fits ? high : low) = middle;
    }
    scale(high, percent);
    return true;
  }

  int64_t below(int64_t n) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(n));
  }

private:
  /// A memory without limit is some of so many shares of this.
  static constexpr int64_t ample = int64_t(1) << 40;
  static constexpr int64_t share = 8;

  void drawMachine(Machine &machine) {
    auto devices = static_cast<int32_t>(2 + below(2));
    machine.linkModel = static_cast<LinkModel>(below(4));
    mixed = below(3) == 0;
    bool unequal = below(4) == 0, ownLinks = below(3) == 0,
         gaps = below(6) == 0;
    for (int32_t d = 0; d < devices; ++d)
      machine.devices.push_back({"d" + std::to_string(d), "gpu",
                                 ample * (unequal ? 4 + below(5) : share)});
    if (mixed)
      machine.devices.back().kind = "cpu";
    Link common = drawLink();
    for (int32_t a = 0; a < devices; ++a)
      for (int32_t b = 0; b < devices; ++b) {
        Link link = ownLinks ? drawLink() : common;
        bool none = a == b || (gaps && below(4) == 0);
        machine.links.push_back(none ? std::nullopt : std::optional(link));
      }
    numDevices = devices;
  }

  Link drawLink() { return {below(150), 500 << below(5)}; }

  Operator drawOperator(int32_t i) {
    Operator op;
    op.name = "op" + std::to_string(i);
    int64_t time = below(10) ? 1 + below(1000) : 0;
    op.timeNs = {{"gpu", time}};
    if (mixed && below(10)) {
      op.timeNs.emplace_back("cpu", time * (1 + below(4)));
      if (below(10) == 0)
        op.timeNs.erase(op.timeNs.begin());
    }
    for (int64_t k = below(4) ? 1 : below(3); k > 0; --k) {
      Output output(below(2000));
      if (below(6) == 0)
        output.memory = 0;
      if (below(10) == 0)
        output.copy = below(2000);
      op.outputs.push_back(output);
    }
    op.scratch = below(3) ? 0 : below(1000);
    op.resident = below(2) ? 0 : below(2000);
    op.result = below(8) == 0;
    if (below(6) == 0)
      op.group = "g" + std::to_string(below(4));
    else if (below(16) == 0)
      op.pin = "d" + std::to_string(below(numDevices));
    return op;
  }

  std::mt19937 random;
  bool mixed = false;
  int32_t numDevices = 0;
};

/// The problem of a seed, its memories between 95 % and 150 % of the least that
/// is enough; false when the exact search cannot tell what that is.
inline bool drawTight(uint32_t seed, Problem &problem,
                      int64_t nodeLimit = 2'000'000) {
  constexpr int64_t percents[] = {100, 100, 105, 110, 120, 130, 150, 95};
  SmallProblems draws(seed);
  constexpr int attempts = 50;
  for (int k = 0; k < attempts; ++k) {
    problem = draws.draw();
    int64_t percent = percents[draws.below(std::size(percents))];
    if (check(problem).empty() &&
        SmallProblems::tighten(problem, percent, nodeLimit))
      return true;
  }
  return false;
}

} // namespace baechi::placement::test

#endif // BAECHI_UNITTESTS_PLACEMENT_SMALLPROBLEMS_H
