//===- Check.cpp - What is wrong with an input ------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Model/Problem.h"
#include "Model/CheckMachine.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>
#include <string_view>
#include <unordered_map>

using namespace baechi::placement;

namespace {

/// Sums of sizes and of times must stay below this, so that no algorithm needs
/// to think of overflow.
constexpr int64_t sumLimit = std::numeric_limits<int64_t>::max() / 4;

/// A sum that saturates instead of overflowing.
class Sum {
public:
  void add(int64_t value, int64_t times = 1) {
    total += static_cast<__int128>(std::max<int64_t>(value, 0)) * times;
  }
  void add(const Sum &other, int64_t times) { total += other.total * times; }
  /// So many for each \p one, rounded up.
  Sum times(int64_t many, int64_t one) const {
    Sum made;
    made.total = (total * many + one - 1) / one;
    return made;
  }
  bool tooLarge() const { return total > sumLimit; }

private:
  __int128 total = 0;
};

class Checker {
public:
  explicit Checker(const Problem &problem)
      : graph(problem.graph), machine(problem.machine) {}

  std::vector<std::string> run() {
    errors = checkMachine(machine);
    for (size_t i = 0; i < graph.ops.size(); ++i)
      checkOperator(static_cast<int32_t>(i));
    checkEdges();
    if (!errors.empty())
      return std::move(errors);
    // What follows relies on ids and numbers that are in range.
    checkStage();
    checkSums();
    checkGroups();
    checkReach();
    checkAcyclic();
    return std::move(errors);
  }

private:
  struct Group {
    int32_t pinned = -1;
    std::vector<bool> mask; ///< the devices that all members may be on
  };

  template <typename... Args>
  void error(fmt::format_string<Args...> format, Args &&...args) {
    errors.push_back(fmt::format(format, std::forward<Args>(args)...));
  }

  std::string opName(int32_t op) const {
    const std::string &name = graph.ops[op].name;
    return name.empty() ? fmt::format("operator {}", op)
                        : fmt::format("operator {} '{}'", op, name);
  }

  bool validOp(int32_t op) const {
    return op >= 0 && static_cast<size_t>(op) < graph.ops.size();
  }

  std::vector<std::string> deviceNames() const {
    std::vector<std::string> names;
    for (const Device &device : machine.devices)
      names.push_back(device.name);
    return names;
  }

  void checkStage() {
    if (!machine.stagedThrough)
      return;
    int32_t stage = machine.stage();
    if (stage < 0) {
      error(
          "transfers are staged through devices of kind '{}', but the machine "
          "has none: add one or leave staged_through out",
          *machine.stagedThrough);
      return;
    }
    for (int32_t d = 0; d < static_cast<int32_t>(machine.devices.size()); ++d)
      if (!machine.isStage(d) &&
          (!machine.link(d, stage) || !machine.link(stage, d)))
        error("transfers are staged through '{}', but it has no links to and "
              "from '{}': add them or a link_default",
              machine.devices[stage].name, machine.devices[d].name);
  }

  void checkOperator(int32_t i) {
    const Operator &op = graph.ops[i];
    if (op.timeNs.size() > 1)
      checkKinds(i);
    for (const auto &[kind, time] : op.timeNs)
      if (time < 0)
        error("{} has a time of {} ns: it must be 0 or more", opName(i), time);
    if (op.part && op.exchange > 0)
      error("{} is of part {} of the batch and exchanges its result: replicas "
            "exchange what comes of all their parts; leave one of them out",
            opName(i), *op.part);
    for (size_t k = 0; k < op.outputs.size(); ++k) {
      const Output &output = op.outputs[k];
      if (output.bytes < 0 || output.memory < 0 || output.copy < 0)
        error("output {} of {} has a negative size: sizes must be 0 or more", k,
              opName(i));
    }
    if (op.scratch < 0)
      error("{} has {} scratch bytes: they must be 0 or more", opName(i),
            op.scratch);
    if (op.resident < 0)
      error("{} has {} resident bytes: they must be 0 or more", opName(i),
            op.resident);
    if (op.forward && (!validOp(*op.forward) || *op.forward == i))
      error("{} names operator {} as its forward operator: it must be another "
            "operator of the graph (0 to {})",
            opName(i), *op.forward, graph.ops.size() - 1);
    checkSupport(i);
  }

