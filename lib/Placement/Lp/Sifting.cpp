//===- Sifting.cpp - Solves with the edges that matter --------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lp/Sifting.h"
#include "Lp/InteriorPoint.h"
#include "Lp/Presolve.h"

#include <algorithm>
#include <cmath>
#include <memory>

using namespace baechi::placement::lp;

namespace {

/// The program on the kept edges: contracted, split, a solver per part.
class Core {
public:
  Core(const PathProgram &program, std::span<const uint8_t> keep,
       const WaterLevels &levels, std::span<const double> start);

  bool solve(double tolerance, Work &work);
  double lower() const;
  /// The y of the whole program; 0 on edges that are not kept.
  std::vector<double> matching(size_t numEdges) const;

private:
  struct Part {
    PathProgram program;
    PathSolution solution;
    std::unique_ptr<InteriorPoint> solver; ///< none: solved at once
  };
  Contraction contraction;
  std::vector<Part> parts;
};

Core::Core(const PathProgram &program, std::span<const uint8_t> keep,
           const WaterLevels &levels, std::span<const double> start)
    : contraction(contract(program, keep, levels.earliest, levels.rest)) {
  const auto &edges = contraction.program.edges;
  for (PathProgram &program : split(contraction.program))
    parts.push_back({std::move(program), {}, nullptr});
  for (Part &part : parts) {
    part.solution = waterSolution(part.program, waterLevels(part.program));
    if (part.solution.within(1e-10))
      continue;
    std::vector<double> from(part.program.edges.size(), 0);
    for (int32_t e = 0; e < part.program.numEdges(); ++e)
      if (int32_t old = edges[part.program.edges[e].origin].origin; old >= 0)
        from[e] = start[old];
    scaleIntoBudgets(part.program, from);
    part.solver =
        std::make_unique<InteriorPoint>(part.program, std::move(from));
  }
}

bool Core::solve(double tolerance, Work &work) {
  for (Part &part : parts)
    if (part.solver && !part.solver->solve(tolerance, work))
      return false;
  return true;
}

double Core::lower() const {
  double sum = 0;
  for (const Part &part : parts)
    sum += part.solver
               ? std::max(part.solver->solution().lower, part.solution.lower)
               : part.solution.lower;
  return sum;
}

std::vector<double> Core::matching(size_t numEdges) const {
  std::vector<double> y(numEdges, 0);
  for (int32_t e : contraction.certain)
    y[e] = 1;
  for (const Part &part : parts) {
    const PathSolution &best =
        part.solver ? part.solver->solution() : part.solution;
    for (int32_t e = 0; e < part.program.numEdges(); ++e) {
      const auto &edge =
          contraction.program.edges[part.program.edges[e].origin];
      if (edge.origin >= 0 && edge.saving > 0)
        y[edge.origin] = best.y[e];
    }
  }
  return y;
}

class Sifter {
public:
  Sifter(const PathProgram &program, const WaterLevels &levels)
      : program(program), levels(levels), keep(program.edges.size(), 0) {}

  PathSolution run(std::vector<double> start, double tolerance, Work &work);

private:
  double measure(const std::vector<double> &y);
  size_t admit(double above, size_t most);
  void useRests(std::vector<double> &y);

