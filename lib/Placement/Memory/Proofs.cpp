//===- Proofs.cpp - Why nothing can fit -------------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Memory/Proofs.h"
#include "Memory/Names.h"
#include "Memory/OrderFloor.h"
#include "Memory/Orders.h"
#include "Memory/Packing.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>

using namespace baechi::placement;
using namespace baechi::placement::memory;

namespace {

using Wide = __int128;

class Prover {
public:
  Prover(const Problem &problem, const Model &model);
  Infeasible run();

private:
  /// Devices, a flag each.
  using DeviceSet = std::vector<uint8_t>;

  std::string largestUnit() const;
  Infeasible largestMoment();
  Infeasible leastOrder() const;
  std::string heldWhile(const std::string &names, Wide bytes) const;
  std::string packing(const std::vector<int64_t> &items,
                      const std::string &when) const;
  std::vector<DeviceSet> confinements(const std::vector<int64_t> &items,
                                      std::vector<int32_t> &setOf) const;

  std::vector<int32_t> moments() const;
  void reach(int32_t node);
  int64_t onDevice(int32_t node) const;
  Wide onAllDevices(int32_t node) const;
  std::vector<int64_t> onTheirDevices(int32_t node) const;
  bool isAliveAt(int32_t tensor, int32_t node) const;
  bool isAliveForUnit(int32_t tensor) const;
  int64_t largestFor(Unit u) const;
  bool mayNotPack(int64_t item, Wide others) const;