  void checkKinds(int32_t i) {
    std::set<std::string_view> kinds;
    for (const auto &[kind, time] : graph.ops[i].timeNs)
      if (!kinds.insert(kind).second)
        error("{} has two times for the kind '{}': keep one", opName(i), kind);
  }

  void checkSupport(int32_t i) {
    const Operator &op = graph.ops[i];
    auto runs = [&](const Device &device) {
      return timeOn(op, device.kind).has_value();
    };
    if (op.pin) {
      auto pinned = std::find_if(
          machine.devices.begin(), machine.devices.end(),
          [&](const Device &device) { return device.name == *op.pin; });
      if (pinned == machine.devices.end())
        error("{} is pinned to '{}', which the machine does not have: its "
              "devices are {}",
              opName(i), *op.pin, fmt::join(deviceNames(), ", "));
      else if (!runs(*pinned))
        error("{} is pinned to '{}' but has no time for its kind '{}': add one "
              "or pin it elsewhere",
              opName(i), *op.pin, pinned->kind);
    } else if (!machine.devices.empty() &&
               std::none_of(machine.devices.begin(), machine.devices.end(),
                            runs)) {
      std::set<std::string> kinds;
      for (const Device &device : machine.devices)
        kinds.insert(device.kind);
      error("{} has no time for any device of the machine: add one for a kind "
            "of {}",
            opName(i), fmt::join(kinds, ", "));
    }
  }

  void checkEdges() {
    for (size_t e = 0; e < graph.edges.size(); ++e) {
      const Edge &edge = graph.edges[e];
      if (!validOp(edge.from) || !validOp(edge.to)) {
        error("edge {} leads from operator {} to operator {}, but operators "
              "are numbered 0 to {}",
              e, edge.from, edge.to,
              static_cast<int64_t>(graph.ops.size()) - 1);
        continue;
      }
      if (edge.from == edge.to)
        error("edge {} leads from {} to itself: remove it", e,
              opName(edge.from));
      auto outputs = static_cast<int32_t>(graph.ops[edge.from].outputs.size());
      if (edge.output < -1 || edge.output >= outputs)
        error("edge {} uses output {} of {}, which has {}", e, edge.output,
              opName(edge.from), outputs);
    }
  }

  void checkSums() {
    Sum bytes, time;
    auto devices = static_cast<int64_t>(machine.devices.size());
    const Link *slowest = nullptr;
    auto consider = [&](const std::optional<Link> &link) {
      constexpr int64_t probe = int64_t(1) << 30;
      if (link &&
          (!slowest || link->transferNs(probe) > slowest->transferNs(probe)))
        slowest = &*link;
    };
    for (const std::optional<Link> &link : machine.links)
      consider(link);
    if (machine.nodes) {
      consider(machine.nodes->inside);
      consider(machine.nodes->between);
    }
    // What each device may have of its own is multiplied once.
    Sum shared, moved;
    int64_t numOutputs = 0;
    for (const Operator &op : graph.ops) {
      bytes.add(op.scratch);
      bytes.add(op.resident);
      int64_t longest = 0;
      for (const auto &[kind, ns] : op.timeNs)
        longest = std::max(longest, ns);
      time.add(longest);
      numOutputs += static_cast<int64_t>(op.outputs.size());
      for (const Output &output : op.outputs) {
        bytes.add(output.memory);
        shared.add(output.copy);
        moved.add(output.bytes);
      }
    }
    bytes.add(shared, devices);
    bytes.add(moved, devices);
    if (slowest) {
      // No more than this, without a division an output; else exactly.
      Sum most = time;
      most.add(slowest->latencyNs, numOutputs * devices);
      most.add(numOutputs, devices); // what is rounded up
      most.add(moved.times(1000, slowest->bytesPerUs), devices);
      if (most.tooLarge())
        for (const Operator &op : graph.ops)
          for (const Output &output : op.outputs)
            time.add(slowest->transferNs(output.bytes), devices);
    }
    if (bytes.tooLarge())
      error("the sizes of the graph add up to more than {} bytes: check their "
            "unit",
            sumLimit);
    if (time.tooLarge())
      error("the times of operators and transfers add up to more than {} ns: "
            "check their unit",
            sumLimit);
  }

