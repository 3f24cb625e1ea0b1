//===- Scotch.cpp - The Scotch back end -------------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Static mapping by Scotch (Pellegrini and Roman, "Scotch: a software package
/// for static mapping by dual recursive bipartitioning", HPCN 1996) onto a
/// complete graph of weighted processors.
///
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Placers/Scotch.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <numeric>

#include <scotch.h>

using namespace baechi::placement;

namespace {

/// Scotch counts with SCOTCH_Num, 32 bits in most builds: sums stay below this.
constexpr double largestSum = 1 << 29;

/// Weights scaled down so that they and their roundings sum to that at most.
std::vector<SCOTCH_Num> scaled(const std::vector<int64_t> &weights,
                               SCOTCH_Num least) {
  double total = 0;
  for (int64_t weight : weights)
    total += static_cast<double>(weight);
  double scale = std::min(1.0, largestSum / std::max(total, 1.0));
  std::vector<SCOTCH_Num> result;
  for (int64_t weight : weights)
    result.push_back(
        std::max(least, static_cast<SCOTCH_Num>(std::llround(
                            static_cast<double>(weight) * scale))));
  return result;
}

/// Small whole numbers in the proportions of \p shares, to 5 % where that is
/// possible: Scotch balances in steps of a processor's weight, so that large
/// numbers leave it no freedom.
std::vector<SCOTCH_Num> smallWeights(const std::vector<double> &shares) {
  double least = *std::min_element(shares.begin(), shares.end());
  constexpr int largestUnit = 4;
  constexpr double largest = 1000, tolerance = 0.05;
  std::vector<SCOTCH_Num> weights;
  for (int unit = 1; unit <= largestUnit; ++unit) {
    bool close = true;
    weights.clear();
    for (double share : shares) {
      double wanted = std::min(largest, unit * share / least);
      weights.push_back(std::max<SCOTCH_Num>(
          1, static_cast<SCOTCH_Num>(std::llround(wanted))));
      close &= std::abs(weights.back() - wanted) <= tolerance * wanted;
    }
    if (close)
      break;
  }
  return weights;
}

/// The graph as Scotch has it: both directions of every edge in rows.
struct Rows {
  std::vector<SCOTCH_Num> begin, target, edgeLoad, load;

  explicit Rows(const PartitionProblem &problem);
};

Rows::Rows(const PartitionProblem &problem)
    : begin(problem.weight.size() + 1, 0), load(scaled(problem.weight, 0)) {
  std::vector<int64_t> weights;
  for (const auto &edge : problem.edges) {
    ++begin[edge.a + 1];
    ++begin[edge.b + 1];
    weights.push_back(edge.weight);
  }
  std::partial_sum(begin.begin(), begin.end(), begin.begin());
  std::vector<SCOTCH_Num> next(begin.begin(), begin.end() - 1);
  std::vector<SCOTCH_Num> loads = scaled(weights, 1);
  target.resize(2 * problem.edges.size());
  edgeLoad.resize(target.size());
  for (size_t e = 0; e < problem.edges.size(); ++e) {
    const auto &edge = problem.edges[e];
    for (auto [from, to] : {std::pair(edge.a, edge.b), {edge.b, edge.a}}) {
      edgeLoad[next[from]] = loads[e];
      target[next[from]++] = to;
    }
  }
}

/// Scotch's objects, and their end.
class Mapper {
public:
  explicit Mapper(const PartitionProblem &problem);
  ~Mapper();
  Mapper(const Mapper &) = delete;
  Mapper &operator=(const Mapper &) = delete;

