//===- BlockLayout.cpp - Blocks of a loop and pieces of arrays -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// As python/baechi/loops/blocks.py and pieces.py lay loops out whose entries
/// are known.
///
//===----------------------------------------------------------------------===//

#include "BlockLayout.h"
#include "llvm/ADT/STLExtras.h"

using namespace baechi;
using loops::Access;
using loops::AccessKind;
using loops::Home;
using Form = std::vector<int64_t>;

int64_t Pieces::length() const {
  int64_t longest = 0;
  for (const loops::Span &rows : touched)
    longest = std::max(longest, rows.end - rows.first);
  for (size_t part = 0; part + 1 < bounds.size(); ++part)
    longest = std::max(longest, bounds[part + 1] - bounds[part]);
  return below + longest + above;
}

llvm::SmallVector<Pieces::Halo> Pieces::halos(size_t part) const {
  llvm::SmallVector<Halo> found;
  int64_t first = bounds[part], end = bounds[part + 1];
  for (size_t other = 0; other + 1 < bounds.size(); ++other) {
    int64_t low = other < part ? first - below : end;
    int64_t high = other < part ? first : end + above;
    low = std::max(low, bounds[other]);
    high = std::min(high, bounds[other + 1]);
    if (other != part && low < high)
      found.push_back({other, low, high});
  }
  return found;
}

llvm::SmallVector<int64_t> Pieces::shape(llvm::ArrayRef<int64_t> whole) const {
  llvm::SmallVector<int64_t> made(whole);
  if (isCut() || isMoving())
    made[dimension] = length();
  return made;
}

//===----------------------------------------------------------------------===//
// Where blocks are cut
//===----------------------------------------------------------------------===//

namespace {
/// How many entries of a box have each value of a sum of its keys; fewer bins
/// where there are many values, each of `width` of them.
struct Histogram {
  static constexpr int64_t kMostBins = 1 << 16;

  int64_t first = 0, end = 1, width = 1;
  std::vector<int64_t> counts;

  Histogram(const loops::Loop &loop, const Form &form) {
    for (auto [factor, key] : llvm::zip(form, loop.keys)) {
      first += std::min(factor * key.lower, factor * (key.upper - 1));
      end += std::max(factor * key.lower, factor * (key.upper - 1));
    }
    width = std::max<int64_t>(1, (end - first + kMostBins - 1) / kMostBins);
    counts.assign((end - first + width - 1) / width, 0);
  }

  void add(int64_t value) { ++counts[(value - first) / width]; }
  void fill() { llvm::fill(counts, 1); }
};
} // namespace

static bool isInside(const loops::Loop &loop, const std::vector<int64_t> &key) {
  return llvm::all_of(loop.domain, [&](const loops::Affine &each) {
    return each.of(key) >= 0;
  });
}

/// Parts of about as many entries; of equal ranges where there are more than
/// can be counted at once, as of one key without further bounds.
static std::vector<int64_t> cutsOf(const loops::Loop &loop, const Form &form,
                                   int32_t parts) {
  constexpr int64_t kMostCounted = 1 << 22;
  Histogram histogram(loop, form);
  int64_t entries = 1;
  for (const loops::Key &key : loop.keys)
    entries = std::min(entries * (key.upper - key.lower), kMostCounted + 1);
  bool isKey = llvm::count(form, 0) + 1 == static_cast<int64_t>(form.size());
  if (entries > kMostCounted || (isKey && loop.domain.empty())) {
    histogram.fill();
  } else {
    std::vector<int64_t> key;
    for (const loops::Key &each : loop.keys)
      key.push_back(each.lower);
    bool more = true;
    while (more) {
      if (isInside(loop, key))
        histogram.add(loops::Affine{form, 0}.of(key));
      more = false;
      for (size_t k = key.size(); k-- > 0 && !more;) {
        more = ++key[k] < loop.keys[k].upper;
        if (!more)
          key[k] = loop.keys[k].lower;
      }
    }
  }
  std::vector<int64_t> cuts = loops::balancedCuts(0, histogram.counts, parts);
  for (int64_t &cut : cuts)
    cut = std::min(histogram.first + cut * histogram.width, histogram.end);
  return cuts;
}

