//===- PlanCuts.cpp - Which operators are cut, and where pieces run -------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Cuts/PlanCuts.h"
#include "Baechi/Placement/Session/PlaceBriefly.h"
#include "Cuts/CutProgram.h"
#include "Cuts/Screen.h"
#include "Cuts/WorkBound.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

using namespace baechi::placement;
using namespace baechi::placement::cuts;

namespace {

/// Where all ways there are can be looked at, they are.
constexpr double fewWays = 64;
/// Of them, placed with the whole budget; of small graphs all, which the search
/// is soon done with.
constexpr size_t finalists = 3, smallGraph = 100;
/// Beside them, of those that people would write: all operators in ways of one
/// name, such as pure data parallelism.
constexpr size_t uniformFinalists = 2;
/// A larger graph is searched as it is only where pieces could be worse.
constexpr size_t mediumGraph = 4000;
/// More pieces on more devices are searched once: machines that can do less, of
/// which there are many then, are seldom better and take as long each.
constexpr size_t manyPieces = 20'000, fewDevices = 2;
/// Operators of all graphs that are looked at together.
constexpr int64_t screened = 100'000;

/// So near a lower bound a search of a large graph ends, too (isNearlyDone).
bool isNear(int64_t ns, int64_t bound) { return ns - bound <= bound / 10'000; }

class Planner {
public:
  Planner(const Problem &problem, const Alternatives &alternatives,
          const PlaceOptions &options, CutPlan &plan)
      : problem(problem), alternatives(alternatives), options(options),
        plan(plan) {}

  /// Sets the plan to the graph as it is; false: there is something wrong.
  bool begin() {
    setWhole();
    auto errors = check(problem);
    if (errors.empty())
      errors = checkAlternatives(problem.graph, alternatives);
    plan.result.error = fmt::format("{}", fmt::join(errors, "\n"));
    return errors.empty();
  }

  void placeIn(const Ways &ways) {
    if (!begin())
      return;
    plan.ways = ways;
    Expansion expansion;
    plan.result.error = expand(problem.graph, alternatives, ways, expansion);
    if (!plan.result.error.empty())
      return;
    plan.problem.graph = std::move(expansion.graph);
    plan.origins = std::move(expansion.origins);
    plan.result = place(plan.problem, withLanes(ways));
    plan.placed = 1;
  }

  void run() {
    if (!begin())
      return;
    const bool isBrief = alternatives.any() &&
                         problem.graph.ops.size() > mediumGraph &&
                         options.objective == Objective::Makespan &&
                         options.budget.kind == Budget::Kind::Automatic;
    plan.result =
        isBrief ? placeByPlacers(problem, options) : place(problem, options);
    oneDeviceNs = plan.result.singleDeviceNs;
    if (plan.result.placement)
      plan.wholeNs = objectiveNs(plan.result, options.objective);
    const int64_t wholeBound = plan.result.lowerBoundNs;
    if (isCancelled() || !alternatives.any())
      return;
    if (isBrief) {
      work.emplace(problem, alternatives);
      if (plan.wholeNs && isNear(*plan.wholeNs, work->ofAll()))
        return;
    }
    values[plan.ways] = never; // It has its placement.
    phase("ways");
    proposeAll();
    phase("placing pieces");
    placeBest(/*searchesOne=*/isBrief);
    if (isBrief && !(plan.result.placement &&
                     isNear(plan.result.placement->makespanNs, wholeBound)))
      completeWhole();
  }

private:
  /// The whole budget for the graph as it is.
  void completeWhole() {
    if (isCancelled())
      return;
    PlaceResult result = place(problem, options);
    if (!result.placement) {
      if (!plan.result.placement)
        plan.result = std::move(result);
      return;
    }
    plan.wholeNs = objectiveNs(result, options.objective);
    if (plan.result.placement &&
        objectiveNs(plan.result, options.objective) < *plan.wholeNs)
      return;
    setWhole();
    plan.result = std::move(result);
  }

  void setWhole() {
    plan.ways.assign(problem.graph.ops.size(), -1);
    plan.problem = problem;
    plan.origins.clear();
    for (size_t op = 0; op < plan.ways.size(); ++op)
      plan.origins.push_back({static_cast<int32_t>(op), -1, false});
  }

  void phase(const char *name) const {
    if (options.progress)
      options.progress(name);
  }
  bool isCancelled() const { return options.cancelled && options.cancelled(); }

  /// Pieces of one lane on one device: what the proposals took for granted.
  std::vector<ExpertRule> lanes(const Ways &ways) const {
    std::vector<int32_t> devices = laneDevices(problem.machine);
    size_t most = 0;
    for (size_t op = 0; op < ways.size(); ++op)
      if (ways[op] >= 0)
        most = std::max(most, alternatives.of[op][ways[op]].pieces.size());
    std::vector<ExpertRule> rules;
    for (size_t lane = 0; lane < devices.size(); ++lane) {
      std::vector<size_t> numbers;
      for (size_t p = lane; p < most; p += devices.size())
        numbers.push_back(p);
      if (!numbers.empty())
        rules.push_back({fmt::format("#({})$", fmt::join(numbers, "|")),
                         problem.machine.devices[devices[lane]].name});
    }
    return rules;
  }

  PlaceOptions withLanes(const Ways &ways) const {
    PlaceOptions whole = options;
    if (whole.expert.empty())
      whole.expert = lanes(ways);
    return whole;
  }

  /// The graph in these ways; none where it would be too large. Of a large
  /// graph mostly the last one that was looked at is placed, too.
  struct Expanded {
    Ways ways;
    Problem problem;
    std::vector<Expansion::Origin> origins;
  };
  std::optional<Expanded> expandTo(const Ways &ways) {
    if (last && last->ways == ways)
      return std::exchange(last, std::nullopt);
    last.reset();
    Expansion expansion;
    if (!expand(problem.graph, alternatives, ways, expansion).empty())
      return std::nullopt;
    return Expanded{ways,
                    {std::move(expansion.graph), problem.machine},
                    std::move(expansion.origins)};
  }

  /// What ways are worth without a search. Each is looked at once.
  int64_t value(const Ways &ways) {
    auto [it, isNew] = values.emplace(ways, never);
    if (!isNew || isCancelled())
      return it->second;
    ++plan.proposed;
    if (work && plan.wholeNs && work->of(ways) >= *plan.wholeNs) {
      // As it would be looked at: whatever it is, it is not the answer.
      spent += work->pieces(ways);
      return never;
    }
    last = expandTo(ways);
    if (!last)
      return never;
    spent += static_cast<int64_t>(last->problem.graph.ops.size());
    it->second = screen(last->problem, last->origins, options.objective);
    return it->second;
  }

  bool mayLookOn() const { return spent < screened && !isCancelled(); }

  void proposeAll() {
    double all = 1;
    for (const auto &of : alternatives.of)
      all = std::min(all * static_cast<double>(of.size() + 1), 1e9);
    if (all <= fewWays) {
      plan.isExhaustive = true;
      Ways ways(problem.graph.ops.size(), -1);
      enumerate(ways, 0);
      return;
    }
    CutProgram program(problem, alternatives, options.objective);
    bool isFirst = true;
    for (const Weights &weights :
         allWeights(problem.machine, options.objective,
                    plan.wholeNs.value_or(plan.result.lowerBoundNs)))
      if (mayLookOn()) {
        if (std::optional<Ways> ways = program.propose(weights))
          value(*ways);
        // Before the proposals have used up what may be looked at.
        if (std::exchange(isFirst, false))
          proposeUniform();
      }
    improve();
  }

  /// What people would write: all operators in ways of one name, where most
  /// have it.
  void proposeUniform() {
    auto choosing =
        std::count_if(alternatives.of.begin(), alternatives.of.end(),
                      [](const auto &of) { return !of.empty(); });
    for (const auto &[name, all] : byName()) {
      if (!mayLookOn())
        return;
      if (2 * static_cast<int64_t>(all.size()) <= choosing)
        continue;
      Ways ways(problem.graph.ops.size(), -1);
      for (auto [op, way] : all)
        ways[op] = way;
      value(ways);
      uniform.insert(std::move(ways));
    }
  }

  void enumerate(Ways &ways, size_t op) {
    if (op == ways.size()) {
      value(ways);
      return;
    }
    auto count = static_cast<int32_t>(alternatives.of[op].size());
    for (int32_t way = -1; way < count; ++way) {
      ways[op] = way;
      enumerate(ways, op + 1);
    }
    ways[op] = -1;
  }

  /// The operators that have a way of a name.
  std::map<std::string, std::vector<std::pair<size_t, int32_t>>>
  byName() const {
    std::map<std::string, std::vector<std::pair<size_t, int32_t>>> named;
    for (size_t op = 0; op < alternatives.of.size(); ++op)
      for (size_t way = 0; way < alternatives.of[op].size(); ++way)
        named[alternatives.of[op][way].name].emplace_back(
            op, static_cast<int32_t>(way));
    return named;
  }

  std::vector<std::pair<int64_t, Ways>> ranking() const {
    std::vector<std::pair<int64_t, Ways>> found;
    for (const auto &[ways, ns] : values)
      if (ns < never)
        found.emplace_back(ns, ways);
    std::sort(found.begin(), found.end());
    return found;
  }

  /// Other ways of single operators, and of all that have a way of the same
  /// name, as long as they are better without a search.
  void improve() {
    auto found = ranking();
    if (found.empty())
      return;
    auto [best, ways] = found.front();
    auto keep = [&](Ways changed) {
      if (int64_t ns = value(changed); ns < best) {
        best = ns;
        ways = std::move(changed);
      }
    };
    for (const auto &[name, all] : byName())
      if (mayLookOn()) {
        Ways changed = ways;
        for (auto [op, way] : all)
          changed[op] = way;
        keep(std::move(changed));
      }
    for (size_t op = 0; op < ways.size(); ++op) {
      auto count = static_cast<int32_t>(alternatives.of[op].size());
      for (int32_t way = -1; count > 0 && way < count && mayLookOn(); ++way)
        if (way != ways[op]) {
          Ways changed = ways;
          changed[op] = way;
          keep(std::move(changed));
        }
    }
  }

  /// Those that are best as the placers have them first; none where the first
  /// is proven not to better the graph as it is. Others are left out where
  /// their bounds are no better than what is known of the first.
  void orderByPlacers(std::vector<std::pair<int64_t, Ways>> &found) {
    int64_t least = never, bound = 0;
    auto placeOne = [&](std::pair<int64_t, Ways> &each, int64_t most) {
      each.first = never;
      std::optional<Expanded> expanded = expandTo(each.second);
      if (!expanded || isCancelled())
        return;
      PlaceResult result =
          placeByPlacers(expanded->problem, withLanes(each.second), most);
      if (!result.placement)
        return;
      ++plan.placed;
      each.first = objectiveNs(result, options.objective);
      if (each.first < least) {
        least = each.first;
        bound = result.lowerBoundNs;
      }
    };
    const int64_t first = found.front().first;
    for (auto it = std::next(found.begin()); it != found.end(); ++it)
      placeOne(*it, std::min(least, first));
    if (least == never && first < never) {
      found.resize(1);
      return;
    }
    placeOne(found.front(), least);
    if (least < never && plan.wholeNs && bound >= *plan.wholeNs) {
      found.clear();
      return;
    }
    std::stable_sort(
        found.begin(), found.end(),
        [](const auto &a, const auto &b) { return a.first < b.first; });
  }

  /// The whole budget for those that were best without it; of a large graph for
  /// the one that the placers place best, as the search takes seconds.
  void placeBest(bool searchesOne) {
    auto found = ranking();
    if (found.empty() && !plan.result.placement) {
      // Without a search nothing fits; with one it may.
      for (const auto &[ways, ns] : values)
        if (found.size() < finalists && ways != plan.ways)
          found.emplace_back(ns, ways);
    }
    bool placesAll = plan.isExhaustive &&
                     problem.graph.ops.size() <= smallGraph &&
                     options.budget.kind != Budget::Kind::Seconds;
    if (found.size() > finalists && !placesAll) {
      size_t more = 0;
      auto isOut = [&](const std::pair<int64_t, Ways> &each) {
        return !uniform.count(each.second) || ++more > uniformFinalists;
      };
      found.erase(std::remove_if(found.begin() + finalists, found.end(), isOut),
                  found.end());
    }
    if (searchesOne && found.size() > 1)
      orderByPlacers(found);
    std::optional<int64_t> best = plan.wholeNs;
    bool isPlaced = false;
    for (const auto &[ns, ways] : found) {
      if (isCancelled() || (searchesOne && isPlaced))
        break;
      std::optional<Expanded> expanded = expandTo(ways);
      if (!expanded)
        continue;
      bool isOnce = searchesOne &&
                    problem.machine.devices.size() > fewDevices &&
                    expanded->problem.graph.ops.size() > manyPieces;
      PlaceResult result = (isOnce ? placeOnce : placeBelow)(
          expanded->problem, withLanes(ways),
          searchesOne && best ? *best : never);
      ++plan.placed;
      if (!result.placement)
        continue;
      isPlaced = true;
      int64_t reached = objectiveNs(result, options.objective);
      if (best && reached >= *best)
        continue;
      best = reached;
      // One device needs no pieces, and mostly gains nothing from them.
      if (oneDeviceNs)
        result.singleDeviceNs =
            std::min(*oneDeviceNs, result.singleDeviceNs.value_or(never));
      plan.ways = ways;
      plan.problem = std::move(expanded->problem);
      plan.origins = std::move(expanded->origins);
      plan.result = std::move(result);
    }
  }

  const Problem &problem;
  const Alternatives &alternatives;
  const PlaceOptions &options;
  CutPlan &plan;
  std::map<Ways, int64_t> values;
  std::set<Ways> uniform;             ///< of them, those of one name
  std::optional<Expanded> last;       ///< of a value
  std::optional<int64_t> oneDeviceNs; ///< of the graph as it is
  std::optional<WorkBound> work;      ///< of a large graph
  int64_t spent = 0;
};

} // namespace

CutPlan baechi::placement::placeWays(const Problem &problem,
                                     const Alternatives &alternatives,
                                     const Ways &ways,
                                     const PlaceOptions &options) {
  CutPlan plan;
  Planner(problem, alternatives, options, plan).placeIn(ways);
  return plan;
}

CutPlan baechi::placement::planCuts(const Problem &problem,
                                    const Alternatives &alternatives,
                                    const PlaceOptions &options) {
  CutPlan plan;
  if (alternatives.any() && options.objective == Objective::Period) {
    plan.result.error = "--objective=period chooses no ways to cut operators: "
                        "name the ways, or "
                        "leave them whole (--alternatives=FILE or none)";
    return plan;
  }
  Planner(problem, alternatives, options, plan).run();
  return plan;
}