  bool mayUse(const Operator &op, size_t d) const {
    return timeOn(op, machine.devices[d].kind).has_value() &&
           (!op.pin || *op.pin == machine.devices[d].name);
  }

  bool mayUseAll(const Operator &op) const {
    if (!op.pin)
      return std::all_of(firstOfKind.begin(), firstOfKind.end(),
                         [&](size_t d) { return mayUse(op, d); });
    for (size_t d = 0; d < machine.devices.size(); ++d)
      if (!mayUse(op, d))
        return false;
    return true;
  }

  /// A group needs one device that every member may be on.
  void checkGroups() {
    std::set<std::string_view> kinds;
    for (size_t d = 0; d < machine.devices.size(); ++d)
      if (kinds.insert(machine.devices[d].kind).second)
        firstOfKind.push_back(d);
    for (size_t i = 0; i < graph.ops.size(); ++i) {
      const Operator &op = graph.ops[i];
      if (op.group && !mayUseAll(op))
        restrict(groups[*op.group], static_cast<int32_t>(i));
    }
  }

  void restrict(Group &group, int32_t id) {
    const Operator &op = graph.ops[id];
    if (group.mask.empty())
      group.mask.assign(machine.devices.size(), true);
    bool contradicts =
        op.pin && group.pinned >= 0 && *graph.ops[group.pinned].pin != *op.pin;
    if (contradicts)
      error("group '{}' has {} pinned to '{}' and {} pinned to '{}': a group "
            "is on one device, and an argument that is updated in place (as a "
            "donated one) is one group with what computes its next value; pin "
            "one of them, or all to the same device",
            *op.group, opName(group.pinned), *graph.ops[group.pinned].pin,
            opName(id), *op.pin);
    if (op.pin && group.pinned < 0)
      group.pinned = id;
    bool had = false, has = false;
    for (size_t d = 0; d < group.mask.size(); ++d) {
      had |= group.mask[d];
      group.mask[d] = group.mask[d] && mayUse(op, d);
      has |= group.mask[d];
    }
    if (had && !has && !contradicts)
      error("no device supports all of group '{}': {} is the first that none "
            "of the devices left can run; split the group, move a pin or "
            "add a time",
            *op.group, opName(id));
  }

  /// Whether a tensor can come from one device to another, over any others: a
  /// row of marks a device.
  std::vector<std::vector<bool>> reachable() const {
    auto devices = static_cast<int32_t>(machine.devices.size());
    std::vector<std::vector<bool>> reaches(devices,
                                           std::vector<bool>(devices, false));
    std::vector<int32_t> stack;
    for (int32_t from = 0; from < devices; ++from) {
      reaches[from][from] = true;
      stack.assign(1, from);
      while (!stack.empty()) {
        int32_t at = stack.back();
        stack.pop_back();
        for (int32_t d = 0; d < devices; ++d)
          if (!reaches[from][d] && machine.link(at, d)) {
            reaches[from][d] = true;
            stack.push_back(d);
          }
      }
    }
    return reaches;
  }

