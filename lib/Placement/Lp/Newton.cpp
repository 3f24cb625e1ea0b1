//===- Newton.cpp - The interior point's linear system --------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lp/Newton.h"

#include <algorithm>
#include <cmath>

using namespace baechi::placement::lp;

void Point::resize(size_t numNodes, size_t numEdges, size_t numBudgets) {
  potential.assign(numNodes, 0);
  for (auto *v : {&slack, &flow, &y, &price})
    v->assign(numEdges, 0);
  for (auto *v : {&rest, &budgetPrice})
    v->assign(numBudgets, 0);
}

void Targets::resize(size_t numEdges, size_t numBudgets) {
  slack.assign(numEdges, 0);
  y.assign(numEdges, 0);
  budget.assign(numBudgets, 0);
}

Newton::Newton(const PathProgram &program)
    : program(program), nodes(program.numNodes), edges(program.numEdges()),
      edgeBudgets(edges, {-1, -1}), lengths(edges), savings(edges) {
  std::vector<int32_t> outCount(program.numBudgets, 0), inCount(nodes, 0);
  for (const PathProgram::Edge &edge : program.edges)
    if (edge.saving > 0) {
      ++outCount[edge.outBudget];
      ++inCount[edge.to];
    }
  std::vector<int32_t> outId(program.numBudgets, -1), inId(nodes, -1);
  auto number = [&](int32_t &id, int32_t out) {
    if (id < 0) {
      id = budgets++;
      outBudget.push_back(out);
    }
    return id;
  };
  for (int32_t e = 0; e < edges; ++e) {
    const PathProgram::Edge &edge = program.edges[e];
    if (edge.saving <= 0)
      continue;
    bool shared = inCount[edge.to] > 1;
    if (outCount[edge.outBudget] > 1 || !shared)
      edgeBudgets[e][0] = number(outId[edge.outBudget], edge.outBudget);
    if (shared)
      edgeBudgets[e][1] = number(inId[edge.to], -1);
  }
  std::vector<std::pair<int32_t, int32_t>> entries;
  entries.reserve(edges * size_t(4));
  for (int32_t e = 0; e < edges; ++e) {
    auto c = corners(e);
    for (int i = 0; i < 4; ++i)
      for (int j = i + 1; j < 4; ++j)
        if (c[i] >= 0 && c[j] >= 0)
          entries.emplace_back(std::min(c[i], c[j]), std::max(c[i], c[j]));
  }
  system.emplace(nodes - 1 + budgets, nodes - 1, std::move(entries));
}

/// Rows of the matrix that an edge touches: tail, head, budgets. The first
/// node's potential is 0 and has none.
std::array<int32_t, 4> Newton::corners(int32_t edge) const {
  const PathProgram::Edge &e = program.edges[edge];
  std::array<int32_t, 4> result{e.from - 1, e.to - 1, -1, -1};
  for (int k : {0, 1})
    if (edgeBudgets[edge][k] >= 0)
      result[2 + k] = nodes - 1 + edgeBudgets[edge][k];
  return result;
}

void Newton::allocate() {
  system->allocate();
  slots.resize(edges);
  for (int32_t e = 0; e < edges; ++e) {
    auto c = corners(e);
    int k = 0;
    for (int i = 0; i < 4; ++i)
      for (int j = i; j < 4; ++j)
        slots[e][k++] = c[i] >= 0 && c[j] >= 0 ? system->slot(c[i], c[j])
                                               : system->noSlot();
  }
  for (int32_t i = 0; i < nodes - 1 + budgets; ++i)
    diagonal.push_back(system->slot(i, i));
  for (auto *v : {&slackResidual, &yResidual, &theta, &eta, &shift})
    v->assign(edges, 0);
  restResidual.assign(budgets, 0);
  flowResidual.assign(nodes, 0);
  right.assign(nodes - 1 + budgets, 0);
}

void Newton::setLengths(double unit) {
  for (int32_t e = 0; e < edges; ++e) {
    lengths[e] = program.edges[e].length / unit;
    savings[e] = program.edges[e].saving / unit;
  }
}

void Newton::findResiduals(const Point &at) {
  primalError = dualError = 0;
  for (int32_t b = 0; b < budgets; ++b)
    restResidual[b] = 1 - at.rest[b];
  std::fill(flowResidual.begin(), flowResidual.end(), 0.0);
  flowResidual[nodes - 1] = 1;
  for (int32_t e = 0; e < edges; ++e) {
    const PathProgram::Edge &edge = program.edges[e];
    slackResidual[e] = at.potential[edge.to] - at.potential[edge.from] +
                       savings[e] * at.y[e] - at.slack[e] - lengths[e];
    primalError = std::max(primalError, std::abs(slackResidual[e]));
    flowResidual[edge.to] -= at.flow[e];
    flowResidual[edge.from] += at.flow[e];
    if (savings[e] <= 0)
      continue;
    double prices = 0;
    for (int32_t b : edgeBudgets[e])
      if (b >= 0) {
        restResidual[b] -= at.y[e];
        prices += at.budgetPrice[b];
      }
    yResidual[e] = savings[e] * at.flow[e] - prices + at.price[e];
    dualError = std::max(dualError, std::abs(yResidual[e]) / (1 + savings[e]));
  }
  for (int32_t b = 0; b < budgets; ++b)
    primalError = std::max(primalError, std::abs(restResidual[b]));
  flowResidual[0] = 0;
  for (double r : flowResidual)
    dualError = std::max(dualError, std::abs(r));
}

