//===- EarliestStartTest.cpp - m-ETF and m-SCT against the rule -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The placers keep what could start next in queues that are corrected as links
/// get busier. Here the same rule is applied by looking at every pair of an
/// operator and a device in every step; both must agree to the nanosecond.
///
//===----------------------------------------------------------------------===//

#include "Model/Random.h"
#include "Placers/Placers.h"
#include "Placers/UrgencyTree.h"
#include "Schedule/Schedule.h"
#include "TestProblems.h"

#include <gmock/gmock.h>

#include <map>
#include <set>

using namespace baechi::placement;
using namespace baechi::placement::test;

namespace {

/// m-ETF, and m-SCT with favourites, without a look at memory, in time that
/// grows with the square of the operators.
class Naive {
public:
  Naive(const Model &model, std::vector<int32_t> favourites)
      : model(model), favourites(std::move(favourites)),
        finish(model.numNodes, 0), urgency(model.numNodes, 0),
        unitDevice(model.numUnits, -1), last(model.numDevices, -1) {
    links.device.assign(model.numDevices, 0);
    result.device.assign(model.numNodes, -1);
    result.start.assign(model.numNodes, 0);
    for (int32_t k = model.numNodes; k-- > 0;) {
      int32_t i = model.order[k];
      auto [begin, end] = model.tensorsOf(i);
      for (int32_t t = begin; t < end; ++t)
        for (int32_t user : model.users[t])
          urgency[i] =
              std::max(urgency[i], urgency[user] + model.meanTransfer(t));
      for (int32_t user : model.controlUsers[i])
        urgency[i] = std::max(urgency[i], urgency[user]);
      urgency[i] += model.meanTime(i);
    }
  }

  placers::EarliestStart run() {
    for (;;) {
      Choice best = ofAll(/*mayWait=*/true);
      if (!best.valid())
        best = ofAll(/*mayWait=*/false);
      if (!best.valid())
        return result;
      place(best.node, best.device);
    }
  }

private:
  struct Links {
    std::vector<int64_t> device; ///< the same in all link models: free from
    std::map<int32_t, int64_t> in;
    std::map<std::pair<int32_t, int32_t>, int64_t> pair;
  };
  struct Choice {
    int64_t key = never;
    int64_t lessUrgent = 0;
    int32_t node = -1, device = -1;
    bool valid() const { return node >= 0; }
    bool before(const Choice &other) const {
      return valid() &&
             (!other.valid() || std::tie(key, lessUrgent, node, device) <
                                    std::tie(other.key, other.lessUrgent,
                                             other.node, other.device));
    }
  };

  bool lazy(int32_t i) const {
    bool used = false;
    model.forEachUser(i, [&](int32_t) { used = true; });
    return used && model.operands[i].empty() &&
           model.controlSources[i].empty() && model.meanTime(i) == 0;
  }
  bool ready(int32_t i) const {
    bool all = result.device[i] < 0 && !lazy(i);
    model.forEachSource(
        i, [&](int32_t s) { all &= result.device[s] >= 0 || lazy(s); });
    return all;
  }
  bool open(int32_t i, int32_t d) const {
    Unit u = model.unit[i];
    return result.device[i] < 0 &&
           (unitDevice[u] < 0 ? model.mayUse(u, d) : unitDevice[u] == d);
  }
  int32_t homeOf(int32_t source, int32_t d) const {
    Unit u = model.unit[source];
    if (result.device[source] >= 0 || unitDevice[u] >= 0)
      return std::max(result.device[source], unitDevice[u]);
    if (model.mayUse(u, d))
      return d;
    for (int32_t e = 0; e < model.numDevices; ++e)
      if (model.mayUse(u, e))
        return e;
    return d;
  }

