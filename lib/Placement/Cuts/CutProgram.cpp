//===- CutProgram.cpp - The choice of ways as a pairwise program ----------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Nodes are operators and edges are what moving tensors between their layouts
/// takes, as in Alpa (Zheng et al., OSDI 2022, section 4) and in the contest on
/// intra-operator parallelism (ASPLOS 2025), where memory is a limit over time.
///
//===----------------------------------------------------------------------===//

#include "Cuts/CutProgram.h"
#include "Cuts/Screen.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

using namespace baechi::placement;
using namespace baechi::placement::cuts;

namespace {

const Alternative *wayOf(const Alternatives &alternatives, int32_t op,
                         int32_t way) {
  return way < 0 ? nullptr : &alternatives.of[op][way];
}

double ratio(int64_t part, int64_t all) {
  return static_cast<double>(part) / static_cast<double>(all);
}

} // namespace

CutProgram::CutProgram(const Problem &problem, const Alternatives &alternatives,
                       Objective objective)
    : problem(problem), alternatives(alternatives), objective(objective) {
  devices = laneDevices(problem.machine);
  for (int32_t d : devices)
    memory += std::min(problem.machine.devices[d].memory, costly);
  for (size_t op = 0; op < problem.graph.ops.size(); ++op) {
    auto id = static_cast<int32_t>(op);
    std::vector<Option> &of = options.emplace_back();
    of.push_back(optionOf(id, -1));
    for (size_t way = 0; way < alternatives.of[op].size(); ++way)
      of.push_back(optionOf(id, static_cast<int32_t>(way)));
  }
  addLinks();
  addLifetimes();
}

CutProgram::Option CutProgram::optionOf(int32_t op, int32_t way) const {
  const Operator &of = problem.graph.ops[op];
  const Alternative *taken = wayOf(alternatives, op, way);
  Option option;
  option.way = way;
  option.pieces = taken ? static_cast<int32_t>(taken->pieces.size()) : 1;
  std::vector<double> busy(devices.size(), 0);
  double work = 0;
  for (int32_t p = 0; p < option.pieces; ++p) {
    size_t lane = static_cast<size_t>(p) % devices.size();
    Operator piece;
    piece.timeNs = taken ? taken->pieces[p].timeNs : of.timeNs;
    const Device &device = problem.machine.devices[devices[lane]];
    // A kind that cannot run it leaves it to others.
    double ns = static_cast<double>(
        timeOn(piece, device.kind)
            .value_or(piece.timeNs.empty() ? 0 : piece.timeNs.front().second));
    busy[lane] += ns;
    work += ns;
    option.resident += taken ? taken->pieces[p].resident : of.resident;
  }
  double longest = *std::max_element(busy.begin(), busy.end());
  option.longestNs = bounded(longest);
  double extra = 0;
  for (size_t o = 0; o < of.outputs.size(); ++o) {
    int64_t copies = option.pieces;
    if (taken && !taken->outputs.empty()) {
      const OutputCut &made = taken->outputs[o];
      if (made.isPartial)
        extra += ratio(taken->sumNs, 1) * (option.pieces - 1) /
                 std::min<double>(option.pieces, ratio(devices.size(), 1));
      else if (made.cut.along >= 0)
        copies =
            made.cut.sizes.empty()
                ? 1
                : option.pieces / static_cast<int64_t>(made.cut.sizes.size());
    }
    option.held += copies * std::min(of.outputs[o].memory, costly);
  }
  if (taken && taken->exchange > 0 && devices.size() > 1)
    if (const auto &link = problem.machine.link(devices[0], devices[1]))
      extra += 2 * ratio(link->transferNs(taken->exchange), taken->replicas) *
               (taken->replicas - 1);
  // A pipeline's load is what all devices do together.
  option.timeNs = objective == Objective::MaxLoad
                      ? bounded(work / ratio(devices.size(), 1) + extra)
                      : bounded(longest + extra);
  return option;
}

TransferTimes::Maker CutProgram::makerOf(const Edge &edge,
                                         const Option &option) const {
  const Alternative *way = wayOf(alternatives, edge.from, option.way);
  const auto &shapes = alternatives.shapes[edge.from];
  TransferTimes::Maker maker;
  maker.bytes = problem.graph.ops[edge.from].outputs[edge.output].bytes;
  maker.pieces = option.pieces;
  if (static_cast<size_t>(edge.output) < shapes.size())
    maker.shape = shapes[edge.output];
  if (way && !way->outputs.empty())
    maker.made = way->outputs[edge.output];
  return maker;
}

TransferTimes::Reader CutProgram::readerOf(const Edge &edge,
                                           const Option &option) const {
  const Alternative *way = wayOf(alternatives, edge.to, option.way);
  TransferTimes::Reader reader;
  reader.pieces = option.pieces;
  if (way)
    for (const InputCut &each : way->inputs)
      if (each.from == edge.from && each.output == edge.output) {
        reader.cut = each.cut;
        reader.extra = each.extra;
      }
  return reader;
}

void CutProgram::addLinks() {
  TransferTimes times(problem.machine, objective, devices);
  std::set<std::tuple<int32_t, int32_t, int32_t>> seen;
  for (const Edge &edge : problem.graph.edges) {
    if (edge.output < 0 ||
        !seen.emplace(edge.from, edge.output, edge.to).second ||
        options[edge.from].size() + options[edge.to].size() == 2)
      continue;
    std::vector<int32_t> makers, readers;
    for (const Option &from : options[edge.from])
      makers.push_back(times.numberOf(makerOf(edge, from)));
    for (const Option &to : options[edge.to])
      readers.push_back(times.numberOf(readerOf(edge, to)));
    Link link{edge.from, edge.to, {}};
    for (int32_t maker : makers)
      for (int32_t reader : readers)
        link.ns.push_back(times.ns(maker, reader));
    links.push_back(std::move(link));
  }
}

