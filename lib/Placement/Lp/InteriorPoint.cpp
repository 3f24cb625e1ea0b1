//===- InteriorPoint.cpp - Solves a path program --------------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lp/InteriorPoint.h"

#include <algorithm>
#include <cmath>

using namespace baechi::placement::lp;

InteriorPoint::InteriorPoint(const PathProgram &program,
                             std::vector<double> start)
    : program(program), newton(program), edges(program.numEdges()),
      budgets(newton.numBudgets()) {
  best.offer(program, std::move(start));
}

/// Calls visit(primal, dual, primal's step, dual's step, target) for every
/// pair whose product vanishes at the optimum.
template <typename Self, typename Visit>
void InteriorPoint::forEachPair(Self &self, Visit visit) {
  auto &at = self.at;
  auto &to = self.targets;
  const Point &step = self.step;
  for (int32_t e = 0; e < self.edges; ++e) {
    visit(at.slack[e], at.flow[e], step.slack[e], step.flow[e], to.slack[e]);
    if (self.program.edges[e].saving > 0)
      visit(at.y[e], at.price[e], step.y[e], step.price[e], to.y[e]);
  }
  for (int32_t b = 0; b < self.budgets; ++b)
    visit(at.rest[b], at.budgetPrice[b], step.rest[b], step.budgetPrice[b],
          to.budget[b]);
}

//===----------------------------------------------------------------------===//
// The start: well inside, all products about alike
//===----------------------------------------------------------------------===//

void InteriorPoint::begin() {
  newton.allocate();
  int32_t n = program.numNodes;
  at.resize(n, edges, budgets);
  step.resize(n, edges, budgets);
  before.resize(n, edges, budgets);
  targets.resize(edges, budgets);
  spreadMatching();
  // Lengths in units of the longest path's mean edge.
  std::vector<int32_t> hops(n, 0);
  for (const PathProgram::Edge &edge : program.edges)
    hops[edge.to] = std::max(hops[edge.to], hops[edge.from] + 1);
  unit = valueOf(program, at.y) / hops[n - 1];
  newton.setLengths(unit);
  // What every edge has at least, so that the longest path grows by a tenth.
  constexpr double room = 0.1;
  setPotentials(room);
  setPrices(spreadFlow(room));
}

/// The start's y, moved towards an even share of every budget.
void InteriorPoint::spreadMatching() {
  constexpr double spread = 0.1;
  std::vector<int32_t> members(budgets, 0);
  for (int32_t e = 0; e < edges; ++e)
    for (int32_t b : newton.budgetsOf(e))
      if (b >= 0)
        ++members[b];
  std::fill(at.rest.begin(), at.rest.end(), 1.0);
  pairs = edges + budgets;
  for (int32_t e = 0; e < edges; ++e) {
    if (program.edges[e].saving <= 0)
      continue;
    ++pairs;
    int32_t most = 1;
    for (int32_t b : newton.budgetsOf(e))
      if (b >= 0)
        most = std::max(most, members[b]);
    at.y[e] = (1 - spread) * best.y[e] + spread / (most + 1);
    for (int32_t b : newton.budgetsOf(e))
      if (b >= 0)
        at.rest[b] -= at.y[e];
  }
}

/// Every node midway between its earliest and its latest time; slacks follow.
void InteriorPoint::setPotentials(double room) {
  int32_t last = program.sink();
  auto length = [&](int32_t e) {
    return newton.length(e) - newton.saving(e) * at.y[e];
  };
  std::vector<double> early(last + 1, -INFINITY), late(last + 1, -INFINITY);
  early[0] = late[last] = 0;
  for (int32_t e = 0; e < edges; ++e) {
    const PathProgram::Edge &edge = program.edges[e];
    early[edge.to] =
        std::max(early[edge.to], early[edge.from] + length(e) + room);
  }
  for (int32_t e = edges; e-- > 0;) {
    const PathProgram::Edge &edge = program.edges[e];
    late[edge.from] =
        std::max(late[edge.from], late[edge.to] + length(e) + room);
  }
  for (int32_t v = 1; v < last; ++v)
    at.potential[v] = (early[v] + early[last] - late[v]) / 2;
  at.potential[last] = early[last];
  for (int32_t e = 0; e < edges; ++e) {
    const PathProgram::Edge &edge = program.edges[e];
    at.slack[e] = std::max(room, at.potential[edge.to] -
                                     at.potential[edge.from] - length(e));
  }
}

/// A unit of flow, spread over the edges out of a node by their slacks, nowhere
/// near 0. Returns the mean product with the slacks.
double InteriorPoint::spreadFlow(double room) {
  constexpr double least = 1e-5;
  std::vector<double> arrived(program.numNodes, 0);
  arrived[0] = 1;
  double product = 0;
  for (int32_t v = 0; v < program.sink(); ++v) {
    int32_t begin = program.firstOut[v], end = program.firstOut[v + 1];
    double weights = 0;
    for (int32_t e = begin; e < end; ++e)
      weights += room / at.slack[e];
    for (int32_t e = begin; e < end; ++e) {
      double flow = arrived[v] * room / at.slack[e] / weights;
      arrived[program.edges[e].to] += flow;
      at.flow[e] = std::max(flow, least);
      product += at.flow[e] * at.slack[e];
    }
  }
  return product / edges;
}

