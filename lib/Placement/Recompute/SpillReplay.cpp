//===- SpillReplay.cpp - What waits in the pool ---------------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Recompute/SpillReplay.h"

#include <algorithm>
#include <limits>

using namespace baechi::placement;
using namespace baechi::placement::recompute;

static constexpr int32_t noUse = std::numeric_limits<int32_t>::max();
/// Moving less does not pay for its messages, but where nothing else helps.
static constexpr int64_t leastBytes = 4096;

SpillGraph::SpillGraph(const Graph &graph, const SpillOptions &options,
                       std::span<const int32_t> inPool)
    : tensors(graph, {options.kind, {}}), atHome(tensors.numTensors(), 0),
      mustGo(tensors.numTensors(), 0), mayGo(tensors.numTensors(), 0),
      inPool(inPool.begin(), inPool.end()) {
  for (int32_t tensor = 0; tensor < tensors.numTensors(); ++tensor) {
    TensorName name = nameOf(tensor);
    const Operator &op = graph.ops[name.op];
    const Output &output = op.outputs[name.output];
    moved.push_back(output.bytes);
    mayGo[tensor] =
        output.memory > 0 && !(op.result && options.staysHere[name.op]);
  }
  for (int32_t argument : inPool) {
    int32_t tensor = tensors.firstTensor[argument];
    tensors.resident -= graph.ops[argument].resident;
    tensors.bytes[tensor] = graph.ops[argument].outputs.front().copy;
    tensors.kept[tensor] = 0;
    atHome[tensor] = mayGo[tensor] = 1;
    TensorName next = options.nextValue[argument];
    if (next.op < 0)
      continue;
    int32_t result = tensors.firstTensor[next.op] + next.output;
    mustGo[result] = mayGo[result] = 1;
    // It was computed in the argument's place.
    if (tensors.bytes[result] == 0) {
      tensors.bytes[result] = graph.ops[next.op].outputs[next.output].copy;
      tensors.needs[next.op] += tensors.bytes[result];
    }
  }
  takeOvers.resize(tensors.numOps());
  for (const TakeOver &each : options.takeOvers) {
    int32_t result = tensors.firstTensor[each.op] + each.output;
    int32_t operand =
        tensors.firstTensor[each.operand.op] + each.operand.output;
    if (tensors.bytes[result] > 0 &&
        tensors.bytes[result] == tensors.bytes[operand])
      takeOvers[each.op].emplace_back(result, operand);
  }
  for (int64_t bytes : moved) {
    outNs.push_back(options.out.copyNs(bytes));
    inNs.push_back(options.in.copyNs(bytes));
  }
}

int64_t SpillGraph::needOf(int32_t op) const {
  int64_t together = tensors.resident + tensors.needs[op] -
                     bytesTakenOver(*this, op, [](int32_t) { return true; });
  for (int32_t tensor : tensors.operands[op])
    together += tensors.bytes[tensor];
  return together;
}

namespace {
class StayReplay {
public:
  StayReplay(const SpillGraph &graph, std::span<const int32_t> order,
             int64_t limit, SpillRule rule)
      : graph(graph), tensors(graph.tensors), order(order), limit(limit),
        rule(rule), uses(tensors.numTensors()), next(tensors.numTensors(), 0),
        here(tensors.numTensors(), 0), hasCopy(graph.atHome),
        inUse(tensors.numTensors(), -1), overwritten(tensors.numTensors(), -1),
        last(tensors.numTensors(), -1), held(tensors.resident) {
    std::vector<int32_t> at(tensors.numOps());
    for (size_t p = 0; p < order.size(); ++p)
      at[order[p]] = static_cast<int32_t>(p);
    for (int32_t tensor = 0; tensor < tensors.numTensors(); ++tensor) {
      for (int32_t user : tensors.users[tensor])
        uses[tensor].push_back(at[user]);
      std::sort(uses[tensor].begin(), uses[tensor].end());
      if (graph.atHome[tensor])
        leave(tensor, -1);
    }
  }

