//===- SimulatePass.cpp - What a pass of a schedule takes ------*- C++ -*--===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Loops/Choice.h"
#include "Forms.h"
#include <algorithm>
#include <map>

using namespace baechi::loops;

namespace {
// What a core of a host takes, about. Only how these are to each other matters,
// and that they are the same for all schemes.
constexpr double kEntry = 2;      ///< ns, and what it touches
constexpr double kTouched = 128;  ///< bytes of caches a ns
constexpr double kBlock = 3000;   ///< ns to begin and end one
constexpr double kMessage = 3000; ///< ns, and its bytes
constexpr double kMoved = 8;      ///< bytes a ns

double entryTime(const Loop &loop) {
  double bytes = 0;
  for (const Access &access : loop.accesses) {
    const Array &array = loop.arrays[access.array];
    double elements = 1;
    for (size_t i = 0; i < access.subscripts.size(); ++i) {
      const Subscript &at = access.subscripts[i];
      if (at.kind == Subscript::Kind::All)
        elements *= std::max<int64_t>(array.extents[i], 1);
      else if (at.kind == Subscript::Kind::At)
        elements *= at.size;
    }
    bytes += elements * array.elementBytes;
  }
  return kEntry + bytes / kTouched;
}

/// How an array is kept, as the front ends do.
struct Kept {
  enum class Kind : uint8_t {
    Unused,
    Constant, ///< whole, and read only: each worker has one
    Cut,
    Whole,    ///< written, and in one piece: one block at a time has it
    Sum,      ///< of each block's own
    Buffered, ///< a copy for each block of a clock
  };
  Kind kind = Kind::Unused;
  bool written = false;
  size_t axis = 0;
  double bytes = 0;            ///< of a piece
  double below = 0, above = 0; ///< bytes of strips
};

/// What changes a piece, and when it has ended.
struct State {
  int32_t worker = -1;
  double ready = 0;
  int64_t version = 0;
};

class Pass {
public:
  Pass(const Loop &loop, const Verdict &verdict, const Schedule &schedule)
      : loop(loop), verdict(verdict), schedule(schedule),
        free(schedule.workers, 0) {
    for (size_t array = 0; array < loop.arrays.size(); ++array)
      kept.push_back(keep(static_cast<int32_t>(array)));
    entryNs = entryTime(loop);
  }

  void run(const std::vector<double> &entries) {
    moved = 0;
    begun = now();
    at.clear(); // what is only read comes to each worker anew
    size_t first = 0;
    const std::vector<Block> &blocks = schedule.blocks;
    while (first < blocks.size()) {
      size_t end = first;
      while (end < blocks.size() && blocks[end].clock == blocks[first].clock)
        ++end;
      runClock(first, end, entries);
      first = end;
    }
    std::fill(free.begin(), free.end(), std::max(now(), together));
  }
  PassCost cost() const { return {now() - begun, static_cast<int64_t>(moved)}; }

private:
  using Piece = std::pair<size_t, int32_t>; ///< array and part

  Kept keep(int32_t array) const;
  double now() const { return *std::max_element(free.begin(), free.end()); }
  int32_t partOf(const Kept &array, const Block &block) const {
    return array.kind == Kept::Kind::Cut ? block.parts[array.axis] : 0;
  }

  void runClock(size_t first, size_t end, const std::vector<double> &entries) {
    const std::map<Piece, State> earlier = pieces;
    double last = 0;
    for (size_t b = first; b < end; ++b) {
      const Block &block = schedule.blocks[b];
      double start = std::max(free[block.worker], together);
      double taken = 0; // messages take the receiver's time
      for (size_t a = 0; a < kept.size(); ++a)
        receive(a, block, earlier, start, taken);
      double ended = start + taken + kBlock + entries[b] * entryNs;
      for (size_t a = 0; a < kept.size(); ++a)
        if (kept[a].kind == Kept::Kind::Sum)
          ended += kept[a].bytes / kMoved; // zeros
      free[block.worker] = ended;
      last = std::max(last, ended);
      for (size_t a = 0; a < kept.size(); ++a)
        if (kept[a].written) {
          State &state = pieces[{a, partOf(kept[a], block)}];
          state = {block.worker, ended, state.version + 1};
        }
    }
    addUp(first, end, last);
  }

  void message(double bytes, double &taken) {
    taken += kMessage + bytes / kMoved;
    moved += bytes;
  }

  void receive(size_t a, const Block &block,
               const std::map<Piece, State> &earlier, double &start,
               double &taken) {
    const Kept &array = kept[a];
    int32_t part = partOf(array, block);
    switch (array.kind) {
    case Kept::Kind::Constant:
    case Kept::Kind::Cut:
    case Kept::Kind::Whole:
      break;
    default:
      return;
    }
    if (!array.written) {
      // The first worker keeps it from pass to pass.
      auto [owner, isNew] = owners.try_emplace({a, part}, block.worker);
      if (owner->second != block.worker &&
          at.try_emplace({{a, part}, block.worker}, true).second)
        message(array.bytes, taken);
      return;
    }
    auto piece = pieces.find({a, part});
    if (piece != pieces.end()) {
      start = std::max(start, piece->second.ready);
      if (piece->second.worker != block.worker)
        message(array.bytes, taken);
    }
    for (int32_t side : {-1, 1}) {
      double strip = side < 0 ? array.below : array.above;
      auto beside = earlier.find({a, part + side});
      if (strip == 0 || beside == earlier.end())
        continue;
      int64_t &seen = halos[{{a, part}, side}];
      if (seen == beside->second.version)
        continue;
      seen = beside->second.version;
      start = std::max(start, beside->second.ready);
      if (beside->second.worker != block.worker)
        message(strip, taken);
    }
  }