void Newton::factorAndSolve(const Point &at, const Targets &targets,
                            Point &direction) {
  assemble(at);
  setRight(at, targets);
  for (int attempt = 0; system->factor(right) > 0 && attempt < 3; ++attempt) {
    regularization *= 10;
    assemble(at);
  }
  system->finish(right);
  setDirection(at, targets, direction);
}

void Newton::assemble(const Point &at) {
  std::vector<double> &a = system->values();
  std::fill(a.begin(), a.end(), 0.0);
  auto add = [&](int32_t slot, double value) { a[slot] += value; };
  for (int32_t e = 0; e < edges; ++e) {
    theta[e] = at.flow[e] / at.slack[e];
    const auto &s = slots[e];
    double c = savings[e], nodeTerm = theta[e];
    if (c > 0) {
      double stiffness = at.price[e] / at.y[e];
      eta[e] = 1 / (c * c * theta[e] + stiffness);
      nodeTerm = theta[e] * stiffness * eta[e];
      double mixed = theta[e] * c * eta[e];
      add(s[2], mixed);
      add(s[3], mixed);
      add(s[5], -mixed);
      add(s[6], -mixed);
      add(s[7], -eta[e]);
      add(s[8], -eta[e]);
      add(s[9], -eta[e]);
    }
    add(s[0], nodeTerm);
    add(s[1], -nodeTerm);
    add(s[4], nodeTerm);
  }
  for (int32_t b = 0; b < budgets; ++b)
    a[diagonal[nodes - 1 + b]] -= at.rest[b] / at.budgetPrice[b];
  for (int32_t i = 0; i < nodes - 1 + budgets; ++i)
    a[diagonal[i]] += i < nodes - 1 ? regularization : -regularization;
}

void Newton::solve(const Point &at, const Targets &targets, Point &direction) {
  setRight(at, targets);
  system->solve(right);
  setDirection(at, targets, direction);
}

void Newton::setRight(const Point &at, const Targets &targets) {
  for (int32_t v = 1; v < nodes; ++v)
    right[v - 1] = -flowResidual[v];
  for (int32_t b = 0; b < budgets; ++b)
    right[nodes - 1 + b] =
        restResidual[b] - targets.budget[b] / at.budgetPrice[b];
  for (int32_t e = 0; e < edges; ++e) {
    const PathProgram::Edge &edge = program.edges[e];
    double push = targets.slack[e] / at.slack[e] - theta[e] * slackResidual[e];
    if (savings[e] > 0) {
      shift[e] = yResidual[e] + savings[e] * push + targets.y[e] / at.y[e];
      double step = eta[e] * shift[e];
      push -= theta[e] * savings[e] * step;
      for (int32_t b : edgeBudgets[e])
        if (b >= 0)
          right[nodes - 1 + b] -= step;
    }
    right[edge.to - 1] += push;
    if (edge.from > 0)
      right[edge.from - 1] -= push;
  }
}

void Newton::setDirection(const Point &at, const Targets &targets,
                          Point &direction) {
  direction.potential[0] = 0;
  std::copy(right.begin(), right.begin() + nodes - 1,
            direction.potential.begin() + 1);
  std::copy(right.begin() + nodes - 1, right.end(),
            direction.budgetPrice.begin());
  direction.rest = restResidual;
  for (int32_t e = 0; e < edges; ++e) {
    const PathProgram::Edge &edge = program.edges[e];
    double wider =
        direction.potential[edge.to] - direction.potential[edge.from];
    if (savings[e] > 0) {
      double prices = 0;
      for (int32_t b : edgeBudgets[e])
        if (b >= 0)
          prices += direction.budgetPrice[b];
      double step =
          eta[e] * (shift[e] - savings[e] * theta[e] * wider - prices);
      direction.y[e] = step;
      direction.price[e] = (targets.y[e] - at.price[e] * step) / at.y[e];
      for (int32_t b : edgeBudgets[e])
        if (b >= 0)
          direction.rest[b] -= step;
      wider += savings[e] * step;
    }
    direction.slack[e] = wider + slackResidual[e];
    direction.flow[e] =
        (targets.slack[e] - at.flow[e] * direction.slack[e]) / at.slack[e];
  }
}