void InteriorPoint::setPrices(double product) {
  for (int32_t b = 0; b < budgets; ++b)
    at.budgetPrice[b] = product / at.rest[b];
  for (int32_t e = 0; e < edges; ++e) {
    const auto &both = newton.budgetsOf(e);
    int count = (both[0] >= 0) + (both[1] >= 0);
    double worth = newton.saving(e) * at.flow[e];
    for (int32_t b : both)
      if (b >= 0)
        at.budgetPrice[b] =
            std::max(at.budgetPrice[b], worth / count + product);
  }
  for (int32_t e = 0; e < edges; ++e) {
    if (program.edges[e].saving <= 0)
      continue;
    double price = -newton.saving(e) * at.flow[e];
    for (int32_t b : newton.budgetsOf(e))
      if (b >= 0)
        price += at.budgetPrice[b];
    at.price[e] = std::max(0.1 * product, price);
  }
}

//===----------------------------------------------------------------------===//
// The iteration
//===----------------------------------------------------------------------===//

/// The sum of all products after \p steps along the direction.
double InteriorPoint::products(const Steps &steps) const {
  double sum = 0;
  forEachPair(*this, [&](double p, double d, double dp, double dd, double) {
    sum += (p + steps.primal * dp) * (d + steps.dual * dd);
  });
  return sum;
}

/// The longest steps, at most \p most, that keep everything positive.
InteriorPoint::Steps InteriorPoint::longest(double most) const {
  Steps steps{most, most};
  forEachPair(*this, [&](double p, double d, double dp, double dd, double) {
    if (p + steps.primal * dp < 0)
      steps.primal = -p / dp;
    if (d + steps.dual * dd < 0)
      steps.dual = -d / dd;
  });
  return steps;
}

/// Targets: all products equal to \p product. The second-order terms of the
/// direction found so far are taken out, up to \p trust.
void InteriorPoint::aimAt(double product, double trust) {
  forEachPair(*this,
              [&](double p, double d, double dp, double dd, double &target) {
                target = product - p * d - std::clamp(dp * dd, -trust, trust);
              });
}

/// Gondzio's corrector: products that would be far off after slightly longer
/// steps are pulled back.
void InteriorPoint::aimCloser(const Steps &steps, double product) {
  double primal = std::min(1.0, steps.primal + 0.3);
  double dual = std::min(1.0, steps.dual + 0.3);
  double low = 0.1 * product, high = 10 * product;
  forEachPair(*this,
              [&](double p, double d, double dp, double dd, double &target) {
                double reached = (p + primal * dp) * (d + dual * dd);
                if (reached < low)
                  target += std::min(low - reached, high);
                else if (reached > high)
                  target += std::max(high - reached, -high);
              });
}

/// Predictor, corrector, and one more corrector where it lengthens the steps.
InteriorPoint::Steps InteriorPoint::direction(double gap) {
  double mean = gap / pairs;
  aimAt(0, 0);
  newton.factorAndSolve(at, targets, step);
  double reduction = products(longest(1)) / gap;
  double aim = std::max(reduction * reduction * reduction, 1e-4) * mean;
  aimAt(aim, 5 * std::max(mean, aim));
  newton.solve(at, targets, step);
  Steps steps = longest(1);
  aimCloser(steps, aim);
  std::swap(step, before);
  newton.solve(at, targets, step);
  Steps closer = longest(1);
  if (closer.primal + closer.dual < steps.primal + steps.dual)
    std::swap(step, before);
  // Not quite to the boundary.
  double share = std::clamp(1 - 10 * mean, 0.95, 0.9995);
  steps = longest(1 / share);
  return {share * steps.primal, share * steps.dual};
}

void InteriorPoint::advance(const Steps &steps) {
  for (size_t v = 0; v < at.potential.size(); ++v)
    at.potential[v] += steps.primal * step.potential[v];
  forEachPair(*this, [&](double &p, double &d, double dp, double dd, double) {
    p += steps.primal * dp;
    d += steps.dual * dd;
  });
}

/// Keeps the best feasible y and the best bound.
void InteriorPoint::certify() {
  std::vector<double> y = at.y;
  scaleIntoBudgets(program, y);
  best.offer(program, std::move(y));
  std::vector<double> prices(program.numBudgets, 0);
  for (int32_t b = 0; b < budgets; ++b)
    if (int32_t out = newton.outBudgetOf(b); out >= 0)
      prices[out] = at.budgetPrice[b] * unit;
  best.lower =
      std::max(best.lower, dualBound(program, at.flow, std::move(prices)));
}

bool InteriorPoint::solve(double tolerance, Work &work) {
  constexpr int32_t mostIterations = 120, patience = 10;
  if (stuck || best.within(tolerance))
    return true;
  if (!begun) {
    if (!work.spend(Work::orderPerEdge * edges + newton.factorWork()))
      return false;
    begin();
    begun = true;
  }
  double leastError = INFINITY;
  int32_t lastProgress = 0;
  for (int32_t k = 0; k < mostIterations; ++k) {
    double gap = products({0, 0});
    newton.findResiduals(at);
    double relative = gap / std::abs(at.potential.back());
    if (!std::isfinite(gap))
      break;
    if (relative < std::max(1e-4, 2 * tolerance)) {
      certify();
      if (best.within(tolerance))
        return true;
    }
    double error = std::max(
        {relative, newton.primalResidual() * 0.1, newton.dualResidual()});
    if (error < leastError) {
      leastError = error;
      lastProgress = k;
    } else if (k - lastProgress >= patience) {
      break;
    }
    if (!work.spend(newton.factorWork() + 3 * newton.solveWork() +
                    Work::iteratePerEdge * edges)) {
      certify();
      return false;
    }
    Steps steps = direction(gap);
    if (std::max(steps.primal, steps.dual) < 1e-6)
      break;
    advance(steps);
  }
  certify();
  stuck = true;
  return true;
}