//===----------------------------------------------------------------------===//
// Pieces
//===----------------------------------------------------------------------===//

static Pieces cutBy(const Home &home, size_t axis,
                    const std::vector<int64_t> &cuts,
                    const std::vector<int64_t> &extents) {
  Pieces made;
  made.kind = Pieces::Kind::Cut;
  made.axis = axis;
  made.dimension = home.dimension;
  made.below = home.below;
  made.above = home.above;
  int64_t extent = extents[home.dimension], offset = home.constant;
  if (home.sheared) {
    int64_t spread = extents[*home.sheared] - 1;
    made.shear = {static_cast<unsigned>(*home.sheared), home.multiple,
                  std::max<int64_t>(0, -home.multiple) * spread};
    extent += std::abs(home.multiple) * spread;
    offset += made.shear->offset;
  }
  // Of a set's box there may be keys whose positions the array does not have.
  for (int64_t cut : cuts)
    made.bounds.push_back(
        std::clamp<int64_t>(home.factor * cut + offset, 0, extent));
  made.bounds.front() = 0;
  made.bounds.back() = extent;
  return made;
}

static bool isWritten(const loops::Loop &loop, size_t array) {
  return llvm::any_of(loop.accesses, [&](const Access &access) {
    return access.array == static_cast<int32_t>(array) &&
           access.kind != AccessKind::Read;
  });
}

static void include(loops::Span &into, const loops::Span &rows) {
  if (into.empty())
    into = rows;
  else if (!rows.empty())
    into = {std::min(into.first, rows.first), std::max(into.end, rows.end)};
}

/// Rows along \p dimension of \p array that move from block to block: no block
/// changes what another of its clock touches.
static std::optional<Pieces> moveAlong(const loops::Loop &loop,
                                       const loops::Schedule &schedule,
                                       size_t array, unsigned dimension) {
  Pieces made;
  made.kind = Pieces::Kind::Moving;
  made.dimension = dimension;
  int64_t extent = loop.arrays[array].extents[dimension];
  for (const loops::Block &block : schedule.blocks) {
    loops::Span touched, changed;
    for (const Access &access : loop.accesses) {
      if (access.array != static_cast<int32_t>(array))
        continue;
      const loops::Subscript &at = access.subscripts[dimension];
      if (at.kind != loops::Subscript::Kind::At)
        return std::nullopt;
      std::optional<loops::Span> rows = spanOf(loop, schedule, block, at.at);
      if (!rows)
        return std::nullopt;
      if (rows->empty())
        continue;
      rows->end += at.size - 1;
      rows->first = std::clamp<int64_t>(rows->first, 0, extent);
      rows->end = std::clamp<int64_t>(rows->end, 0, extent);
      include(touched, *rows);
      if (access.kind != AccessKind::Read)
        include(changed, *rows);
    }
    made.touched.push_back(touched);
    made.changed.push_back(changed);
  }
  for (size_t a = 0; a < schedule.blocks.size(); ++a)
    for (size_t b = a + 1; b < schedule.blocks.size() &&
                           schedule.blocks[b].clock == schedule.blocks[a].clock;
         ++b)
      if (made.changed[a].meets(made.touched[b]) ||
          made.changed[b].meets(made.touched[a]))
        return std::nullopt;
  return made.length() > 0 ? std::optional(made) : std::nullopt;
}

static std::optional<Pieces>
moving(const loops::Loop &loop, const loops::Schedule &schedule, size_t array) {
  for (unsigned d = 0; d < loop.arrays[array].extents.size(); ++d)
    if (auto made = moveAlong(loop, schedule, array, d))
      return made;
  return std::nullopt;
}