  /// Both ends of an edge need a device each that can talk: by a link, data
  /// also over other devices.
  void checkReach() {
    if (!errors.empty() || machine.devices.size() < 2)
      return;
    auto devices = static_cast<int32_t>(machine.devices.size());
    bool complete = true;
    for (int32_t a = 0; a < devices; ++a)
      for (int32_t b = 0; b < devices; ++b)
        complete &= a == b || machine.link(a, b).has_value();
    if (complete)
      return;
    std::vector<std::vector<bool>> masks;
    for (const Operator &op : graph.ops) {
      auto group = op.group ? groups.find(*op.group) : groups.end();
      auto &mask = masks.emplace_back();
      for (size_t d = 0; d < machine.devices.size(); ++d)
        mask.push_back(group == groups.end() ? mayUse(op, d)
                                             : group->second.mask[d]);
    }
    auto reaches = reachable();
    for (const Edge &edge : graph.edges) {
      bool isData = edge.output >= 0, possible = false;
      for (int32_t a = 0; a < devices && !possible; ++a)
        for (int32_t b = 0; b < devices && !possible; ++b)
          possible =
              masks[edge.from][a] && masks[edge.to][b] &&
              (a == b || machine.link(a, b) || (isData && reaches[a][b]));
      if (!possible && isData)
        error(
            "{} and its consumer {} must be on devices without a link, and no "
            "others pass it on: add the link or a link_default",
            opName(edge.from), opName(edge.to));
      else if (!possible)
        error("{} and {}, which waits for it, must be on devices without a "
              "link: add the link or a link_default",
              opName(edge.from), opName(edge.to));
    }
  }

  void checkAcyclic() {
    size_t n = graph.ops.size();
    // The users of operator i are users[first[i]] to users[first[i + 1]].
    std::vector<int32_t> waiting(n, 0), first(n + 1, 0);
    std::vector<int32_t> users(graph.edges.size());
    for (const Edge &edge : graph.edges) {
      ++first[edge.from];
      ++waiting[edge.to];
    }
    std::partial_sum(first.begin(), first.end(), first.begin());
    for (const Edge &edge : graph.edges)
      users[--first[edge.from]] = edge.to;
    std::vector<int32_t> ready;
    ready.reserve(n);
    for (size_t i = 0; i < n; ++i)
      if (waiting[i] == 0)
        ready.push_back(static_cast<int32_t>(i));
    for (size_t k = 0; k < ready.size(); ++k)
      for (int32_t at = first[ready[k]]; at < first[ready[k] + 1]; ++at)
        if (--waiting[users[at]] == 0)
          ready.push_back(users[at]);
    if (ready.size() < n)
      explainCycle(waiting);
  }

  /// Every operator that still waits has a source that does: walking back must
  /// come round.
  void explainCycle(const std::vector<int32_t> &waiting) {
    std::vector<int32_t> source(waiting.size(), -1);
    for (const Edge &edge : graph.edges)
      if (waiting[edge.from] > 0 && source[edge.to] < 0)
        source[edge.to] = edge.from;
    auto start = std::find_if(waiting.begin(), waiting.end(),
                              [](int32_t count) { return count > 0; });
    auto at = static_cast<int32_t>(start - waiting.begin());
    std::vector<int32_t> path, seenAt(waiting.size(), -1);
    while (seenAt[at] < 0) {
      seenAt[at] = static_cast<int32_t>(path.size());
      path.push_back(at);
      at = source[at];
    }
    std::vector<int32_t> cycle(path.begin() + seenAt[at], path.end());
    std::reverse(cycle.begin(), cycle.end());
    std::rotate(cycle.begin(), std::min_element(cycle.begin(), cycle.end()),
                cycle.end());
    std::string text;
    constexpr size_t shown = 8;
    for (size_t k = 0; k < std::min(cycle.size(), shown); ++k)
      text += opName(cycle[k]) + " -> ";
    if (cycle.size() > shown)
      text += fmt::format("... ({} more) -> ", cycle.size() - shown);
    error("the graph has a cycle: {}{}; remove one of these edges", text,
          opName(cycle.front()));
  }

  const Graph &graph;
  const Machine &machine;
  std::vector<std::string> errors;
  std::vector<size_t> firstOfKind; ///< a device of each kind
  /// Groups with a member that may not be everywhere.
  std::unordered_map<std::string_view, Group> groups;
};

} // namespace

std::vector<std::string> baechi::placement::check(const Problem &problem) {
  return Checker(problem).run();
}
