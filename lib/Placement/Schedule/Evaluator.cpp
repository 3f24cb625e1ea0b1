//===- Evaluator.cpp - Many schedules of one model --------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Schedule/Evaluator.h"

#include <algorithm>
#include <bit>
#include <utility>

using namespace baechi::placement;

/// A model of so many nodes is not held by caches.
static constexpr int32_t manyNodes = 30'000;

Evaluator::Evaluator(const Model &model)
    : model(model), nodes(model.numNodes), devices(model.numDevices),
      classes(model.numClasses), isLarge(nodes >= manyNodes), states(nodes),
      tail(nodes), shifted(nodes), byRank(nodes), scratch(nodes),
      workLeft(devices), ready(devices, RankSet(model.numNodes)),
      nodeEnds(devices), nodeOn(devices),
      queued(static_cast<size_t>(devices) * devices), links(*model.machine),
      wanted(devices, -1) {
  std::vector<int32_t> position(nodes);
  tensorAt.assign(model.numTensors, -1);
  for (int32_t k = 0; k < nodes; ++k)
    position[model.order[k]] = k;
  byModelNode = position;
  int64_t horizon = 1;
  for (int32_t i : model.order) {
    modelNode.push_back(i);
    unit.push_back(model.unit[i]);
    needs.push_back(static_cast<int32_t>(model.operands[i].size() +
                                         model.controlSources[i].size()));
    int64_t longest = 0;
    for (int32_t kind = 0; kind < model.numKinds; ++kind) {
      // A device that cannot run the node is never asked to.
      time.push_back(std::max<int64_t>(
          model.kindTime[static_cast<size_t>(i) * model.numKinds + kind], 0));
      longest = std::max(longest, time.back());
    }
    horizon += longest;
    tensorOf.push_back(static_cast<int32_t>(modelTensor.size()));
    auto [begin, end] = model.tensorsOf(i);
    for (int32_t t = begin; t < end; ++t) {
      if (model.users[t].empty())
        continue;
      tensorAt[t] = static_cast<int32_t>(modelTensor.size());
      modelTensor.push_back(t);
      producer.push_back(position[i]);
      userOf.push_back(static_cast<int32_t>(users.size()));
      for (int32_t user : model.users[t])
        users.push_back(position[user]);
      longest = 0;
      for (int32_t c = 0; c < classes; ++c) {
        transfer.push_back(model.classTransfer(t, c));
        longest = std::max(longest, transfer.back());
      }
      horizon += model.lacksLinks ? longest * devices : longest;
    }
    controlOf.push_back(static_cast<int32_t>(controls.size()));
    for (int32_t user : model.controlUsers[i])
      controls.push_back(position[user]);
  }
  tensorOf.push_back(static_cast<int32_t>(modelTensor.size()));
  userOf.push_back(static_cast<int32_t>(users.size()));
  controlOf.push_back(static_cast<int32_t>(controls.size()));
  auto ids =
      static_cast<uint32_t>(std::max({model.numTensors, model.numNodes, 1}));
  idBits = static_cast<int>(std::bit_width(ids));
  idMask = (uint64_t(1) << idBits) - 1;
  // Urgencies reach twice the horizon: a path and an offset.
  shift = std::max(
      0, static_cast<int>(std::bit_width(static_cast<uint64_t>(horizon))) + 1 +
             idBits - 64);
}

/// Sorts the nodes by descending urgency, the model's ids among equals: a radix
/// sort, least significant digits first.
void Evaluator::rank() {
  uint64_t all = 0;
  for (int32_t i = 0; i < nodes; ++i)
    all |= static_cast<uint64_t>(urgency[i]);
  int passes = std::max(
      1, (static_cast<int>(std::bit_width(all)) + radixBits - 1) / radixBits);
  counts.resize(passes);
  for (auto &count : counts)
    count.fill(0);
  auto digit = [&](int32_t node, int pass) {
    // The complement: the largest come first.
    return ~static_cast<uint64_t>(urgency[node]) >> (pass * radixBits) &
           (radix - 1);
  };
  for (int32_t i = 0; i < nodes; ++i)
    for (int pass = 0; pass < passes; ++pass)
      ++counts[pass][digit(i, pass)];
  const std::vector<int32_t> *from = &byModelNode;
  for (int pass = 0; pass < passes; ++pass) {
    auto &count = counts[pass];
    int32_t sum = 0;
    for (int32_t &c : count)
      sum += std::exchange(c, sum);
    auto &to = (passes - pass) % 2 ? byRank : scratch;
    for (int32_t node : *from)
      to[count[digit(node, pass)]++] = node;
    from = &to;
  }
  for (int32_t k = 0; k < nodes; ++k)
    states[byRank[k]].rank = k;
}

/// The time of a tensor's transfers from one device to another; `never` when no
/// way leads there.
inline int64_t Evaluator::wayNs(int32_t tensor, int32_t from,
                                int32_t to) const {
  if (model.linked(from, to))
    return transferNs(tensor, from, to);
  return model.reaches(from, to) ? model.routeNs(modelTensor[tensor], from, to)
                                 : never;
}

