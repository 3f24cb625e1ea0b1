//===- ChainTable.cpp - The dynamic program of checkpoints ----------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Stages from one to another run, and run back, as Rotor has it (Beaumont et
// al., INRIA RR-9302, theorem 1): forwards to a cut where something is kept;
// all behind it; the way back as far as what is kept allows; then the stages
// before, from their own checkpoint again. Where Rotor keeps what one stage
// leaves or what all behind it need, here one cut may keep either, and the way
// back goes on as long as it finds its operands. For each pair of stages there
// is a front of bytes and times rather than a time for each number of bytes.
//
//===----------------------------------------------------------------------===//

#include "Recompute/Chain.h"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace baechi::placement;
using namespace baechi::placement::recompute;

/// Of all fronts together; so many points are looked at, about.
static constexpr double mostWork = 4e7;
static constexpr int64_t mostPoints = 4096, fewestPoints = 64;

namespace {

/// What it takes to run from a stage to a cut.
struct Advance {
  int64_t bytes = 0; ///< at most, of what is loose and is made
  int64_t ns = 0;
};

/// Bytes that rise and fall within a stretch of the order.
class Profile {
public:
  explicit Profile(const Chain &chain)
      : chain(chain), graph(*chain.graph), lastRead(graph.numTensors()),
        stamp(graph.numTensors(), 0) {}

  /// From stage \p from to \p at. \p isFirst: nothing has run yet; then what is
  /// not loose counts, too.
  Advance advance(int32_t from, int32_t at, Chain::Keep keep, bool isFirst) {
    begin();
    for (int32_t tensor : chain.kept(at, keep))
      note(tensor, stays);
    runs.clear();
    for (int32_t p = chain.cut[at]; p-- > chain.cut[from];) {
      bool runsHere = isFirst;
      forLoose(chain.base[p],
               [&](int32_t tensor) { runsHere |= isNoted(tensor); });
      if (!runsHere)
        continue;
      runs.push_back(p);
      for (int32_t tensor : graph.operands[chain.base[p]])
        if (chain.isLoose[tensor] && !isNoted(tensor))
          note(tensor, p);
    }
    Advance found;
    int64_t level = 0;
    for (size_t k = runs.size(); k-- > 0;) {
      int32_t p = runs[k], op = chain.base[p];
      int64_t made = 0;
      forLoose(op, [&](int32_t tensor) { made += graph.bytes[tensor]; });
      found.ns += graph.timeNs[op];
      found.bytes =
          std::max(found.bytes, level + (isFirst ? made + graph.scratch[op] +
                                                       chain.whileRuns[p]
                                                 : graph.needs[op]));
      forLoose(op, [&](int32_t tensor) {
        if (isNoted(tensor))
          level += graph.bytes[tensor];
      });
      for (int32_t tensor : graph.operands[op])
        if (chain.isLoose[tensor] && chain.stageOf[tensor] >= from &&
            lastRead[tensor] == p)
          level -= graph.bytes[tensor];
    }
    return found;
  }

  /// At most on the way back from \p at to stage \p to, what was kept of \p
  /// from and later stages among it.
  int64_t wayBack(int32_t from, int32_t at, int32_t to, Chain::Keep keep) {
    begin();
    int64_t level = 0, most = 0;
    for (int32_t tensor : chain.kept(at, keep))
      if (chain.stageOf[tensor] >= from)
        note(tensor, stays);
    for (int32_t p = chain.back[to]; p-- > chain.back[at];)
      for (int32_t tensor : graph.operands[chain.base[p]])
        if (isNoted(tensor) && lastRead[tensor] == stays) {
          lastRead[tensor] = p;
          level += graph.bytes[tensor];
        }
    for (int32_t p = chain.back[at]; p < chain.back[to]; ++p) {
      int32_t op = chain.base[p];
      most = std::max(most, level + chain.whileRuns[p] + graph.scratch[op]);
      for (int32_t tensor : graph.operands[op])
        if (isNoted(tensor) && lastRead[tensor] == p)
          level -= graph.bytes[tensor];
    }
    return most;
  }

private:
  static constexpr int32_t stays = std::numeric_limits<int32_t>::max();

  void begin() { ++now; }
  bool isNoted(int32_t tensor) const { return stamp[tensor] == now; }
  void note(int32_t tensor, int32_t p) {
    stamp[tensor] = now;
    lastRead[tensor] = p;
  }
  template <typename Function> void forLoose(int32_t op, Function what) const {
    for (int32_t tensor = graph.firstTensor[op];
         tensor < graph.firstTensor[op + 1]; ++tensor)
      if (chain.isLoose[tensor])
        what(tensor);
  }

  const Chain &chain;
  const RepeatGraph &graph;
  std::vector<int32_t> lastRead; ///< per tensor
  std::vector<int32_t> stamp;    ///< per tensor
  std::vector<int32_t> runs;     ///< positions
  int32_t now = 0;
};

} // namespace

class ChainTable::Builder {
public:
  Builder(ChainTable &table, int64_t most)
      : table(table), chain(table.chain), profile(chain),
        count(chain.numStages()), most(most) {
    double triples = std::pow(count, 3) / 3 + 1;
    slots = std::clamp(static_cast<int64_t>(mostWork / triples), fewestPoints,
                       mostPoints);
    buckets.resize(slots);
  }

