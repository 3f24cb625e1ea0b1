//===- DualBound.cpp - A proof of how short the longest path can be -------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lp/PathSolution.h"

#include <algorithm>

using namespace baechi::placement::lp;

/// For any unit of flow f from the first node to the last and any prices >= 0
/// with price(out-budget) + price(head) >= saving f_e on every edge,
///   sum of length f - sum of prices
/// is at most the longest path under any y: weigh every path by its flow, and
/// every y by its prices.
double baechi::placement::lp::dualBound(const PathProgram &program,
                                        std::span<const double> flow,
                                        std::vector<double> outPrice) {
  int32_t n = program.numNodes;
  std::vector<double> arrived(n, 0), whole(program.edges.size(), 0);
  arrived[0] = 1;
  double value = 0;
  for (int32_t v = 0; v < n - 1; ++v) {
    int32_t begin = program.firstOut[v], end = program.firstOut[v + 1];
    double sum = 0;
    for (int32_t e = begin; e < end; ++e)
      sum += flow[e];
    for (int32_t e = begin; e < end; ++e) {
      const PathProgram::Edge &edge = program.edges[e];
      whole[e] = arrived[v] * (sum > 0 ? flow[e] / sum : e == begin);
      arrived[edge.to] += whole[e];
      value += whole[e] * edge.length;
    }
  }
  // The heads' prices make up for what the out-budgets' do not cover; then the
  // out-budgets' are as low as they can be.
  std::vector<double> inPrice(n, 0);
  for (int32_t e = 0; e < program.numEdges(); ++e) {
    const PathProgram::Edge &edge = program.edges[e];
    if (edge.saving > 0)
      inPrice[edge.to] = std::max(
          inPrice[edge.to], edge.saving * whole[e] - outPrice[edge.outBudget]);
  }
  std::fill(outPrice.begin(), outPrice.end(), 0.0);
  for (int32_t e = 0; e < program.numEdges(); ++e) {
    const PathProgram::Edge &edge = program.edges[e];
    if (edge.saving > 0)
      outPrice[edge.outBudget] = std::max(
          outPrice[edge.outBudget], edge.saving * whole[e] - inPrice[edge.to]);
  }
  for (double price : outPrice)
    value -= price;
  for (double price : inPrice)
    value -= price;
  return value;
}