  const PathProgram &program;
  const WaterLevels &levels;
  std::vector<uint8_t> keep;
  std::vector<double> head, tail, through;
};

/// The value of y; fills the longest path through every edge.
double Sifter::measure(const std::vector<double> &y) {
  longestFromSource(program, y, head);
  longestToSink(program, y, tail);
  through.resize(program.edges.size());
  for (int32_t e = 0; e < program.numEdges(); ++e) {
    const PathProgram::Edge &edge = program.edges[e];
    through[e] =
        head[edge.from] + edge.length - edge.saving * y[e] + tail[edge.to];
  }
  return head[program.sink()];
}

/// Keeps edges on paths longer than \p above, the longest paths first, about
/// \p most of them. Returns how many.
size_t Sifter::admit(double above, size_t most) {
  std::vector<double> candidates;
  for (int32_t e = 0; e < program.numEdges(); ++e)
    if (!keep[e] && through[e] > above)
      candidates.push_back(through[e]);
  if (candidates.size() > most) {
    auto nth = candidates.begin() + static_cast<ptrdiff_t>(most);
    std::nth_element(candidates.begin(), nth, candidates.end(),
                     std::greater<>());
    // All edges of a path come together, whatever the rounding.
    above = *nth * (1 - 1e-12);
  }
  size_t added = 0;
  for (int32_t e = 0; e < program.numEdges(); ++e)
    if (!keep[e] && through[e] > above) {
      keep[e] = 1;
      ++added;
    }
  return added;
}

/// What the budgets have left goes to the edges on the longest paths.
void Sifter::useRests(std::vector<double> &y) {
  scaleIntoBudgets(program, y);
  measure(y);
  std::vector<double> out(program.numBudgets, 1), in(program.numNodes, 1);
  for (int32_t e = 0; e < program.numEdges(); ++e) {
    const PathProgram::Edge &edge = program.edges[e];
    if (edge.saving <= 0)
      continue;
    out[edge.outBudget] -= y[e];
    in[edge.to] -= y[e];
  }
  std::vector<int32_t> order;
  for (int32_t e = 0; e < program.numEdges(); ++e) {
    const PathProgram::Edge &edge = program.edges[e];
    if (edge.saving > 0 && out[edge.outBudget] > 1e-9 && in[edge.to] > 1e-9)
      order.push_back(e);
  }
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return through[a] != through[b] ? through[a] > through[b] : a < b;
  });
  for (int32_t e : order) {
    const PathProgram::Edge &edge = program.edges[e];
    double more = std::min(out[edge.outBudget], in[edge.to]);
    if (more <= 0)
      continue;
    y[e] += more;
    out[edge.outBudget] -= more;
    in[edge.to] -= more;
  }
}

PathSolution Sifter::run(std::vector<double> start, double tolerance,
                         Work &work) {
  constexpr size_t few = 500;
  PathSolution best;
  best.upper = measure(start);
  best.y = std::move(start);
  best.lower = levels.bound;
  size_t m = program.edges.size(), kept = 0;
  if (m <= few) {
    std::fill(keep.begin(), keep.end(), 1);
    kept = m;
  } else {
    kept = admit(-INFINITY, std::max(few, m / 10));
  }
  std::vector<double> y = best.y;
  std::unique_ptr<Core> core;
  bool settled = kept == m;
  for (int32_t round = 0; round < 50; ++round) {
    double rebuilt = core ? 0 : Work::orderPerEdge * static_cast<double>(kept);
    if (!work.spend(Work::siftPerEdge * static_cast<double>(m) + rebuilt))
      break;
    if (!core)
      core = std::make_unique<Core>(program, keep, levels, y);
    // Early rounds need not be exact; the last ones should be the last.
    double gap = (best.upper - best.lower) / best.upper;
    double wanted =
        settled ? tolerance / 2 : std::clamp(gap / 10, tolerance / 2, 1e-2);
    bool enough = core->solve(wanted, work);
    best.lower = std::max(best.lower, core->lower());
    std::vector<double> fresh = core->matching(m);
    useRests(fresh);
    double value = measure(fresh);
    y = fresh;
    if (value > best.upper) {
      // Separate from half-way to the best: fewer edges, and better ones.
      for (size_t e = 0; e < m; ++e)
        y[e] = (y[e] + best.y[e]) / 2;
      value = measure(y);
    }
    if (value < best.upper) {
      best.upper = value;
      best.y = y;
    }
    if (!enough || best.within(tolerance) || (settled && kept == m))
      break;
    // What is violated most, and the rest only once the solution is near.
    double excess = value - best.lower;
    bool near = excess <= 1e-3 * value;
    size_t most = std::max(few, kept / 2);
    size_t added = admit(near ? best.lower : best.lower + excess / 2, most);
    if (added == 0) {
      measure(fresh);
      added = admit(best.lower, most);
    }
    kept += added;
    if (added > 0)
      core.reset();
    else if (settled)
      break;
    settled = added == 0 || (near && added * 200 <= kept);
  }
  return best;
}

} // namespace

PathSolution baechi::placement::lp::sift(const PathProgram &program,
                                         const WaterLevels &levels,
                                         std::vector<double> start,
                                         double tolerance, Work &work) {
  return Sifter(program, levels).run(std::move(start), tolerance, work);
}