  /// Books transfer by transfer into \p on.
  int64_t arrival(int32_t i, int32_t d, Links &on,
                  std::map<std::pair<int32_t, int32_t>, int64_t> &there) const {
    int64_t ready = 0;
    for (int32_t t : model.operands[i]) {
      int32_t source = model.producer[t], home = homeOf(source, d);
      if (home == d) {
        ready = std::max(ready, finish[source]);
        continue;
      }
      auto [copy, isNew] = there.try_emplace({t, d}, 0);
      if (isNew) {
        int64_t begin = finish[source];
        switch (model.machine->linkModel) {
        case LinkModel::Unlimited:
          break;
        case LinkModel::Parallel:
          begin = std::max(begin, on.pair[{home, d}]);
          break;
        case LinkModel::Duplex:
          begin = std::max({begin, on.device[home], on.in[d]});
          break;
        case LinkModel::Sequential:
          begin = std::max({begin, on.device[home], on.device[d]});
          break;
        }
        int64_t end = begin + model.transferNs(t, home, d);
        copy->second = on.pair[{home, d}] = on.in[d] = on.device[home] = end;
        if (model.machine->linkModel == LinkModel::Sequential)
          on.device[d] = end;
      }
      ready = std::max(ready, copy->second);
    }
    for (int32_t source : model.controlSources[i]) {
      int32_t home = homeOf(source, d);
      ready = std::max(ready, finish[source] +
                                  (home == d ? 0 : model.latencyNs(home, d)));
    }
    return ready;
  }
  int64_t startOf(int32_t i, int32_t d) const {
    Links on = links;
    auto there = copies;
    return std::max(arrival(i, d, on, there), freeAt(d));
  }
  int64_t freeAt(int32_t d) const { return last[d] < 0 ? 0 : finish[last[d]]; }
  Choice choice(int32_t i, int32_t d) const {
    return {startOf(i, d) + model.timeOf(i, d) - model.minTime(i), -urgency[i],
            i, d};
  }

  /// The first that a device could start; of m-SCT's awake devices the
  /// favourite child, or one that is urgent.
  Choice of(int32_t d, bool mayWait) const {
    std::tuple<int64_t, int64_t, int32_t> first{never, 0, -1};
    for (int32_t i = 0; i < model.numNodes; ++i)
      if (ready(i) && open(i, d))
        first = std::min(first, {startOf(i, d), -urgency[i], i});
    int32_t found = std::get<2>(first);
    Choice other = found < 0 ? Choice() : choice(found, d);
    int32_t child = favourites.empty() || last[d] < 0 || !mayWait
                        ? -1
                        : favourites[last[d]];
    if (child < 0 || !open(child, d))
      return other;
    Choice own = ready(child) ? choice(child, d) : Choice();
    bool urgent = other.valid() && found != child && other.before(own);
    for (int32_t e = 0; e < model.numDevices && urgent; ++e)
      if (e != d && open(found, e))
        urgent = choice(found, e).key > other.key;
    return urgent ? other : own;
  }

  Choice ofAll(bool mayWait) const {
    Choice best;
    for (int32_t d = 0; d < model.numDevices; ++d)
      if (Choice choice = of(d, mayWait); choice.before(best))
        best = choice;
    return best;
  }

  void settle(int32_t i, int32_t d) {
    result.device[i] = d;
    unitDevice[model.unit[i]] = d;
  }
  void place(int32_t i, int32_t d) {
    model.forEachSource(i, [&](int32_t s) {
      if (result.device[s] < 0)
        settle(s, homeOf(s, d));
    });
    result.start[i] = std::max(arrival(i, d, links, copies), freeAt(d));
    settle(i, d);
    finish[i] = result.start[i] + model.timeOf(i, d);
    last[d] = i;
  }

