//===- Segments.cpp - What must happen between two operators ----*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Bounds/Segments.h"

#include <algorithm>

using namespace baechi::placement;
using namespace baechi::placement::bounds;

Segments::Segments(const Model &model, std::span<const int64_t> time,
                   std::span<const int64_t> head)
    : model(model), time(time), head(head), moving(model.numTensors, 0),
      position(model.numNodes), index(model.numNodes, -1),
      mark(model.numNodes, 0) {
  for (int32_t k = 0; k < model.numNodes; ++k)
    position[model.order[k]] = k;
  // Over other devices it takes at least one link's time, too.
  for (int32_t c = 0; c < model.numClasses; ++c) {
    int64_t latency = model.classes[c].latencyNs;
    signal = c == 0 ? latency : std::min(signal, latency);
    for (int32_t t = 0; t < model.numTensors; ++t) {
      int64_t ns = model.classTransfer(t, c);
      moving[t] = c == 0 ? ns : std::min(moving[t], ns);
    }
  }
}

/// Calls \p visit with every user and the least time that it takes to get there
/// when it is on another device.
template <typename Visit>
void Segments::forEachEdge(int32_t node, Visit visit) const {
  auto [begin, end] = model.tensorsOf(node);
  for (int32_t t = begin; t < end; ++t)
    for (int32_t user : model.users[t])
      visit(user, moving[t]);
  for (int32_t user : model.controlUsers[node])
    visit(user, signal);
}

/// What \p u reaches and \p v is reached from.
void Segments::collect(int32_t u, int32_t v) {
  int32_t after = ++stamp, between = ++stamp;
  std::vector<int32_t> stack{u};
  while (!stack.empty()) {
    int32_t at = stack.back();
    stack.pop_back();
    forEachEdge(at, [&](int32_t user, int64_t) {
      ++visits;
      if (mark[user] == after || position[user] >= position[v] ||
          head[user] + time[user] > head[v])
        return;
      mark[user] = after;
      stack.push_back(user);
    });
  }
  nodes.assign(1, u);
  stack.assign(1, v);
  while (!stack.empty()) {
    int32_t at = stack.back();
    stack.pop_back();
    model.forEachSource(at, [&](int32_t source) {
      ++visits;
      if (mark[source] != after)
        return;
      mark[source] = between;
      nodes.push_back(source);
      stack.push_back(source);
    });
  }
  nodes.push_back(v);
  std::sort(nodes.begin(), nodes.end(),
            [&](int32_t a, int32_t b) { return position[a] < position[b]; });
}

/// A node that is not on u's device gets something moved on every path from u:
/// on the last edge, or before it when the edge's two ends are together. So it
/// is with v.
void Segments::measure() {
  auto last = static_cast<int32_t>(nodes.size()) - 1;
  around.assign(nodes.size(), {});
  for (int32_t k = 0; k <= last; ++k) {
    index[nodes[k]] = k;
    around[k].time = k == 0 || k == last ? 0 : time[nodes[k]];
  }
  auto forEachNext = [&](int32_t k, auto visit) {
    forEachEdge(nodes[k], [&](int32_t user, int64_t ns) {
      ++visits;
      if (int32_t next = index[user]; next >= 0)
        visit(around[next], next, ns);
    });
  };
  for (int32_t k = 0; k < last; ++k) {
    Around &of = around[k];
    of.away = std::max(of.away, of.head);
    int64_t end = of.head + of.time;
    forEachNext(k, [&](Around &next, int32_t, int64_t ns) {
      next.head = std::max(next.head, end);
      next.away = std::max(next.away,
                           k == 0 ? ns : std::min(end + ns, of.away + of.time));
    });
  }
  for (int32_t k = last; k-- > 0;) {
    Around &of = around[k];
    forEachNext(k, [&](Around &next, int32_t at, int64_t ns) {
      int64_t begin = next.tail + next.time;
      of.tail = std::max(of.tail, begin);
      of.back = std::max(
          of.back,
          at == last ? ns : std::min(begin + ns, next.back + next.time));
    });
    of.back = std::max(of.back, of.tail);
  }
  for (int32_t node : nodes)
    index[node] = -1;
}

/// False: the segment takes longer, wherever its operators are.
bool Segments::fits(int64_t ns) const {
  std::span<const Around> inner(around.begin() + 1, around.end() - 1);
  // u and v on one device: it does all that has no time to go and come back.
  int64_t there = 0;
  for (const Around &of : inner)
    if (of.away + of.time + of.back > ns)
      there += of.time;
  if (there <= ns)
    return true;
  // On two.
  if (around.front().back > ns)
    return false;
  int64_t withU = 0, withV = 0, withEither = 0;
  for (const Around &of : inner) {
    if (model.numDevices > 2 && of.away + of.time + of.back <= ns)
      continue;
    bool mayU = of.head + of.time + of.back <= ns;
    bool mayV = of.away + of.time + of.tail <= ns;
    if (!mayU && !mayV)
      return false;
    withEither += of.time;
    withU += mayV ? 0 : of.time;
    withV += mayU ? 0 : of.time;
  }
  return withU <= ns && withV <= ns && withEither <= 2 * ns;
}

int64_t Segments::between(int32_t u, int32_t v) {
  collect(u, v);
  measure();
  int64_t longest = around.back().head, work = 0;
  for (const Around &of : around)
    work += of.time;
  // Nothing can be beside a chain.
  if (work <= longest || fits(longest))
    return std::max(longest, (work + model.numDevices - 1) / model.numDevices);
  // One device does it in `work`.
  int64_t low = longest, high = work,
          precision = std::max<int64_t>(work / 4096, 1);
  while (high - low > precision) {
    int64_t middle = low + (high - low) / 2;
    (fits(middle) ? high : low) = middle;
  }
  return std::max(low + 1, (work + model.numDevices - 1) / model.numDevices);
}

std::vector<int64_t> Segments::raise(std::span<const int32_t> path,
                                     std::vector<int64_t> before) {
  // About a twentieth of a second; of a large graph not even one segment of the
  // hundreds that would be needed.
  constexpr int64_t effort = 8'000'000;
  constexpr int32_t manyNodes = 100'000;
  auto size = static_cast<int32_t>(path.size());
  struct Found {
    int32_t from, to;
    int64_t ns;
  };
  std::vector<Found> found;
  if (model.numDevices > 1 && model.numNodes <= manyNodes)
    for (int32_t width = 2; width < size && visits < effort;
         width += 1 + width / 40)
      for (int32_t k = 0; k + width < size && visits < effort; ++k) {
        int32_t u = path[k], v = path[k + width];
        if (int64_t ns = between(u, v); ns > head[v] - head[u] - time[u])
          found.push_back({k, k + width, ns});
      }
  std::stable_sort(found.begin(), found.end(),
                   [](const Found &a, const Found &b) { return a.to < b.to; });
  auto next = found.begin();
  for (int32_t k = 0; k < size; ++k) {
    if (k > 0)
      before[k] = std::max(before[k], before[k - 1] + time[path[k - 1]]);
    for (; next != found.end() && next->to == k; ++next)
      before[k] = std::max(before[k], before[next->from] +
                                          time[path[next->from]] + next->ns);
  }
  return before;
}