/// Tails, urgencies and an empty machine. False: beyond the cut-off, or
/// devices that cannot talk.
bool Evaluator::prepare(std::span<const int32_t> device,
                        std::span<const int64_t> offset, int64_t cutoff) {
  std::fill(workLeft.begin(), workLeft.end(), 0);
  for (int32_t i = 0; i < nodes; ++i)
    states[i] = {device[unit[i]], needs[i], 0};
  for (int32_t i = nodes; i-- > 0;) {
    int32_t d = states[i].on;
    int64_t longest = 0;
    for (int32_t t = tensorOf[i]; t < tensorOf[i + 1]; ++t)
      for (int32_t k = userOf[t]; k < userOf[t + 1]; ++k) {
        int32_t user = users[k], e = states[user].on;
        int64_t path = tail[user];
        if (e != d) {
          int64_t ns = wayNs(t, d, e);
          if (ns == never)
            return false;
          path += ns;
        }
        longest = std::max(longest, path);
      }
    for (int32_t k = controlOf[i]; k < controlOf[i + 1]; ++k) {
      int32_t user = controls[k], e = states[user].on;
      int64_t path = tail[user];
      if (e != d) {
        if (!model.linked(d, e))
          return false;
        path += model.latencyNs(d, e);
      }
      longest = std::max(longest, path);
    }
    int64_t ns = timeOf(i, d);
    workLeft[d] += ns;
    tail[i] = longest + ns;
    if (tail[i] > cutoff)
      return false;
  }
  for (int64_t work : workLeft)
    if (work > cutoff)
      return false;
  urgency = tail.data();
  if (!offset.empty()) {
    for (int32_t i = 0; i < nodes; ++i)
      shifted[i] = std::max<int64_t>(0, tail[i] + offset[unit[i]]);
    urgency = shifted.data();
  }
  rank();

  for (RankSet &set : ready)
    set.clear();
  for (int32_t pair : pairs)
    queued[pair].clear();
  pairs.clear();
  flights.clear();
  freeSlots.clear();
  events.clear();
  std::fill(nodeEnds.begin(), nodeEnds.end(), never);
  links.clear();
  now = 0;
  requested = false;
  for (const State &state : states)
    if (state.waiting == 0)
      ready[state.on].insert(state.rank);
  if (record) {
    record->start.assign(nodes, 0);
    record->transfers.clear();
  }
  return true;
}

inline void Evaluator::arrive(int32_t node) {
  State &state = states[node];
  if (--state.waiting == 0)
    ready[state.on].insert(state.rank);
}

/// The processor may bring what will be asked of a node that starts soon.
inline void Evaluator::fetch(int32_t node) const {
  __builtin_prefetch(&tail[node]);
  __builtin_prefetch(&tensorOf[node]);
  __builtin_prefetch(&time[static_cast<size_t>(node) * model.numKinds]);
}

/// The same for a node's users, while it runs.
inline void Evaluator::fetchUsers(int32_t node) const {
  int32_t end = userOf[tensorOf[node + 1]];
  for (int32_t k = userOf[tensorOf[node]]; k < end; ++k)
    __builtin_prefetch(&states[users[k]], /*rw=*/1);
}

inline void Evaluator::want(int32_t to, int64_t rank) {
  if (wanted[to] < 0)
    wanting.push_back(to);
  wanted[to] = std::max(wanted[to], rank);
}

/// Queues the copies of a tensor that \p from makes, to the wanting devices.
inline void Evaluator::request(int32_t tensor, int32_t from) {
  for (int32_t to : wanting) {
    int32_t pair = from * devices + to;
    auto &heap = queued[pair];
    if (heap.empty())
      pairs.push_back(pair);
    heap.push_back(keyOf(wanted[to], modelTensor[tensor]));
    std::push_heap(heap.begin(), heap.end());
    requested = true;
    wanted[to] = -1;
  }
  wanting.clear();
}

/// The tensor is on \p at: the copies that are made from there.
void Evaluator::passOn(int32_t tensor, int32_t at) {
  int32_t home = states[producer[tensor]].on;
  for (int32_t k = userOf[tensor]; k < userOf[tensor + 1]; ++k)
    if (int32_t next = model.hopAfter(at, home, states[users[k]].on); next >= 0)
      want(next, urgency[users[k]]);
  request(tensor, at);
}

