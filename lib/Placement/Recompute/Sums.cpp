//===- Sums.cpp - Sums whose operands come one after the other ------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Recompute/Sums.h"

#include <fmt/format.h>

#include <algorithm>

using namespace baechi::placement;

/// Per operator: whether it is among them.
static std::vector<uint8_t> areAmong(const Graph &graph,
                                     std::span<const int32_t> ops) {
  std::vector<uint8_t> among(graph.ops.size(), 0);
  for (int32_t op : ops)
    among[op] = 1;
  return among;
}

std::string baechi::placement::whyNoSums(const Graph &graph,
                                         std::span<const int32_t> sums) {
  for (int32_t op : sums) {
    const Operator &sum = graph.ops[op];
    if (sum.outputs.size() != 1)
      return fmt::format("'{}' is no sum: it has {} outputs", sum.name,
                         sum.outputs.size());
    if (sum.resident > 0)
      return fmt::format("'{}' is no sum: it has resident bytes", sum.name);
  }
  std::vector<uint8_t> isSum = areAmong(graph, sums);
  for (const Edge &edge : graph.edges) {
    if (!isSum[edge.to] || edge.output < 0)
      continue;
    const Operator &sum = graph.ops[edge.to], &made = graph.ops[edge.from];
    int64_t bytes = sum.outputs.front().bytes,
            read = made.outputs[edge.output].bytes;
    if (read != bytes)
      return fmt::format(
          "'{}' is no sum: it makes {} bytes, and reads {} of '{}'", sum.name,
          bytes, read, made.name);
  }
  return "";
}

/// What one of the additions takes of \p ns, a sum's of \p operands: it reads
/// two tensors and writes one, the sum reads all and writes one.
static int64_t timeOfOne(int64_t ns, int64_t operands) {
  constexpr int64_t moved = 3;
  int64_t movedBySum = operands + 1;
  return (ns / movedBySum) * moved +
         (ns % movedBySum * moved + movedBySum - 1) / movedBySum;
}

Graph baechi::placement::withSumsInTurn(const Graph &graph,
                                        std::span<const int32_t> sums) {
  auto count = static_cast<int32_t>(graph.ops.size());
  std::vector<uint8_t> isSum = areAmong(graph, sums);
  std::vector<int32_t> reads(count, 0);
  for (const Edge &edge : graph.edges)
    reads[edge.to] += edge.output >= 0;
  // The first of an operator's additions, and the last, which has its name.
  std::vector<int32_t> first, last;
  Graph written;
  for (int32_t op = 0; op < count; ++op) {
    const Operator &own = graph.ops[op];
    int32_t additions = isSum[op] && reads[op] > 2 ? reads[op] - 1 : 1;
    first.push_back(static_cast<int32_t>(written.ops.size()));
    for (int32_t k = 1; k <= additions; ++k) {
      written.ops.push_back(own);
      Operator &addition = written.ops.back();
      if (additions == 1)
        break;
      for (auto &[kind, ns] : addition.timeNs)
        ns = timeOfOne(ns, reads[op]);
      if (k == additions)
        break;
      addition.name += "#" + std::to_string(k);
      addition.outputs = {Output(own.outputs.front().bytes)};
      addition.result = false;
      addition.exchange = 0;
    }
    last.push_back(static_cast<int32_t>(written.ops.size()) - 1);
  }
  for (Operator &op : written.ops)
    if (op.forward)
      op.forward = last[*op.forward];
  // Before the edges of what is added to it.
  for (int32_t op = 0; op < count; ++op)
    for (int32_t addition = first[op]; addition < last[op]; ++addition)
      written.edges.push_back({addition, 0, addition + 1});
  std::vector<int32_t> seen(count, 0);
  for (const Edge &edge : graph.edges) {
    int32_t to = first[edge.to];
    if (edge.output >= 0 && first[edge.to] < last[edge.to])
      to += std::max(seen[edge.to]++ - 1, 0);
    written.edges.push_back({last[edge.from], edge.output, to});
  }
  return written;
}
