//===- Layers.cpp - Placements that people write by hand --------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// GNMT's authors (Wu et al. 2016, section 3) put each layer on a device;
/// GPipe (Huang et al. 2019) and device maps cut the list of layers; Megatron's
/// interleaved stages (Narayanan et al. 2021, section 2.2) go round.
///
//===----------------------------------------------------------------------===//

#include "Placers/Layers.h"
#include "Placers/Baselines.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

using namespace baechi::placement;
using namespace baechi::placement::placers;

namespace {

struct Layer {
  int32_t group;
  int64_t work = 0, operators = 0;
  /// Of its first operator: whether backward, and the place in the order.
  std::pair<bool, int32_t> first = {true, std::numeric_limits<int32_t>::max()};
  int32_t kind = -1, ofKind = -1; ///< its kind, and its place among these
};

/// Those that do most of the work, in the order of their first operators.
std::vector<Layer> layersOf(const Problem &problem, const Model &model,
                            const std::vector<Unit> &groupOf) {
  constexpr int64_t leastShare = 200;
  std::vector<Layer> groups(*std::max_element(groupOf.begin(), groupOf.end()) +
                            1);
  for (size_t g = 0; g < groups.size(); ++g)
    groups[g].group = static_cast<int32_t>(g);
  int64_t all = 0;
  for (int32_t k = 0; k < model.numNodes; ++k) {
    int32_t i = model.order[k];
    Layer &layer = groups[groupOf[model.unit[i]]];
    layer.work += model.meanTime(i);
    all += model.meanTime(i);
    ++layer.operators;
    layer.first = std::min(layer.first, {problem.graph.ops[i].backward, k});
  }
  std::erase_if(groups, [&](const Layer &layer) {
    return layer.work == 0 || layer.work < all / leastShare;
  });
  std::sort(groups.begin(), groups.end(),
            [](const Layer &a, const Layer &b) { return a.first < b.first; });
  return groups;
}

/// Numbers the kinds in the order of their first layers; returns how many each
/// has.
std::vector<int32_t> findKinds(std::vector<Layer> &layers) {
  constexpr int64_t tolerance = 20; // a twentieth
  std::vector<int64_t> operators;   // of the first of each kind
  std::vector<int32_t> count;
  for (Layer &layer : layers) {
    size_t kind = 0;
    while (kind < operators.size() &&
           std::abs(operators[kind] - layer.operators) * tolerance >
               operators[kind])
      ++kind;
    if (kind == operators.size()) {
      operators.push_back(layer.operators);
      count.push_back(0);
    }
    layer.kind = static_cast<int32_t>(kind);
    layer.ofKind = count[kind]++;
  }
  return count;
}

} // namespace

std::vector<Proposal>
baechi::placement::placers::proposeLayers(const Problem &problem,
                                          const Model &model,
                                          const std::vector<Unit> &groupOf) {
  int32_t devices = model.numDevices;
  std::vector<Layer> layers = layersOf(problem, model, groupOf);
  auto count = static_cast<int32_t>(layers.size());
  if (devices < 2 || count < 2)
    return {};
  std::vector<int32_t> ofKind = findKinds(layers);
  std::vector<Proposal> found;
  std::vector<int32_t> deviceOf(
      *std::max_element(groupOf.begin(), groupOf.end()) + 1);
  auto add = [&](std::string variant,
                 const std::function<int32_t(int32_t)> &deviceOfLayer) {
    std::fill(deviceOf.begin(), deviceOf.end(), -1);
    for (int32_t k = 0; k < count; ++k)
      deviceOf[layers[k].group] = deviceOfLayer(k);
    std::vector<int32_t> home(model.numUnits, -1);
    for (Unit u = 0; u < model.numUnits; ++u)
      if (int32_t d = deviceOf[groupOf[u]]; d >= 0 && model.mayUse(u, d))
        home[u] = d;
    followOperands(problem.graph, model, home);
    Proposal proposal{std::move(variant), perNode(model, home)};
    proposal.mayRepair = false;
    bool isNew =
        std::none_of(found.begin(), found.end(), [&](const Proposal &other) {
          return other.device == proposal.device;
        });
    if (isNew)
      found.push_back(std::move(proposal));
  };
  add("turn", [&](int32_t k) { return k % devices; });
  add("snake", [&](int32_t k) {
    int32_t at = k % (2 * devices);
    return at < devices ? at : 2 * devices - 1 - at;
  });
  std::vector<int64_t> before(count, 0);
  for (int32_t k = 1; k < count; ++k)
    before[k] = before[k - 1] + layers[k - 1].work;
  int64_t all = before.back() + layers.back().work;
  auto half = [&](int32_t k) {
    return static_cast<double>(before[k]) +
           static_cast<double>(layers[k].work) / 2;
  };
  std::vector<int32_t> widths{2, (devices + 1) / 2, devices};
  for (size_t w = 0; w < widths.size(); ++w) {
    int32_t wide = widths[w];
    if (wide < 2 || std::find(widths.begin(), widths.begin() + w, wide) !=
                        widths.begin() + w)
      continue;
    add(fmt::format("blocks:{}", wide),
        [&](int32_t k) { return k * wide / count; });
    add(fmt::format("work:{}", wide), [&](int32_t k) {
      return std::min(wide - 1, static_cast<int32_t>(half(k) * wide /
                                                     static_cast<double>(all)));
    });
  }
  add("kinds", [&](int32_t k) { return layers[k].kind % devices; });
  add("kinds:turn", [&](int32_t k) { return layers[k].ofKind % devices; });
  add("kinds:blocks", [&](int32_t k) {
    return layers[k].ofKind * devices / ofKind[layers[k].kind];
  });
  return found;
}