/// Starts the most urgent transfers whose links are free. False: beyond the
/// cut-off.
template <LinkModel linkModel> bool Evaluator::startTransfers(int64_t cutoff) {
  requested = false;
  for (;;) {
    size_t best = pairs.size();
    Key bestKey = 0;
    for (size_t k = 0; k < pairs.size(); ++k) {
      int32_t pair = pairs[k];
      // Equal keys differ in their tensor's pair: the first pair decides.
      if (Key key = queued[pair].front();
          (key > bestKey || (key == bestKey && pair < pairs[best])) &&
          links.areFree(linkModel, pair / devices, pair % devices)) {
        best = k;
        bestKey = key;
      }
    }
    if (best == pairs.size())
      return true;
    int32_t pair = pairs[best];
    int32_t from = pair / devices, to = pair % devices;
    auto &heap = queued[pair];
    int32_t tensor = tensorAt[idOf(heap.front())];
    std::pop_heap(heap.begin(), heap.end());
    heap.pop_back();
    if (heap.empty()) {
      pairs[best] = pairs.back();
      pairs.pop_back();
    }
    int64_t end = now + transferNs(tensor, from, to);
    if (cutoff != never)
      for (int32_t k = userOf[tensor]; k < userOf[tensor + 1]; ++k)
        if (states[users[k]].on == to && end > cutoff - tail[users[k]])
          return false;
    links.set(linkModel, from, to, true);
    auto slot = static_cast<int32_t>(flights.size());
    if (freeSlots.empty()) {
      flights.push_back({tensor, from, to});
    } else {
      slot = freeSlots.back();
      freeSlots.pop_back();
      flights[slot] = {tensor, from, to};
    }
    events.push_back({end, slot});
    std::push_heap(events.begin(), events.end());
    if (record)
      record->transfers.push_back({modelTensor[tensor], from, to, now, end});
  }
}

void Evaluator::finishNode(int32_t d) {
  int32_t node = nodeOn[d];
  nodeEnds[d] = never;
  for (int32_t t = tensorOf[node]; t < tensorOf[node + 1]; ++t) {
    for (int32_t k = userOf[t]; k < userOf[t + 1]; ++k) {
      int32_t user = users[k], e = states[user].on;
      if (e == d)
        arrive(user);
      else if (!model.lacksLinks)
        want(e, urgency[user]);
      else
        want(model.hopAfter(d, d, e), urgency[user]);
    }
    request(t, d);
  }
  for (int32_t k = controlOf[node]; k < controlOf[node + 1]; ++k) {
    int32_t user = controls[k], e = states[user].on;
    if (e == d) {
      arrive(user);
      continue;
    }
    events.push_back({now + model.latencyNs(d, e), ~user});
    std::push_heap(events.begin(), events.end());
  }
}

template <LinkModel linkModel> void Evaluator::finishFlight(int32_t slot) {
  auto [tensor, from, to] = flights[slot];
  freeSlots.push_back(slot);
  links.set(linkModel, from, to, false);
  requested = true;
  for (int32_t k = userOf[tensor]; k < userOf[tensor + 1]; ++k)
    if (states[users[k]].on == to)
      arrive(users[k]);
  if (model.lacksLinks)
    passOn(tensor, to);
}

template <LinkModel linkModel> int64_t Evaluator::simulate(int64_t cutoff) {
  for (;;) {
    if (requested && !startTransfers<linkModel>(cutoff))
      return never;
    int64_t next = events.empty() ? never : events.front().at;
    for (int32_t d = 0; d < devices; ++d) {
      if (nodeEnds[d] == never && !ready[d].empty()) {
        int32_t node = byRank[ready[d].takeSmallest()];
        if (now > cutoff - tail[node] || now > cutoff - workLeft[d])
          return never;
        if (isLarge) {
          fetchUsers(node);
          if (!ready[d].empty())
            fetch(byRank[ready[d].smallest()]);
        }
        int64_t ns = timeOf(node, d);
        workLeft[d] -= ns;
        nodeOn[d] = node;
        nodeEnds[d] = now + ns;
        if (record)
          record->start[modelNode[node]] = now;
      }
      next = std::min(next, nodeEnds[d]);
    }
    if (next == never)
      return now;
    now = next;
    for (int32_t d = 0; d < devices; ++d)
      if (nodeEnds[d] == now)
        finishNode(d);
    while (!events.empty() && events.front().at == now) {
      int32_t id = events.front().id;
      std::pop_heap(events.begin(), events.end());
      events.pop_back();
      if (id < 0)
        arrive(~id);
      else
        finishFlight<linkModel>(id);
    }
  }
}

int64_t Evaluator::run(std::span<const int32_t> device,
                       std::span<const int64_t> offset, int64_t cutoff,
                       Schedule *recordTo) {
  record = recordTo;
  int64_t makespan = never;
  if (prepare(device, offset, cutoff))
    switch (model.machine->linkModel) {
    case LinkModel::Unlimited:
      makespan = simulate<LinkModel::Unlimited>(cutoff);
      break;
    case LinkModel::Parallel:
      makespan = simulate<LinkModel::Parallel>(cutoff);
      break;
    case LinkModel::Duplex:
      makespan = simulate<LinkModel::Duplex>(cutoff);
      break;
    case LinkModel::Sequential:
      makespan = simulate<LinkModel::Sequential>(cutoff);
      break;
    }
  if (makespan > cutoff)
    makespan = never;
  if (record)
    record->makespan = makespan;
  return makespan;
}