  std::optional<std::vector<Stay>> run(std::vector<int64_t> &level) {
    level.clear();
    for (position = 0; position < static_cast<int32_t>(order.size());
         ++position) {
      int32_t op = order[position];
      int64_t missing = 0;
      for (int32_t tensor : tensors.operands[op]) {
        inUse[tensor] = position;
        if (isAway(tensor))
          missing += tensors.bytes[tensor];
      }
      int64_t results = bytesOfResults(op);
      if (!makeRoom(missing + results)) {
        overwriteOperands(op);
        results = bytesOfResults(op);
        if (!makeRoom(missing + results))
          return std::nullopt;
      }
      for (int32_t tensor : tensors.operands[op])
        if (isAway(tensor))
          comeBack(tensor);
      level.push_back(held + results);
      for (int32_t tensor = tensors.firstTensor[op];
           tensor < tensors.firstTensor[op + 1]; ++tensor)
        if (!graph.atHome[tensor])
          begin(tensor);
      for (int32_t tensor : tensors.operands[op])
        if (overwritten[tensor] == position) {
          end(tensor);
          leave(tensor, position);
        } else {
          endIfUnused(tensor);
        }
      for (int32_t tensor = tensors.firstTensor[op];
           tensor < tensors.firstTensor[op + 1]; ++tensor)
        endIfUnused(tensor);
    }
    for (int32_t tensor = 0; tensor < tensors.numTensors(); ++tensor)
      if (graph.mustGo[tensor] && !hasCopy[tensor])
        leave(tensor, position);
    // An argument's first stay, where nothing reads it.
    std::erase_if(
        stays, [](const Stay &stay) { return stay.gone < 0 && stay.use < 0; });
    return std::move(stays);
  }

private:
  bool isAway(int32_t tensor) const {
    return !here[tensor] && last[tensor] >= 0 && stays[last[tensor]].use < 0;
  }
  void begin(int32_t tensor) {
    here[tensor] = 1;
    live.push_back(tensor);
    held += tensors.bytes[tensor];
  }
  void end(int32_t tensor) {
    here[tensor] = 0;
    live.erase(std::find(live.begin(), live.end(), tensor));
    held -= tensors.bytes[tensor];
  }
  /// The first use from the position on, of this operator's only if it has not
  /// run.
  int32_t nextUse(int32_t tensor, int32_t from) {
    int32_t &k = next[tensor];
    const std::vector<int32_t> &all = uses[tensor];
    while (k < static_cast<int32_t>(all.size()) && all[k] < from)
      ++k;
    return k < static_cast<int32_t>(all.size()) ? all[k] : noUse;
  }
  /// What it makes beside its operands.
  int64_t bytesOfResults(int32_t op) {
    return tensors.needs[op] - bytesTakenOver(graph, op, [&](int32_t tensor) {
             return overwritten[tensor] == position ||
                    (!mustStay(tensor) &&
                     nextUse(tensor, position + 1) == noUse);
           });
  }
  /// Operands that are needed later may be overwritten, too, once they are in
  /// the pool.
  void overwriteOperands(int32_t op) {
    for (auto [result, operand] : graph.takeOvers[op])
      if (graph.mayGo[operand] &&
          (mustStay(operand) || nextUse(operand, position + 1) != noUse) &&
          !(graph.mustGo[operand] && nextUse(operand, position + 1) != noUse))
        overwritten[operand] = position;
  }
  bool mustStay(int32_t tensor) const {
    return (tensors.kept[tensor] || graph.mustGo[tensor]) && !hasCopy[tensor];
  }
  void endIfUnused(int32_t tensor) {
    if (here[tensor] && !mustStay(tensor) &&
        nextUse(tensor, position + 1) == noUse)
      end(tensor);
  }
  void leave(int32_t tensor, int32_t at) {
    last[tensor] = static_cast<int32_t>(stays.size());
    stays.push_back({graph.nameOf(tensor), at});
    hasCopy[tensor] = 1;
  }
  void comeBack(int32_t tensor) {
    Stay &stay = stays[last[tensor]];
    stay.fetch = stay.use = position;
    begin(tensor);
  }