  const Problem &problem;
  const Model &model;
  /// Per unit: resident bytes and, from some time on, results.
  std::vector<int64_t> unitBytes;
  Wide residentBytes = 0, room = 0;
  int64_t smallest =
      std::numeric_limits<int64_t>::max(); ///< memory of a device
  /// Relative to the operator of a moment.
  enum Side : uint8_t { Beside, Before, After };
  std::vector<Side> side;
  std::vector<int32_t> stack;
};

Prover::Prover(const Problem &problem, const Model &model)
    : problem(problem), model(model), unitBytes(model.unitResident) {
  for (int32_t i = 0; i < model.numNodes; ++i) {
    residentBytes += model.resident[i];
    // What takes no time may run when the step ends.
    if (!model.keepsOutputs[i] || model.minTime(i) == 0)
      continue;
    auto [begin, end] = model.tensorsOf(i);
    for (int32_t t = begin; t < end; ++t)
      unitBytes[model.unit[i]] += model.memory[t];
  }
  for (int32_t d = 0; d < model.numDevices; ++d) {
    room += model.deviceMemory(d);
    smallest = std::min(smallest, model.deviceMemory(d));
  }
}

int64_t Prover::largestFor(Unit u) const {
  int64_t largest = -1;
  for (int32_t d = 0; d < model.numDevices; ++d)
    if (model.mayUse(u, d))
      largest = std::max(largest, model.deviceMemory(d));
  return largest;
}

std::string Prover::largestUnit() const {
  for (Unit u = 0; u < model.numUnits; ++u)
    if (int64_t most = largestFor(u); unitBytes[u] > most)
      return fmt::format(
          "{} has {}, the largest device it may use has {}",
          unitName(problem, model, u),
          sizeText(unitBytes[u], unitBytes[u] == model.unitResident[u]
                                     ? " resident bytes"
                                     : " bytes of parameters and results"),
          sizeText(most));
  return "";
}

/// Marks all nodes that must run before \p node, and all that must run after.
void Prover::reach(int32_t node) {
  std::fill(side.begin(), side.end(), Beside);
  for (Side to : {Before, After}) {
    stack.assign(1, node);
    while (!stack.empty()) {
      int32_t i = stack.back();
      stack.pop_back();
      auto visit = [&](int32_t other) {
        if (side[other] == Beside) {
          side[other] = to;
          stack.push_back(other);
        }
      };
      if (to == Before)
        model.forEachSource(i, visit);
      else
        model.forEachUser(i, visit);
    }
  }
}

/// Whether a tensor that was made before the moment is needed later, or kept.
bool Prover::isAliveAt(int32_t tensor, int32_t node) const {
  int32_t source = model.producer[tensor];
  auto users = model.users[tensor];
  return side[source] == Before &&
         (model.keepsOutputs[source] ||
          std::any_of(users.begin(), users.end(), [&](int32_t user) {
            return user == node || side[user] == After;
          }));
}

/// Whether such a tensor is on its producer's device for the sake of a later
/// member of the same unit, or kept.
bool Prover::isAliveForUnit(int32_t tensor) const {
  int32_t source = model.producer[tensor];
  auto users = model.users[tensor];
  return side[source] == Before &&
         (model.keepsOutputs[source] ||
          std::any_of(users.begin(), users.end(), [&](int32_t user) {
            return side[user] == After &&
                   model.unit[user] == model.unit[source];
          }));
}

/// Bytes that must be on the device of \p node while it runs: what it needs and
/// makes, and of its unit the resident bytes, what was made for later members,
/// and results.
int64_t Prover::onDevice(int32_t node) const {
  Unit unit = model.unit[node];
  int64_t bytes = model.unitResident[unit] + model.scratch[node];
  auto [begin, end] = model.tensorsOf(node);
  for (int32_t t = begin; t < end; ++t)
    bytes += model.memory[t];
  for (int32_t t : model.operands[node]) {
    bool together = model.unit[model.producer[t]] == unit;
    if (!together || !isAliveForUnit(t))
      bytes +=
          together ? model.memory[t] : std::min(model.memory[t], model.copy[t]);
  }
  for (int32_t i : model.members[unit]) {
    auto [first, last] = model.tensorsOf(i);
    for (int32_t t = first; t < last; ++t)
      if (isAliveForUnit(t))
        bytes += model.memory[t];
  }
  return bytes;
}

/// Bytes that are alive somewhere while \p node runs, as tensors or as copies.
Wide Prover::onAllDevices(int32_t node) const {
  Wide bytes = residentBytes + model.scratch[node];
  auto [begin, end] = model.tensorsOf(node);
  for (int32_t t = begin; t < end; ++t)
    bytes += model.memory[t];
  for (int32_t t = 0; t < model.numTensors; ++t)
    if (isAliveAt(t, node))
      bytes += model.numDevices == 1 || isAliveForUnit(t)
                   ? model.memory[t]
                   : std::min(model.memory[t], model.copy[t]);
  return bytes;
}

/// Per unit, bytes that are on its device for its sake while \p node runs; no
/// bytes are counted for two units.
std::vector<int64_t> Prover::onTheirDevices(int32_t node) const {
  std::vector<int64_t> bytes = model.unitResident;
  for (int32_t t = 0; t < model.numTensors; ++t)
    if (isAliveForUnit(t))
      bytes[model.unit[model.producer[t]]] += model.memory[t];
  int64_t &own = bytes[model.unit[node]];
  own += model.scratch[node];
  auto [begin, end] = model.tensorsOf(node);
  for (int32_t t = begin; t < end; ++t)
    own += model.memory[t];
  for (int32_t t : model.operands[node])
    if (!isAliveForUnit(t))
      own += std::min(model.memory[t], model.copy[t]);
  return bytes;
}

/// False when units of so many bytes in all go into the devices whatever their
/// sizes, as none is larger than \p item.
bool Prover::mayNotPack(int64_t item, Wide sum) const {
  for (int32_t d = 0; d < model.numDevices; ++d)
    sum -= std::max<int64_t>(0, model.deviceMemory(d) - item);
  return sum > 0;
}

/// The operators while which most is alive, on all devices, on their own, or
/// for packing: only those for which a proof is possible at all, since what is
/// necessary is alive in every order, also in the one that is looked at here.
std::vector<int32_t> Prover::moments() const {
  constexpr int64_t visits = 10'000'000;
  int64_t size = model.numNodes + model.numTensors + 1;
  auto limit = static_cast<size_t>(std::clamp<int64_t>(visits / size, 2, 32));
  using List = std::vector<std::pair<Wide, int32_t>>;
  List whole, own, packed;
  int64_t largest =
      *std::max_element(model.unitResident.begin(), model.unitResident.end());
  std::vector<int32_t> usesLeft(model.numTensors);
  for (int32_t t = 0; t < model.numTensors; ++t)
    usesLeft[t] = static_cast<int32_t>(model.users[t].size());
  std::vector<int64_t> unitLevel = model.unitResident;
  Wide level = residentBytes;
  auto hold = [&](int32_t t, int64_t bytes) {
    level += bytes;
    unitLevel[model.unit[model.producer[t]]] += bytes;
  };
  for (int32_t i : model.order) {
    auto [begin, end] = model.tensorsOf(i);
    for (int32_t t = begin; t < end; ++t)
      hold(t, model.memory[t]);
    // An operator that takes no time need not hold its bytes.
    if (model.minTime(i) > 0) {
      Unit u = model.unit[i];
      int64_t bytes = unitLevel[u] + model.scratch[i];
      for (int32_t t : model.operands[i])
        if (model.unit[model.producer[t]] != u)
          bytes += model.memory[t];
      Wide all = level + model.scratch[i];
      if (all > room)
        whole.emplace_back(-all, i);
      if (bytes > largestFor(u))
        own.emplace_back(largestFor(u) - bytes, i);
      if (mayNotPack(std::max(largest, bytes), all))
        packed.emplace_back(-bytes, i);
    }
    auto release = [&](int32_t t) {
      if (usesLeft[t] == 0 && !model.keepsOutputs[model.producer[t]])
        hold(t, -model.memory[t]);
    };
    for (int32_t t : model.operands[i]) {
      --usesLeft[t];
      release(t);
    }
    for (int32_t t = begin; t < end; ++t)
      if (model.users[t].empty())
        release(t);
  }
  std::vector<int32_t> chosen;
  for (List *list : {&own, &whole, &packed}) {
    std::sort(list->begin(), list->end());
    for (size_t k = 0; k < std::min(limit, list->size()); ++k)
      chosen.push_back((*list)[k].second);
  }
  return chosen;
}

/// Whatever runs when, all devices together hold \p bytes then.
std::string Prover::heldWhile(const std::string &names, Wide bytes) const {
  return fmt::format("while {} runs, {} must be held, whatever the order of "
                     "the operators: what it reads, makes and works in, what "
                     "is resident, and what was made before and is needed "
                     "later; {} {}",
                     names, sizeText(bytes, " bytes"),
                     model.numDevices > 1 ? "all devices together have"
                                          : "the device has",
                     sizeText(room));
}

/// Every order on one device can be looked at. What it needs, several devices
/// of one kind need together.
Infeasible Prover::leastOrder() const {
  const bool isAlone = model.numDevices == 1;
  // Several are asked often.
  const int32_t many = isAlone ? 50'000 : 2'000;
  const int64_t effort = isAlone ? floorEffort : floorEffort / 16;
  if (model.numKinds != 1 || model.numNodes > many)
    return {};
  std::vector<int32_t> order = leanOrders(model).front();
  OrderFloor floor = isAlone ? orderFloor(model, order, effort)
                             : orderFloorOfAll(model, order, effort);
  if (floor.nodes.empty() || floor.bytes <= room)
    return {};
  std::string names;
  for (int32_t i : floor.nodes)
    names += (names.empty() ? "" : " or ") + nodeName(problem, i);
  return {heldWhile(names, floor.bytes),
          floor.nodes.size() == 1 ? floor.nodes.front() : -1};
}

Infeasible Prover::largestMoment() {
  side.resize(model.numNodes);
  const std::vector<int32_t> chosen = moments();
  for (int32_t i : chosen) {
    reach(i);
    if (int64_t most = largestFor(model.unit[i]), bytes = onDevice(i);
        bytes > most)
      return {fmt::format("{} needs {} at once (its operands, results and "
                          "scratch, and what its group holds then), the "
                          "largest device it may use has {}",
                          nodeName(problem, i), sizeText(bytes, " bytes"),
                          sizeText(most)),
              i};
    if (Wide bytes = onAllDevices(i); bytes > room)
      return {heldWhile(nodeName(problem, i), bytes), i};
    if (std::string proof =
            packing(onTheirDevices(i),
                    fmt::format("while {} runs, ", nodeName(problem, i)));
        !proof.empty())
      return {std::move(proof), i};
  }
  return chosen.empty() ? Infeasible() : leastOrder();
}

/// Sets of devices that some units are confined to, by what they can run on and
/// by their size, and unions of these; and the set of each unit.
std::vector<Prover::DeviceSet>
Prover::confinements(const std::vector<int64_t> &items,
                     std::vector<int32_t> &setOf) const {
  constexpr size_t most = 64;
  std::vector<DeviceSet> sets;
  std::map<DeviceSet, int32_t> known;
  DeviceSet set(model.numDevices);
  setOf.resize(model.numUnits);
  for (Unit u = 0; u < model.numUnits; ++u) {
    for (int32_t d = 0; d < model.numDevices; ++d)
      set[d] = model.mayUse(u, d) &&
               (items[u] <= smallest || items[u] <= model.deviceMemory(d));
    auto [it, isNew] =
        known.try_emplace(set, static_cast<int32_t>(sets.size()));
    if (isNew)
      sets.push_back(set);
    setOf[u] = it->second;
  }
  for (size_t a = 0; a < sets.size() && sets.size() < most; ++a)
    for (size_t b = 0; b < a && sets.size() < most; ++b) {
      set = sets[a];
      for (int32_t d = 0; d < model.numDevices; ++d)
        set[d] |= sets[b][d];
      if (known.try_emplace(set, 0).second)
        sets.push_back(set);
    }
  return sets;
}

/// Whether units of these sizes do not go into the devices: into every set of
/// devices must go the units that are confined to it.
std::string Prover::packing(const std::vector<int64_t> &items,
                            const std::string &when) const {
  std::vector<int32_t> setOf;
  std::vector<DeviceSet> sets = confinements(items, setOf);
  std::vector<int64_t> inside, bins;
  for (const DeviceSet &set : sets) {
    // A unit's own set is one of those that were there first.
    std::vector<uint8_t> isInside(sets.size());
    for (size_t k = 0; k < sets.size(); ++k) {
      isInside[k] = 1;
      for (int32_t d = 0; d < model.numDevices; ++d)
        isInside[k] &= set[d] >= sets[k][d];
    }
    inside.clear();
    Wide sum = 0;
    for (Unit u = 0; u < model.numUnits; ++u)
      if (isInside[setOf[u]]) {
        inside.push_back(items[u]);
        sum += items[u];
      }
    bins.clear();
    std::string names;
    for (int32_t d = 0; d < model.numDevices; ++d)
      if (set[d]) {
        bins.push_back(model.deviceMemory(d));
        names += (names.empty() ? "" : ", ") + problem.machine.devices[d].name;
      }
    auto proof = provePackingFails(inside, bins);
    if (!proof)
      continue;
    std::string who = "all operators";
    if (bins.size() < static_cast<size_t>(model.numDevices))
      who = "the operators that can only be on " + names;
    std::string what =
        when.empty()
            ? fmt::format("the parameters and results of {} are {}", who,
                          sizeText(sum, " bytes"))
            : fmt::format("{}{} hold {}", when, who, sizeText(sum, " bytes"));
    if (proof->piece == 1)
      return fmt::format("{}, the {} {}", what,
                         bins.size() > 1 ? "memories there are"
                                         : "memory there is",
                         sizeText(proof->available));
    if (proof->inBins)
      return fmt::format("{} in parts that need at least {} devices of {}, "
                         "there are {}",
                         what, static_cast<int64_t>(proof->needed),
                         sizeText(proof->piece),
                         static_cast<int64_t>(proof->available));
    return fmt::format("{} in parts that fill {} times {}, the memories there "
                       "only {}",
                       what, static_cast<int64_t>(proof->needed),
                       sizeText(proof->piece),
                       static_cast<int64_t>(proof->available));
  }
  return "";
}

Infeasible Prover::run() {
  if (residentBytes > room)
    return {fmt::format("the resident bytes of all operators are {}, the "
                        "memories of all devices {}",
                        sizeText(residentBytes), sizeText(room))};
  if (std::string proof = largestUnit(); !proof.empty())
    return {std::move(proof)};
  if (std::string proof = packing(unitBytes, ""); !proof.empty())
    return {std::move(proof)};
  return largestMoment();
}

} // namespace

Infeasible baechi::placement::memory::proveInfeasible(const Problem &problem,
                                                      const Model &model) {
  return model.numNodes > 0 ? Prover(problem, model).run() : Infeasible();
}