  bool prepare();
  /// After `prepare`. Several runs give several partitions.
  bool run(std::vector<int32_t> &part);

private:
  const PartitionProblem &problem;
  Rows rows;
  SCOTCH_Context context;
  SCOTCH_Graph graph, bound; ///< the latter is in the context
  SCOTCH_Arch machine;
  SCOTCH_Strat strategy;
};

Mapper::Mapper(const PartitionProblem &problem)
    : problem(problem), rows(problem) {
  SCOTCH_contextInit(&context);
  SCOTCH_graphInit(&graph);
  SCOTCH_graphInit(&bound);
  SCOTCH_archInit(&machine);
  SCOTCH_stratInit(&strategy);
}

Mapper::~Mapper() {
  SCOTCH_stratExit(&strategy);
  SCOTCH_archExit(&machine);
  SCOTCH_graphExit(&bound);
  SCOTCH_graphExit(&graph);
  SCOTCH_contextExit(&context);
}

/// One thread and a generator of its own, with a fixed seed: the same input
/// gives the same output, whatever else the program does with Scotch.
bool Mapper::prepare() {
  SCOTCH_contextRandomClone(&context);
  SCOTCH_contextRandomSeed(&context, 1);
  SCOTCH_contextRandomReset(&context);
  if (SCOTCH_contextOptionSetNum(&context, SCOTCH_OPTIONNUMDETERMINISTIC, 1) ||
      SCOTCH_contextThreadSpawn(&context, 1, nullptr))
    return false;
  auto vertices = static_cast<SCOTCH_Num>(problem.weight.size());
  auto arcs = static_cast<SCOTCH_Num>(rows.target.size());
  if (SCOTCH_graphBuild(&graph, /*baseval=*/0, vertices, rows.begin.data(),
                        rows.begin.data() + 1, rows.load.data(),
                        /*labels=*/nullptr, arcs, rows.target.data(),
                        rows.edgeLoad.data()) ||
      SCOTCH_contextBindGraph(&context, &graph, &bound))
    return false;
  std::vector<SCOTCH_Num> weights = smallWeights(problem.share);
  auto parts = static_cast<SCOTCH_Num>(weights.size());
  return !SCOTCH_archCmpltw(&machine, parts, weights.data()) &&
         !SCOTCH_stratGraphMapBuild(&strategy, SCOTCH_STRATQUALITY, parts,
                                    problem.imbalance);
}

bool Mapper::run(std::vector<int32_t> &part) {
  std::vector<SCOTCH_Num> found(problem.fixed.begin(), problem.fixed.end());
  bool anyFixed = std::any_of(found.begin(), found.end(),
                              [](SCOTCH_Num p) { return p >= 0; });
  int failed =
      anyFixed ? SCOTCH_graphMapFixed(&bound, &machine, &strategy, found.data())
               : SCOTCH_graphMap(&bound, &machine, &strategy, found.data());
  part.assign(found.begin(), found.end());
  return failed == 0;
}

double cutOf(const PartitionProblem &problem,
             const std::vector<int32_t> &part) {
  double cut = 0;
  for (const auto &edge : problem.edges)
    if (part[edge.a] != part[edge.b])
      cut += static_cast<double>(edge.weight);
  return cut;
}

/// What a run finds hangs on its random choices, by a factor of five at times:
/// the best of several counts.
constexpr int attempts = 4;

class ScotchPartitioner : public Partitioner {
public:
  std::string name() const override { return "Scotch"; }
  std::string partition(const PartitionProblem &problem,
                        std::vector<int32_t> &part) const override {
    if (problem.share.size() == 1 || problem.weight.empty()) {
      part.assign(problem.weight.size(), 0);
      return "";
    }
    Mapper mapper(problem);
    if (!mapper.prepare())
      return "Scotch does not take the graph";
    double least = std::numeric_limits<double>::infinity();
    for (int k = 0; k < attempts; ++k) {
      std::vector<int32_t> found;
      if (!mapper.run(found))
        return "Scotch found no mapping";
      if (double cut = cutOf(problem, found); cut < least) {
        least = cut;
        part = std::move(found);
      }
    }
    return "";
  }
};

} // namespace

std::unique_ptr<Partitioner> baechi::placement::createScotchPartitioner() {
  return std::make_unique<ScotchPartitioner>();
}