  /// What the blocks of a clock have changed in copies of their own.
  void addUp(size_t first, size_t end, double last) {
    double others = 0;
    for (size_t b = first + 1; b < end; ++b)
      others += schedule.blocks[b].worker != schedule.blocks[first].worker;
    for (const Kept &array : kept) {
      bool isBuffered = array.kind == Kept::Kind::Buffered;
      if (!isBuffered && array.kind != Kept::Kind::Sum)
        continue;
      double taken = static_cast<double>(end - first) * array.bytes / kMoved;
      for (double other = 0; other < others; ++other)
        message(array.bytes, taken); // there
      if (isBuffered) {              // and the sum of all back, before the next
        moved += others * array.bytes;
        if (others > 0)
          taken += kMessage + array.bytes / kMoved;
        together = std::max(together, last + taken);
        continue;
      }
      double &adds = free[schedule.blocks[first].worker];
      adds = std::max(adds, last) + taken;
    }
  }

  const Loop &loop;
  const Verdict &verdict;
  const Schedule &schedule;
  std::vector<Kept> kept;
  std::vector<double> free; ///< by worker
  std::map<Piece, State> pieces;
  std::map<Piece, int32_t> owners;
  std::map<std::pair<Piece, int32_t>, bool> at;
  std::map<std::pair<Piece, int32_t>, int64_t> halos;
  double entryNs = 0, begun = 0, moved = 0;
  double together = 0; ///< no block begins before
};
} // namespace

Kept Pass::keep(int32_t array) const {
  const Array &of = loop.arrays[array];
  Kept made;
  bool used = false;
  for (const Access &access : loop.accesses)
    if (access.array == array) {
      used = true;
      made.written |= access.kind != AccessKind::Read;
    }
  made.bytes = static_cast<double>(bytesOf(of));
  if (!used)
    return made;
  const std::vector<int32_t> &sums = verdict.reduced;
  if (std::find(sums.begin(), sums.end(), array) != sums.end() ||
      (of.buffered && made.written)) {
    made.kind =
        of.buffered && made.written ? Kept::Kind::Buffered : Kept::Kind::Sum;
    made.written = false; // no piece that one block has
    return made;
  }
  std::optional<Home> best;
  for (size_t axis = 0; axis < schedule.axes.size(); ++axis) {
    auto home = homeOf(loop, array, schedule.axes[axis]);
    if (!home ||
        (best && home->below + home->above >= best->below + best->above))
      continue;
    best = home;
    made.axis = axis;
  }
  if (!best) {
    made.kind = made.written ? Kept::Kind::Whole : Kept::Kind::Constant;
    return made;
  }
  made.kind = Kept::Kind::Cut;
  double rows = std::max<int64_t>(of.extents[best->dimension], 1);
  made.below = made.written ? best->below * made.bytes / rows : 0;
  made.above = made.written ? best->above * made.bytes / rows : 0;
  made.bytes /= std::max<double>(schedule.cuts[made.axis].size() - 1, 1);
  return made;
}

/// How many entries each block has.
static std::vector<double> entriesOf(const Schedule &schedule,
                                     const Sample &sample) {
  size_t all = 1;
  auto flat = [&](auto partOf) {
    size_t number = 0;
    for (size_t axis = 0; axis < schedule.axes.size(); ++axis)
      number = number * (schedule.cuts[axis].size() - 1) + partOf(axis);
    return number;
  };
  for (const std::vector<int64_t> &cuts : schedule.cuts)
    all *= cuts.size() - 1;
  std::vector<double> counted(all, 0), entries;
  for (const std::vector<int64_t> &entry : sample.entries)
    counted[flat([&](size_t axis) {
      int64_t sum = 0;
      for (size_t k = 0; k < entry.size(); ++k)
        sum += schedule.axes[axis][k] * entry[k];
      const std::vector<int64_t> &cuts = schedule.cuts[axis];
      return std::upper_bound(cuts.begin() + 1, cuts.end() - 1, sum) -
             cuts.begin() - 1;
    })] += sample.each;
  for (const Block &block : schedule.blocks)
    entries.push_back(counted[flat([&](size_t a) { return block.parts[a]; })]);
  return entries;
}

PassCost baechi::loops::simulatePass(const Loop &loop, const Verdict &verdict,
                                     const Schedule &schedule,
                                     const Sample &sample) {
  std::vector<double> entries = entriesOf(schedule, sample);
  Pass pass(loop, verdict, schedule);
  pass.run(entries); // pieces are then where the pass before has left them
  pass.run(entries);
  return pass.cost();
}