/// When outputs are alive, by the place of operators in a topological order.
void CutProgram::addLifetimes() {
  const Graph &graph = problem.graph;
  size_t n = graph.ops.size();
  std::vector<std::vector<int32_t>> next(n);
  std::vector<int32_t> waits(n, 0), ready;
  for (const Edge &edge : graph.edges) {
    next[edge.from].push_back(edge.to);
    ++waits[edge.to];
  }
  for (size_t op = n; op-- > 0;)
    if (waits[op] == 0)
      ready.push_back(static_cast<int32_t>(op));
  std::vector<int64_t> place(n, 0);
  int64_t now = 0;
  while (!ready.empty()) {
    int32_t op = ready.back();
    ready.pop_back();
    place[op] = now++;
    for (int32_t to : next[op])
      if (--waits[to] == 0)
        ready.push_back(to);
  }
  for (size_t op = 0; op < n; ++op) {
    alive.emplace_back(place[op], place[op] + 1);
    if (graph.ops[op].result)
      alive.back().second = static_cast<int64_t>(n);
    for (int32_t to : next[op])
      alive.back().second = std::max(alive.back().second, place[to] + 1);
  }
}

std::optional<Ways> CutProgram::propose(const Weights &weights) const {
  ChoiceProgram program;
  size_t n = options.size();
  bool hasLimit = weights.memory > 0;
  auto isAllowed = [&](size_t op, const Option &option) {
    if (weights.pieces > 0 && option.pieces > weights.pieces &&
        option.pieces > 1)
      return false;
    if (weights.longest <= 0 || option.longestNs <= weights.longest)
      return true;
    return std::all_of(options[op].begin(), options[op].end(),
                       [&](const Option &other) {
                         return other.longestNs >= option.longestNs;
                       });
  };
  for (size_t op = 0; op < n; ++op) {
    ChoiceNode node;
    if (hasLimit)
      std::tie(node.begin, node.end) = alive[op];
    bool any = false;
    for (const Option &option : options[op])
      any |= isAllowed(op, option);
    for (const Option &option : options[op])
      node.strategies.push_back(
          {any && !isAllowed(op, option) ? infiniteCost : option.timeNs,
           hasLimit ? option.held : 0});
    program.nodes.push_back(std::move(node));
  }
  for (const Link &link : links) {
    ChoiceEdge edge{link.from, link.to, {}};
    for (int64_t ns : link.ns)
      edge.costs.push_back(bounded(ratio(ns, 1) * weights.transfers));
    program.edges.push_back(std::move(edge));
  }
  if (hasLimit) {
    program.usageLimit = bounded(ratio(memory, 1) * weights.memory);
    // What stays for the whole step, tied to the operator's own choice.
    for (size_t op = 0; op < n; ++op) {
      ChoiceNode node{0, static_cast<int64_t>(n), {}};
      for (const Option &option : options[op])
        node.strategies.push_back({0, std::min(option.resident, costly)});
      if (std::all_of(node.strategies.begin(), node.strategies.end(),
                      [](const ChoiceStrategy &s) { return s.usage == 0; }))
        continue;
      ChoiceEdge tie{static_cast<int32_t>(op),
                     static_cast<int32_t>(program.nodes.size()),
                     {}};
      for (size_t r = 0; r < options[op].size(); ++r)
        for (size_t s = 0; s < options[op].size(); ++s)
          tie.costs.push_back(r == s ? 0 : infiniteCost);
      program.nodes.push_back(std::move(node));
      program.edges.push_back(std::move(tie));
    }
  }
  ChoiceOptions search;
  // A twentieth of a second, and more for large graphs.
  search.work = 50'000'000 + 2'000 * static_cast<uint64_t>(n);
  ChoiceResult found = solveChoice(program, search);
  if (found.choice.empty())
    return std::nullopt;
  Ways ways;
  for (size_t op = 0; op < n; ++op)
    ways.push_back(options[op][found.choice[op]].way);
  return ways;
}

std::vector<Weights> baechi::placement::cuts::allWeights(const Machine &machine,
                                                         Objective objective,
                                                         int64_t load) {
  auto count = static_cast<int32_t>(machine.devices.size());
  std::vector<int32_t> pieces = {count, 0};
  for (int32_t fewer = count / 2; fewer >= 2; fewer /= 2)
    pieces.push_back(fewer);
  std::vector<Weights> all;
  if (objective == Objective::MaxLoad)
    for (int64_t percent : {75, 50, 35, 25, 100})
      for (double memory : {0.0, 0.8})
        all.push_back(
            {1, 0, memory, std::max<int64_t>(load * percent / 100, 1)});
  for (int32_t most : pieces)
    for (double transfers : {1.0, 0.5, 0.25, 0.0, 2.0})
      all.push_back({transfers, most, 0, 0});
  for (double memory : {0.9, 0.7, 0.5})
    all.push_back({1, 0, memory, 0});
  // Nothing at all: its alternatives of one piece, at any price.
  all.push_back({1, 1, 0, 0});
  return all;
}
