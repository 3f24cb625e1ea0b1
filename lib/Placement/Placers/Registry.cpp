//===- Registry.cpp - All placers by name -----------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Placers/Registry.h"
#include "Lp/Favourites.h"
#include "Placers/Baselines.h"
#include "Placers/Placers.h"
#include "Placers/Splits.h"

#include <algorithm>
#include <limits>

using namespace baechi::placement;
using namespace baechi::placement::placers;

namespace {

template <Fill fill> Proposals topo(const PlacerContext &context) {
  return {{ungrouped(context, fillInOrder(context.grouped, fill))}, ""};
}

template <bool limited> Proposals etf(const PlacerContext &context) {
  EarliestStart found = earliestStart(context.grouped, {}, limited);
  return {{ungrouped(context, found.device, found.start)}, ""};
}

template <bool limited> Proposals sct(const PlacerContext &context) {
  std::vector<int32_t> favourites =
      lp::favouriteChildren(context.grouped, context.solver,
                            context.options.solverSeconds, context.notes);
  EarliestStart found = earliestStart(context.grouped, favourites, limited);
  return {{ungrouped(context, found.device, found.start)}, ""};
}

/// Contiguous pieces for the objective that is asked for.
Proposals split(const PlacerContext &context) {
  const Model &model = context.model;
  std::vector<Assignment> found;
  if (context.options.objective == Objective::MaxLoad) {
    found = contiguousSplits(model, {});
    found.resize(std::min<size_t>(found.size(), 1));
  } else {
    Scheduler scheduler(model);
    found = fastestSplits(model, scheduler, 1);
  }
  if (found.empty()) {
    context.notes.push_back("split: no contiguous pieces keep the pins and the "
                            "resident bytes; devices are filled in order");
    return topo<Fill::Uniform>(context);
  }
  return {{{"", std::move(found.front())}}, ""};
}

} // namespace

const std::vector<Placer> &baechi::placement::placers::allPlacers() {
  constexpr int32_t anySize = std::numeric_limits<int32_t>::max();
  // About a tenth of a second.
  constexpr int32_t fewUnits = 4000, veryFewUnits = 400;
  static const std::vector<Placer> placers{
      {.name = "mtopo",
       .description = "m-TOPO: devices filled in topological order, each up "
                      "to an even share",
       .candidateUpTo = anySize,
       .propose = topo<Fill::Uniform>},
      {.name = "mtopo-nonuniform",
       .description = "m-TOPO: devices filled in topological order, each up "
                      "to its memory",
       .candidateUpTo = anySize,
       .propose = topo<Fill::NonUniform>},
      {.name = "metf",
       .description = "m-ETF: the operator and device that can start first",
       .candidateUpTo = anySize,
       .propose = etf<true>},
      {.name = "msct",
       .description = "m-SCT: m-ETF that waits for favourite children",
       .candidateUpTo = anySize,
       .propose = sct<true>},
      {.name = "etf",
       .description = "ETF: m-ETF without a look at memory",
       .ignoresMemory = true,
       .alone = true,
       .candidateUpTo = fewUnits,
       .propose = etf<false>},
      {.name = "sct",
       .description = "SCT: m-SCT without a look at memory",
       .ignoresMemory = true,
       .alone = true,
       .candidateUpTo = fewUnits,
       .propose = sct<false>},
      {.name = "single",
       .description = "the best device alone",
       .baseline = true,
       .alone = true,
       .candidateUpTo = anySize,
       .propose = proposeSingle},
      {.name = "mostly-single",
       .description = "one device, and the fastest for what cannot run there",
       .baseline = true,
       .candidateUpTo = anySize,
       .propose = proposeMostlySingle},
      {.name = "round-robin",
       .description = "groups on the devices in turn",
       .baseline = true,
       .candidateUpTo = fewUnits,
       .propose = proposeRoundRobin},
      {.name = "even-split",
       .description = "the list of layers cut into even contiguous pieces",
       .baseline = true,
       .candidateUpTo = anySize,
       .propose = proposeEvenSplit},
      {.name = "split",
       .description = "contiguous pieces, cut by a dynamic program",
       .baseline = true,
       .candidateUpTo = veryFewUnits,
       .propose = split},
      {.name = "expert",
       .description = "the devices that an expert's rules give to names",
       .baseline = true,
       .candidateUpTo = anySize,
       .propose = proposeExpert},
      {.name = "min-cut",
       .description = "a balanced partition that cuts little traffic (Scotch)",
       .baseline = true,
       .candidateUpTo = fewUnits,
       .propose = proposeMinCut},
      {.name = "annealing",
       .description = "simulated annealing of the groups' devices",
       .baseline = true,
       .candidateUpTo = veryFewUnits,
       .propose = proposeAnnealing}};
  return placers;
}

const Placer *baechi::placement::placers::placerNamed(std::string_view name) {
  const auto &placers = allPlacers();
  auto it = std::find_if(placers.begin(), placers.end(),
                         [&](const Placer &p) { return p.name == name; });
  return it == placers.end() ? nullptr : &*it;
}

Proposal
baechi::placement::placers::ungrouped(const PlacerContext &context,
                                      const Assignment &device,
                                      const std::vector<int64_t> &start) {
  Proposal proposal;
  proposal.device = grouping::expand(context.coarsening, device);
  if (!start.empty())
    for (int32_t node : context.coarsening.node)
      proposal.start.push_back(start[node]);
  return proposal;
}
