//===- Traffic.cpp - What clusters send each other --------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Search/Traffic.h"
#include "Grouping/Coarsen.h"
#include "Model/Sorting.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

using namespace baechi::placement;
using namespace baechi::placement::search;

namespace {
constexpr size_t manyTargets = 64;
} // namespace

Traffic::Traffic(const Model &model) : clusters(model.numUnits) {
  std::vector<int32_t> row;
  for (int32_t t = 0; t < model.numTensors; ++t) {
    row.clear();
    for (int32_t user : model.users[t])
      row.push_back(model.unit[user]);
    add(model.unit[model.producer[t]], row,
        static_cast<double>(model.meanTransfer(t) + 1));
  }
  mergeEqualRows();
}

void Traffic::add(int32_t from, std::vector<int32_t> &row, double ns) {
  std::sort(row.begin(), row.end());
  row.erase(std::unique(row.begin(), row.end()), row.end());
  std::erase(row, from);
  if (row.empty() || row.size() > manyTargets)
    return;
  auto begin = static_cast<int32_t>(items.size());
  items.insert(items.end(), row.begin(), row.end());
  all.push_back({from, begin, static_cast<int32_t>(items.size()), ns});
}

void Traffic::mergeEqualRows() {
  auto compare = [&](const Row &a, const Row &b) {
    if (a.from != b.from)
      return a.from <=> b.from;
    auto x = targets(a), y = targets(b);
    return std::lexicographical_compare_three_way(x.begin(), x.end(), y.begin(),
                                                  y.end());
  };
  // Stable, so that the sums do not depend on the library's sort.
  countingSort(all, clusters, [](const Row &row) { return row.from; });
  for (auto begin = all.begin(); begin != all.end();) {
    auto end = std::find_if(begin, all.end(), [&](const Row &row) {
      return row.from != begin->from;
    });
    if (end - begin > 1)
      std::stable_sort(begin, end, [&](const Row &a, const Row &b) {
        return compare(a, b) < 0;
      });
    begin = end;
  }
  size_t last = 0;
  for (size_t k = 1; k < all.size(); ++k)
    if (compare(all[last], all[k]) == 0)
      all[last].ns += all[k].ns;
    else
      all[++last] = all[k];
  if (!all.empty())
    all.resize(last + 1);
}

Traffic Traffic::contracted(std::span<const int32_t> into,
                            int32_t count) const {
  Traffic result;
  result.clusters = count;
  result.all.reserve(all.size());
  result.items.reserve(items.size());
  std::vector<int32_t> row;
  for (const Row &old : all) {
    row.clear();
    for (int32_t target : targets(old))
      row.push_back(into[target]);
    result.add(into[old.from], row, old.ns);
  }
  result.mergeEqualRows();
  return result;
}

std::vector<Traffic::Pair> Traffic::pairs() const {
  std::vector<Pair> pairs;
  pairs.reserve(items.size());
  for (const Row &row : all)
    for (int32_t to : targets(row))
      pairs.push_back({std::min(row.from, to), std::max(row.from, to), row.ns});
  countingSort(pairs, clusters, [](const Pair &pair) { return pair.b; });
  countingSort(pairs, clusters, [](const Pair &pair) { return pair.a; });
  size_t last = 0;
  for (size_t k = 1; k < pairs.size(); ++k)
    if (pairs[k].a == pairs[last].a && pairs[k].b == pairs[last].b)
      pairs[last].ns += pairs[k].ns;
    else
      pairs[++last] = pairs[k];
  if (!pairs.empty())
    pairs.resize(last + 1);
  return pairs;
}

Clustering::Clustering(const Model &model, const Traffic &traffic)
    : between(traffic), cluster(model.numUnits), work(model.numUnits, 0),
      allowed(model.allowed), devices(model.numDevices) {
  std::iota(cluster.begin(), cluster.end(), 0);
  for (int32_t i = 0; i < model.numNodes; ++i)
    work[model.unit[i]] += static_cast<double>(model.meanTime(i));
  allWork = std::accumulate(work.begin(), work.end(), 0.0);
}

bool Clustering::joinRound(const Options &options, Random &random) {
  int32_t count = between.size();
  auto pairs = between.pairs();
  std::vector<double> talk(count, 0);
  for (const auto &pair : pairs) {
    talk[pair.a] += pair.ns;
    talk[pair.b] += pair.ns;
  }
  struct Ranked {
    double score;
    int32_t pair;
  };
  std::vector<Ranked> ranked;
  ranked.reserve(pairs.size());
  // Clusters of next to no work would come first by any measure of work.
  double leastWork = allWork / 2000;
  for (const auto &pair : pairs) {
    double value = pair.ns;
    auto index = static_cast<int32_t>(ranked.size());
    if (options.affinity == Affinity::Work)
      value /= std::min(work[pair.a], work[pair.b]) + leastWork;
    else if (options.affinity == Affinity::Share)
      value /= std::min(talk[pair.a], talk[pair.b]);
    if (options.noise > 0)
      value *= 1 - options.noise + 2 * options.noise * random.real();
    ranked.push_back({value, index});
  }
  grouping::DisjointSets sets(count);
  auto wanted =
      std::max<int32_t>(1, static_cast<int32_t>(count * options.roundShare));
  int32_t joined = 0;
  auto join = [&](const Traffic::Pair &pair) {
    int32_t a = sets.find(pair.a), b = sets.find(pair.b);
    if (a == b || work[a] + work[b] > options.workShare * allWork)
      return;
    double smaller = std::min(work[a], work[b]);
    if (smaller >= allWork * options.small && pair.ns < options.ratio * smaller)
      return;
    uint8_t *ofA = &allowed[static_cast<size_t>(a) * devices];
    uint8_t *ofB = &allowed[static_cast<size_t>(b) * devices];
    bool anywhere = false;
    for (int32_t d = 0; d < devices; ++d)
      anywhere |= ofA[d] && ofB[d];
    if (!anywhere)
      return;
    int32_t root = sets.join(a, b);
    for (int32_t d = 0; d < devices; ++d)
      allowed[static_cast<size_t>(root) * devices + d] = ofA[d] && ofB[d];
    work[root] = work[a] + work[b];
    ++joined;
  };
  visitInOrder(
      ranked, 2 * static_cast<size_t>(wanted),
      [](const Ranked &x, const Ranked &y) {
        return x.score != y.score ? x.score > y.score : x.pair < y.pair;
      },
      [&](const Ranked &next) {
        join(pairs[next.pair]);
        return joined < wanted;
      });
  if (joined == 0)
    return false;
  int32_t left = 0;
  std::vector<int32_t> into = sets.number(left);
  // Numbers ascend with the roots: moving down overwrites nothing unread.
  for (int32_t c = 0; c < count; ++c)
    if (sets.find(c) == c) {
      work[into[c]] = work[c];
      std::copy_n(&allowed[static_cast<size_t>(c) * devices], devices,
                  &allowed[static_cast<size_t>(into[c]) * devices]);
    }
  work.resize(left);
  allowed.resize(static_cast<size_t>(left) * devices);
  for (int32_t &c : cluster)
    c = into[c];
  between = between.contracted(into, left);
  return true;
}