  void run() {
    table.fronts.resize(table.number(count, count) + 1);
    for (int32_t to = 0; to <= count; ++to)
      table.fronts[table.number(to, to)] = {Point()};
    findAdvances();
    for (int32_t to = 1; to <= count; ++to)
      for (int32_t from = to; from-- > 0;)
        findFront(from, to);
  }

private:
  int64_t heldOf(int32_t from, int32_t at, Chain::Keep keep) const {
    int64_t bytes = 0;
    for (int32_t tensor : chain.kept(at, keep))
      if (chain.stageOf[tensor] >= from)
        bytes += chain.graph->bytes[tensor];
    return bytes;
  }

  /// What is the same for all ends.
  struct Leg {
    int32_t from, at, to;
    Chain::Keep keep;
    int64_t held, back;
    Advance first, again;
  };

  void findAdvances() {
    legs.resize(count + 1);
    for (int32_t from = 0; from < count; ++from)
      for (int32_t at = from + 1; at <= count; ++at)
        for (Chain::Keep keep : Chain::keeps) {
          if (keep == Chain::WithStage &&
              chain.kept(at, keep).size() ==
                  chain.kept(at, Chain::Checkpoint).size())
            continue;
          Leg leg{from, at, chain.returnsTo(from, at, keep), keep, 0, 0,
                  {},   {}};
          leg.held = heldOf(from, at, keep);
          leg.back = profile.wayBack(from, at, leg.to, keep);
          leg.first = profile.advance(from, at, keep, /*isFirst=*/true);
          leg.again = profile.advance(from, at, keep, /*isFirst=*/false);
          legs[from].push_back(leg);
        }
  }

  void findFront(int32_t from, int32_t to) {
    int64_t here = chain.back[to] < static_cast<int32_t>(chain.base.size())
                       ? chain.before[chain.back[to]]
                       : 0;
    for (Point &point : buckets)
      point.ns = never;
    for (const Leg &leg : legs[from]) {
      if (leg.at > to || (leg.at == to && leg.to == to))
        continue;
      bool isFirst = to == count;
      Point point;
      point.bytes = std::max(leg.back, isFirst ? leg.first.bytes
                                               : here + leg.again.bytes);
      point.ns = isFirst ? 0 : leg.again.ns;
      point.at = leg.at;
      point.to = leg.to;
      point.keep = leg.keep;
      join(point, leg.held, table.fronts[table.number(leg.at, to)],
           table.fronts[table.number(from, leg.to)]);
    }
    Front &front = table.fronts[table.number(from, to)];
    for (const Point &point : buckets)
      if (point.ns < (front.empty() ? never : front.back().ns))
        front.push_back(point);
  }

  /// All that two fronts make together that is not worse than another.
  void join(Point point, int64_t held, const Front &right, const Front &left) {
    if (right.empty() || left.empty())
      return;
    const Point base = point;
    size_t r = 0, l = 0;
    int64_t bytes =
        std::max({base.bytes, right[0].bytes + held, left[0].bytes});
    while (true) {
      while (r + 1 < right.size() && right[r + 1].bytes + held <= bytes)
        ++r;
      while (l + 1 < left.size() && left[l + 1].bytes <= bytes)
        ++l;
      point.bytes = bytes;
      point.ns = base.ns + right[r].ns + left[l].ns;
      point.right = static_cast<int32_t>(r);
      point.left = static_cast<int32_t>(l);
      offer(point);
      bool moreRight = r + 1 < right.size(), moreLeft = l + 1 < left.size();
      if (!moreRight && !moreLeft)
        return;
      bytes = std::min(moreRight ? right[r + 1].bytes + held : never,
                       moreLeft ? left[l + 1].bytes : never);
    }
  }

  void offer(const Point &point) {
    if (point.bytes >= most)
      return;
    Point &best = buckets[static_cast<size_t>(static_cast<double>(point.bytes) /
                                              static_cast<double>(most) *
                                              static_cast<double>(slots))];
    if (point.ns < best.ns || (point.ns == best.ns && point.bytes < best.bytes))
      best = point;
  }

  static constexpr int64_t never = std::numeric_limits<int64_t>::max() / 4;

  ChainTable &table;
  const Chain &chain;
  Profile profile;
  int32_t count;
  int64_t most, slots;
  std::vector<Point> buckets; ///< by bytes
  std::vector<std::vector<Leg>> legs;
};

ChainTable::ChainTable(Chain given, int64_t mostBytes)
    : chain(std::move(given)) {
  Builder(*this, mostBytes).run();
}

int32_t ChainTable::numPoints() const {
  return static_cast<int32_t>(fronts[number(0, chain.numStages())].size());
}

int64_t ChainTable::bytesOf(int32_t point) const {
  return fronts[number(0, chain.numStages())][point].bytes;
}

int64_t ChainTable::againNsOf(int32_t point) const {
  return fronts[number(0, chain.numStages())][point].ns;
}

std::vector<int32_t> ChainTable::runsOf(int32_t point) const {
  std::vector<int32_t> runs;
  auto append = [&](int32_t from, int32_t to) {
    runs.insert(runs.end(), chain.base.begin() + from, chain.base.begin() + to);
  };
  auto run = [&](auto &self, int32_t from, int32_t to, int32_t number) -> void {
    if (from == to)
      return;
    const Point &best = fronts[this->number(from, to)][number];
    if (to == chain.numStages()) {
      append(chain.cut[from], chain.cut[best.at]);
    } else {
      std::vector<int32_t> again = runsAgain(chain, from, best.at, best.keep);
      runs.insert(runs.end(), again.begin(), again.end());
    }
    self(self, best.at, to, best.right);
    append(chain.back[best.at], chain.back[best.to]);
    self(self, from, best.to, best.left);
  };
  run(run, 0, chain.numStages(), point);
  append(chain.back[0], static_cast<int32_t>(chain.base.size()));
  return runs;
}