/// What of a loop keeps \p array in one piece, with the mend.
static std::string whyUncut(const loops::Loop &loop,
                            const loops::Verdict &verdict, size_t array) {
  std::string text = schemeText(loop, verdict) + ", but blocks cannot cut '" +
                     loop.arrays[array].name + "': ";
  bool isFirst = true;
  for (const Access &access : loop.accesses)
    if (access.array == static_cast<int32_t>(array)) {
      text += (isFirst ? "" : ", ") + loops::text(loop, access);
      isFirst = false;
    }
  return text + "; a cut is along one sum of the scheme's keys, which all its "
                "accesses have, and all writes with the same number: give it "
                "in parts, an array for each such sum";
}

static std::optional<std::vector<Pieces>>
piecesOf(const loops::Loop &loop, const BlockLayout &layout,
         const std::vector<std::vector<int64_t>> &cuts, std::string &why) {
  std::vector<Pieces> made(loop.arrays.size());
  for (auto [number, array] : llvm::enumerate(loop.arrays)) {
    Pieces &pieces = made[number];
    bool written = isWritten(loop, number);
    if (llvm::is_contained(layout.verdict.reduced, number)) {
      pieces.kind = Pieces::Kind::Reduced;
    } else if (array.buffered && written) {
      pieces.kind = Pieces::Kind::Buffered;
    } else {
      std::optional<Home> best;
      for (auto [axis, form] : llvm::enumerate(layout.schedule.axes)) {
        auto home = homeOf(loop, static_cast<int32_t>(number), form);
        if (!home ||
            (best && home->below + home->above >= best->below + best->above))
          continue;
        best = home;
        pieces = cutBy(*home, axis, cuts[axis], array.extents);
      }
      if (!best && written) {
        auto rows = moving(loop, layout.schedule, number);
        if (!rows) {
          why = whyUncut(loop, layout.verdict, number);
          return std::nullopt;
        }
        pieces = std::move(*rows);
      }
    }
    pieces.written = written;
  }
  return made;
}

static std::optional<BlockLayout> layOutAs(const loops::Loop &loop,
                                           const loops::Plan &plan,
                                           int32_t workers, std::string &why) {
  BlockLayout layout;
  layout.verdict = plan.verdict;
  std::vector<Form> axes = axesOf(loop, plan.verdict);
  std::vector<std::vector<int64_t>> cuts;
  for (auto [form, parts] : llvm::zip(axes, plan.parts))
    cuts.push_back(cutsOf(loop, form, parts));
  layout.schedule = makeSchedule(loop, plan.verdict, cuts, workers);
  auto pieces = piecesOf(loop, layout, cuts, why);
  if (!pieces)
    return std::nullopt;
  layout.pieces = std::move(*pieces);
  return layout;
}

std::optional<BlockLayout> baechi::layOut(const loops::Loop &loop,
                                          int32_t workers,
                                          std::optional<int64_t> entries,
                                          std::string &why) {
  constexpr size_t kMostSampled = 1 << 15;
  loops::Verdict verdict = loops::analyse(loop);
  if (verdict.scheme == loops::Scheme::Serial) {
    why = explain(loop, verdict);
    return std::nullopt;
  }
  std::vector<loops::Plan> plans =
      plansOf(loop, verdict, sampleBox(loop, kMostSampled, entries), workers);
  if (plans.empty()) {
    why = "it is " + schemeText(loop, verdict) +
          ", and blocks need a second sum of keys in which no entry comes "
          "before one that it depends on: read fewer elements of what is "
          "written, at keys and numbers";
    return std::nullopt;
  }
  std::string first;
  while (!plans.empty()) {
    if (auto made = layOutAs(loop, plans[0], workers, why)) {
      made->choice = explainChoice(loop, plans);
      return made;
    }
    if (first.empty())
      first = why;
    plans.erase(plans.begin());
  }
  why = first;
  return std::nullopt;
}