  const Model &model;
  std::vector<int32_t> favourites;
  placers::EarliestStart result;
  std::vector<int64_t> finish, urgency;
  std::vector<int32_t> unitDevice, last;
  Links links;
  std::map<std::pair<int32_t, int32_t>, int64_t> copies;
};

/// One user a node, chosen at random.
std::vector<int32_t> randomChildren(const Model &model, uint32_t seed) {
  baechi::placement::Random random(seed);
  std::vector<int32_t> child(model.numNodes, -1);
  std::set<int32_t> taken;
  for (int32_t i = 0; i < model.numNodes; ++i)
    model.forEachUser(i, [&](int32_t user) {
      if (child[i] < 0 && random.oneIn(2) && taken.insert(user).second)
        child[i] = user;
    });
  return child;
}

void expectTheRule(const Problem &problem, uint32_t seed) {
  Model model(problem);
  for (bool withFavourites : {false, true}) {
    std::vector<int32_t> favourites;
    if (withFavourites)
      favourites = randomChildren(model, seed);
    placers::EarliestStart expected = Naive(model, favourites).run();
    placers::EarliestStart actual =
        placers::earliestStart(model, favourites, /*limited=*/false);
    EXPECT_EQ(actual.device, expected.device);
    EXPECT_EQ(actual.start, expected.start);
  }
}

class EarliestStartRule : public testing::TestWithParam<uint32_t> {};

TEST_P(EarliestStartRule, HoldsOnMixedProblems) {
  Problem problem = randomProblem(GetParam());
  if (!check(problem).empty())
    GTEST_SKIP() << "the random pins or groups contradict each other";
  expectTheRule(problem, GetParam());
}

/// Many ready operators that compete for the links: wide layers, transfers as
/// long as operators, equal lengths in half of the problems.
TEST_P(EarliestStartRule, HoldsWhereLinksAreBusy) {
  baechi::placement::Random random(GetParam());
  Problem problem;
  auto devices = 2 + random.below(3);
  problem.machine = makeMachine(devices, int64_t(1) << 40, {50, 1000},
                                static_cast<LinkModel>(random.below(4)));
  if (random.oneIn(3))
    problem.machine.links[1] = Link{200, 300};
  bool equal = random.oneIn(2);
  constexpr int32_t layers = 6, width = 12;
  for (int32_t i = 0; i < layers * width; ++i) {
    problem.graph.ops.push_back(makeOp("op",
                                       1 + random.below(equal ? 2 : 400) * 100,
                                       {equal ? 150 : random.below(400)}));
    std::set<int32_t> sources;
    for (int32_t k = random.below(4); k-- > 0 && i >= width;)
      sources.insert((i / width - 1) * width + random.below(width));
    for (int32_t source : sources)
      problem.graph.edges.push_back({source, 0, i});
  }
  expectTheRule(problem, GetParam());
}

INSTANTIATE_TEST_SUITE_P(Seeds, EarliestStartRule, testing::Range(0u, 60u));

TEST(EarliestStart, ManyDevices) {
  Problem problem;
  problem.machine = makeMachine(64, int64_t(1) << 40, {50, 1000});
  baechi::placement::Random random(1);
  for (int32_t i = 0; i < 300; ++i) {
    problem.graph.ops.push_back(
        makeOp("op", random.below(3000), {random.below(400)}));
    for (int32_t k = 0; k < 2 && i >= 100; ++k)
      problem.graph.edges.push_back({i - 100 + random.below(50) + k, 0, i});
  }
  placers::EarliestStart result = placers::earliestStart(Model(problem));
  std::set<int32_t> used(result.device.begin(), result.device.end());
  EXPECT_GT(used.size(), 32u);
  PlaceOptions options;
  options.placer = "metf";
  options.budget = Budget::none();
  EXPECT_TRUE(place(problem, options).placement);
}

/// Grows the tree to three levels and empties it again, from any side, with
/// items that are there already among those that are put in.
TEST(UrgencyTree, AgreesWithASortedList) {
  using Item = placers::UrgencyTree::Item;
  for (int64_t lengths : {3, 40, 100000}) {
    baechi::placement::Random random(lengths);
    placers::UrgencyTree tree;
    std::set<Item> items;
    for (int32_t step = 0; step < 12000 || !items.empty(); ++step) {
      if (step < 12000 &&
          (items.empty() || random.below(5) < (step / 4000 == 1 ? 2 : 4))) {
        Item item{random.below(lengths),
                  static_cast<int32_t>(random.below(10000))};
        tree.insert(item);
        items.insert(item);
      } else {
        auto victim = random.below(2)
                          ? items.begin()
                          : items.lower_bound({random.below(lengths), 5000});
        if (victim == items.end())
          victim = std::prev(victim);
        Item item = *victim;
        tree.erase(item);
        items.erase(victim);
      }
      ASSERT_EQ(tree.empty(), items.empty());
      if (items.empty())
        continue;
      ASSERT_EQ(tree.shortest(), *items.begin());
      if (step % 16)
        continue;
      int64_t length = random.below(lengths + 5) - 2;
      int32_t best = -1;
      for (const Item &item : items)
        if (item.length <= length && (best < 0 || item.rank < best))
          best = item.rank;
      ASSERT_EQ(tree.mostUrgent(length).rank, best);
    }
  }
}

} // namespace
