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

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

using namespace baechi::placement;
using namespace baechi::placement::placers;

namespace {

template <Fill fill> Proposals topo(const PlacerContext &context) {
  return {{ungrouped(context.coarsening, fillInOrder(context.grouped, fill))},
          ""};
}

/// ETF's schedule, or SCT's. Of a multilevel grouping one for every level, also
/// looking ahead, and the coarsest level: all in one group.
template <bool favours, bool limited>
Proposals earliest(const PlacerContext &context) {
  const auto &steps = context.options.grouping;
  bool isMultilevel = limited && std::find(steps.begin(), steps.end(),
                                           "multilevel") != steps.end();
  Proposals result;
  auto propose = [&](const Model &grouped,
                     const grouping::Coarsening &coarsening,
                     const std::string &level,
                     std::vector<std::string> &notes) {
    std::vector<int32_t> favourites;
    if (favours)
      favourites = lp::favouriteChildren(grouped, context.solver,
                                         context.options.solverSeconds, notes);
    std::vector<std::pair<Ahead, std::string>> ways{{Ahead::No, ""}};
    if (isMultilevel)
      ways.emplace_back(Ahead::Always, "ahead");
    if (isMultilevel && favours)
      ways.emplace_back(Ahead::UnlessFavourite, "favour");
    for (const auto &[ahead, way] : ways) {
      EarliestStart found =
          earliestStart(grouped, favourites, limited, {}, ahead);
      Proposal proposal = ungrouped(coarsening, found.device, found.start);
      proposal.variant = level;
      if (!level.empty() && !way.empty())
        proposal.variant += ':';
      proposal.variant += way;
      // Of many tries those that fit are enough.
      proposal.mayRepair = proposal.variant.empty();
      result.list.push_back(std::move(proposal));
    }
  };
  propose(context.grouped, context.coarsening, "", context.notes);
  std::vector<std::string> ignored;
  for (size_t k = 0; k < context.levels.size(); ++k)
    propose(context.levels[k].grouped, context.levels[k].coarsening,
            fmt::format("level{}", k + 2), ignored);
  if (!isMultilevel)
    return result;
  Proposals coarsest = proposeSingle(context);
  for (Proposal &alone : coarsest.list) {
    alone.variant = "single:" + alone.variant;
    alone.mayRepair = false;
    result.list.push_back(std::move(alone));
  }
  return result;
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
       .propose = earliest<false, true>},
      {.name = "msct",
       .description = "m-SCT: m-ETF that waits for favourite children",
       .candidateUpTo = anySize,
       .propose = earliest<true, true>},
      {.name = "etf",
       .description = "ETF: m-ETF without a look at memory",
       .ignoresMemory = true,
       .alone = true,
       .candidateUpTo = fewUnits,
       .propose = earliest<false, false>},
      {.name = "sct",
       .description = "SCT: m-SCT without a look at memory",
       .ignoresMemory = true,
       .alone = true,
       .candidateUpTo = fewUnits,
       .propose = earliest<true, false>},
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
      {.name = "post-adjusted",
       .description = "m-ETF without a look at groups, which follow one of "
                      "their operators afterwards",
       .baseline = true,
       .propose = proposePostAdjusted},
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
baechi::placement::placers::ungrouped(const grouping::Coarsening &coarsening,
                                      const Assignment &device,
                                      const std::vector<int64_t> &start) {
  Proposal proposal;
  proposal.device = grouping::expand(coarsening, device);
  if (!start.empty())
    for (int32_t node : coarsening.node)
      proposal.start.push_back(start[node]);
  return proposal;
}
