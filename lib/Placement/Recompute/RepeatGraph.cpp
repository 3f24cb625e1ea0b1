//===- RepeatGraph.cpp - What may be computed again -----------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Recompute/Replay.h"

#include <algorithm>

using namespace baechi::placement;
using namespace baechi::placement::recompute;

RepeatGraph::RepeatGraph(const Graph &graph, const RecomputeOptions &options)
    : mayRepeat(options.mayRepeat) {
  for (const Operator &op : graph.ops) {
    std::optional<int64_t> time = timeOn(op, options.kind);
    timeNs.push_back(time                ? *time
                     : op.timeNs.empty() ? 0
                                         : op.timeNs.front().second);
    scratch.push_back(op.scratch);
    needs.push_back(op.scratch);
    resident += op.resident;
    firstTensor.push_back(numTensors());
    for (const Output &output : op.outputs) {
      producer.push_back(static_cast<int32_t>(needs.size()) - 1);
      bytes.push_back(output.memory);
      kept.push_back(op.result);
      needs.back() += output.memory;
    }
  }
  firstTensor.push_back(numTensors());
  std::vector<std::pair<int32_t, int32_t>> reads, waits;
  for (const Edge &edge : graph.edges)
    if (edge.output >= 0)
      reads.emplace_back(edge.to, firstTensor[edge.from] + edge.output);
    else
      waits.emplace_back(edge.from, edge.to);
  operands = makeRows(numOps(), reads);
  // Resident bytes stay.
  for (int32_t tensor = 0; tensor < numTensors(); ++tensor)
    if (bytes[tensor] == 0 && operands[producer[tensor]].empty())
      kept[tensor] = 1;
  users = inverse(operands, numTensors());
  controlUsers = makeRows(numOps(), waits);
}

MemoryFloor RepeatGraph::floor() const {
  MemoryFloor floor;
  for (int32_t op = 0; op < numOps(); ++op) {
    int64_t together = resident + needs[op];
    for (int32_t tensor : operands[op])
      together += bytes[tensor];
    if (together > floor.bytes || floor.op < 0)
      floor = {together, op};
  }
  return floor;
}

MemoryFloor baechi::placement::memoryFloor(const Graph &graph) {
  return RepeatGraph(graph, {}).floor();
}

std::optional<int64_t>
baechi::placement::peakOfRuns(const Graph &graph,
                              std::span<const int32_t> runs) {
  return recompute::peakOf(RepeatGraph(graph, {}), runs);
}

std::optional<int64_t>
baechi::placement::recompute::peakOf(const RepeatGraph &tensors,
                                     std::span<const int32_t> runs) {
  // The last run that reads what a run made.
  std::vector<std::vector<int32_t>> lastReads(runs.size());
  std::vector<int32_t> madeBy(tensors.numTensors(), -1);
  auto readsOf = [&](int32_t run, int32_t tensor) -> int32_t & {
    return lastReads[run][tensor - tensors.firstTensor[runs[run]]];
  };
  auto count = static_cast<int32_t>(runs.size());
  for (int32_t run = 0; run < count; ++run) {
    int32_t op = runs[run];
    for (int32_t tensor : tensors.operands[op]) {
      if (madeBy[tensor] < 0)
        return std::nullopt;
      readsOf(madeBy[tensor], tensor) = run;
    }
    lastReads[run].assign(tensors.firstTensor[op + 1] - tensors.firstTensor[op],
                          run);
    for (int32_t tensor = tensors.firstTensor[op];
         tensor < tensors.firstTensor[op + 1]; ++tensor)
      madeBy[tensor] = run;
  }
  for (int32_t tensor = 0; tensor < tensors.numTensors(); ++tensor)
    if (tensors.kept[tensor] && madeBy[tensor] >= 0)
      readsOf(madeBy[tensor], tensor) = count;
  std::vector<int64_t> freed(count + 1, 0);
  int64_t level = tensors.resident, peak = level;
  for (int32_t run = 0; run < count; ++run) {
    int32_t op = runs[run];
    peak = std::max(peak, level + tensors.needs[op]);
    level += tensors.needs[op] - tensors.scratch[op];
    for (int32_t tensor = tensors.firstTensor[op];
         tensor < tensors.firstTensor[op + 1]; ++tensor)
      freed[readsOf(run, tensor)] += tensors.bytes[tensor];
    level -= freed[run];
  }
  return peak;
}
