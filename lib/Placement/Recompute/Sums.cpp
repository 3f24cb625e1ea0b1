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
#include <set>

using namespace baechi::placement;

/// Per operator: whether it is among them.
static std::vector<uint8_t> areAmong(const Graph &graph,
                                     std::span<const int32_t> ops) {
  std::vector<uint8_t> among(graph.ops.size(), 0);
  for (int32_t op : ops)
    among[op] = 1;
  return among;
}

/// Per operator: how many tensors it reads.
static std::vector<int32_t> readsOf(const Graph &graph) {
  std::vector<int32_t> reads(graph.ops.size(), 0);
  for (const Edge &edge : graph.edges)
    reads[edge.to] += edge.output >= 0;
  return reads;
}

std::vector<int32_t>
baechi::placement::sumsOfTwo(const Graph &graph,
                             std::span<const int32_t> sums) {
  std::vector<int32_t> reads = readsOf(graph), few;
  std::copy_if(sums.begin(), sums.end(), std::back_inserter(few),
               [&](int32_t op) { return reads[op] <= 2; });
  return few;
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

/// What stands between a sum's name and an addition's number, so that none of
/// \p additions has one of these names.
static std::string markFor(const std::set<std::string> &names,
                           const std::string &name, int32_t additions) {
  std::string mark = "#";
  for (int32_t k = 1; k < additions;)
    if (names.contains(name + mark + std::to_string(k))) {
      mark += "#";
      k = 1;
    } else {
      ++k;
    }
  return mark;
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
  std::vector<int32_t> reads = readsOf(graph);
  std::set<std::string> names;
  for (const Operator &op : graph.ops)
    names.insert(op.name);
  // The first of an operator's additions, and the last, which has its name.
  std::vector<int32_t> first, last;
  Graph written;
  for (int32_t op = 0; op < count; ++op) {
    const Operator &own = graph.ops[op];
    int32_t additions = isSum[op] && reads[op] > 2 ? reads[op] - 1 : 1;
    std::string mark = markFor(names, own.name, additions);
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
      addition.name += mark + std::to_string(k);
      names.insert(addition.name);
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