  /// Larger goes first.
  double worthOf(int32_t tensor) {
    int32_t use = nextUse(tensor, position);
    double wait = use == noUse ? 2.0 * order.size() : use - position;
    auto bytes = static_cast<double>(tensors.bytes[tensor]);
    if (rule == SpillRule::Largest) {
      int64_t ns = (hasCopy[tensor] ? 0 : graph.outNs[tensor]) +
                   (use == noUse ? 0 : graph.inNs[tensor]);
      return bytes * wait / static_cast<double>(ns + 1);
    }
    if (rule == SpillRule::Clean && hasCopy[tensor])
      wait *= 2;
    return bytes < leastBytes ? wait / (2.0 * order.size()) : wait + 1;
  }

  bool makeRoom(int64_t bytes) {
    while (held + bytes > limit) {
      int32_t best = -1;
      double most = 0;
      for (int32_t tensor : live) {
        if (!graph.mayGo[tensor] || inUse[tensor] == position ||
            (graph.mustGo[tensor] && nextUse(tensor, position) != noUse))
          continue;
        double worth = worthOf(tensor);
        if (best < 0 || worth > most || (worth == most && tensor < best)) {
          best = tensor;
          most = worth;
        }
      }
      if (best < 0)
        return false;
      end(best);
      leave(best, position);
    }
    return true;
  }

  const SpillGraph &graph;
  const RepeatGraph &tensors;
  std::span<const int32_t> order;
  int64_t limit;
  SpillRule rule;
  std::vector<std::vector<int32_t>> uses; ///< per tensor: sorted positions
  std::vector<int32_t> next;              ///< per tensor: of its uses
  std::vector<uint8_t> here;              ///< per tensor: on the device
  std::vector<uint8_t> hasCopy;           ///< per tensor: in the pool
  std::vector<int32_t> inUse;             ///< per tensor: by which position
  std::vector<int32_t> overwritten;       ///< per tensor: by which position
  std::vector<int32_t> last;              ///< per tensor: its latest stay
  std::vector<int32_t> live;
  std::vector<Stay> stays;
  int64_t held;
  int32_t position = 0;
};
} // namespace

std::optional<std::vector<Stay>> baechi::placement::recompute::replayStays(
    const SpillGraph &graph, std::span<const int32_t> order, int64_t limit,
    SpillRule rule, std::vector<int64_t> &level) {
  return StayReplay(graph, order, limit, rule).run(level);
}

void baechi::placement::recompute::fetchEarly(const SpillGraph &graph,
                                              std::span<const int32_t> order,
                                              int64_t limit, int64_t slack,
                                              std::vector<Stay> &stays,
                                              std::vector<int64_t> &level) {
  std::vector<int64_t> startNs;
  int64_t ns = 0;
  for (int32_t op : order) {
    startNs.push_back(ns);
    ns += graph.tensors.timeNs[op];
  }
  std::vector<Stay *> late;
  for (Stay &stay : stays)
    if (stay.use >= 0)
      late.push_back(&stay);
  std::sort(late.begin(), late.end(), [](const Stay *a, const Stay *b) {
    return a->use != b->use               ? a->use > b->use
           : a->tensor.op != b->tensor.op ? a->tensor.op > b->tensor.op
                                          : a->tensor.output > b->tensor.output;
  });
  int64_t linkFreeNs = ns;
  for (Stay *stay : late) {
    int32_t tensor =
        graph.tensors.firstTensor[stay->tensor.op] + stay->tensor.output;
    int64_t bytes = graph.tensors.bytes[tensor];
    linkFreeNs =
        std::min(startNs[stay->use], linkFreeNs) - slack * graph.inNs[tensor];
    while (stay->fetch - 1 > stay->gone && startNs[stay->fetch] > linkFreeNs &&
           level[stay->fetch - 1] + bytes <= limit) {
      --stay->fetch;
      level[stay->fetch] += bytes;
    }
  }
}
