//===- OracleTest.cpp - Verdicts beside brute force ------------*- C++ -*--===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Verdicts and schedules of random loops, beside what trying all pairs of
/// entries says.
///
//===----------------------------------------------------------------------===//

#include "Loops.h"
#include "gtest/gtest.h"
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>

using namespace baechi::loops;

namespace {
using Vector = std::vector<int64_t>;

class RandomLoops {
public:
  explicit RandomLoops(uint32_t seed) : random(seed) {}

  Loop next() {
    Loop loop;
    static const char *const kNames[] = {"i", "j", "k"};
    for (int64_t k = 0, keys = below(3) + 1; k < keys; ++k) {
      int64_t lower = below(4);
      loop.keys.push_back({kNames[k], lower, lower + below(5) + 1});
    }
    for (int64_t a = 0, arrays = below(2) + 1; a < arrays; ++a)
      addArray(loop, a);
    loop.ordered = below(2);
    loop.reassociate = below(2);
    return loop;
  }

private:
  int64_t below(int64_t bound) { return random() % bound; }

  void addArray(Loop &loop, int32_t number) {
    size_t dimensions = below(2) + 1;
    Array made{"a" + std::to_string(number), Vector(dimensions, 1), 4, false};
    size_t first = loop.accesses.size();
    for (int64_t n = 0, accesses = below(3) + 1; n < accesses; ++n) {
      Access access{number, static_cast<AccessKind>(below(3)), {}, ""};
      for (size_t i = 0; i < dimensions; ++i)
        access.subscripts.push_back(subscript(loop));
      loop.accesses.push_back(access);
    }
    // Positions begin at 0, and the array ends where they do.
    for (size_t i = 0; i < dimensions; ++i) {
      int64_t least = 0;
      for (size_t a = first; a < loop.accesses.size(); ++a)
        for (const Vector &entry : allEntries(loop))
          least = std::min(least, loop.accesses[a].subscripts[i].at.of(entry));
      for (size_t a = first; a < loop.accesses.size(); ++a) {
        Subscript &subscript = loop.accesses[a].subscripts[i];
        if (subscript.kind != Subscript::Kind::At)
          continue;
        subscript.at.constant -= least;
        for (const Vector &entry : allEntries(loop))
          made.extents[i] = std::max(made.extents[i],
                                     subscript.at.of(entry) + subscript.size);
      }
    }
    loop.arrays.push_back(made);
  }

  Subscript subscript(const Loop &loop) {
    Subscript made;
    int64_t kind = below(12);
    made.kind = kind == 0   ? Subscript::Kind::All
                : kind == 1 ? Subscript::Kind::Unknown
                            : Subscript::Kind::At;
    if (made.kind != Subscript::Kind::At)
      return made;
    made.at.constant = below(4);
    made.size = below(8) == 0 ? 2 : 1;
    // Most loops have one key a subscript.
    bool several = below(3) == 0;
    made.at.coefficients.assign(loop.keys.size(), 0);
    for (int64_t &c : made.at.coefficients)
      c = several ? below(7) - 3 : 0;
    if (!several)
      made.at.coefficients[below(loop.keys.size())] =
          below(4) == 0 ? below(7) - 3 : 1;
    return made;
  }

  std::mt19937 random;
};

/// A number of the environment: BAECHI_RANDOM_LOOPS asks for more than a test
/// takes, BAECHI_RANDOM_SEED for others (scripts/soundness).
int asked(const char *name, int usual) {
  const char *given = std::getenv(name);
  return given ? std::atoi(given) : usual;
}

/// What scripts/soundness adds up.
void tell(const char *what, int loops, int parallel, int found) {
  if (std::getenv("BAECHI_RANDOM_SEED"))
    std::printf("%s loops=%d parallel=%d found=%d\n", what, loops, parallel,
                found);
}

/// What tells of two accesses of two entries that they meet.
class Oracle {
public:
  Oracle(const Loop &loop, const std::vector<int32_t> &reduced) : loop(loop) {
    entries = allEntries(loop);
    for (size_t x = 0; x < entries.size(); ++x)
      for (size_t y = x + 1; y < entries.size(); ++y)
        if (meet(entries[x], entries[y], reduced)) {
          Vector distance;
          for (size_t k = 0; k < loop.keys.size(); ++k)
            distance.push_back(entries[y][k] - entries[x][k]);
          distances.push_back(distance); // the later entry is y
        }
  }

  bool differInAll(const std::vector<Vector> &forms) const {
    return std::any_of(
        distances.begin(), distances.end(), [&](const Vector &distance) {
          return std::all_of(forms.begin(), forms.end(),
                             [&](const Vector &form) {
                               return Affine{form, 0}.of(distance) != 0;
                             });
        });
  }
  bool allAtLeast(const Vector &form, int64_t least) const {
    return std::all_of(distances.begin(), distances.end(),
                       [&](const Vector &distance) {
                         return Affine{form, 0}.of(distance) >= least;
                       });
  }
  /// The keys of a least set in all of which dependent entries never differ,
  /// though others may: in a key with one value none does.
  size_t leastDisjoint() const {
    size_t least = SIZE_MAX;
    for (size_t set = 1; set < size_t(1) << loop.keys.size(); ++set) {
      std::vector<Vector> forms;
      bool isSame = false;
      for (size_t k = 0; k < loop.keys.size(); ++k)
        if (set >> k & 1) {
          forms.emplace_back(loop.keys.size(), 0);
          forms.back()[k] = 1;
          isSame |= loop.keys[k].upper - loop.keys[k].lower == 1;
        }
      if (!isSame && !differInAll(forms))
        least = std::min(least, forms.size());
    }
    return least;
  }

  std::vector<Vector> entries, distances;

private:
  bool meet(const Vector &x, const Vector &y,
            const std::vector<int32_t> &reduced) const {
    for (const Access &a : loop.accesses)
      for (const Access &b : loop.accesses)
        if (a.array == b.array &&
            (a.kind != AccessKind::Read || b.kind != AccessKind::Read) &&
            !std::count(reduced.begin(), reduced.end(), a.array) &&
            overlap(a, x, b, y))
          return true;
    return false;
  }
  static bool overlap(const Access &a, const Vector &x, const Access &b,
                      const Vector &y) {
    for (size_t i = 0; i < a.subscripts.size(); ++i) {
      const Subscript &mine = a.subscripts[i], &other = b.subscripts[i];
      if (mine.kind != Subscript::Kind::At || other.kind != Subscript::Kind::At)
        continue;
      int64_t first = mine.at.of(x), second = other.at.of(y);
      if (first + mine.size <= second || second + other.size <= first)
        return false;
    }
    return true;
  }

  const Loop &loop;
};

std::string describe(const Loop &loop) {
  std::string made;
  for (const Key &key : loop.keys)
    made += key.name + " in [" + std::to_string(key.lower) + ", " +
            std::to_string(key.upper) + ") ";
  for (const Access &access : loop.accesses)
    made += text(loop, access) + "; ";
  return made + explain(loop, analyse(loop));
}

void checkSound(const Loop &loop, const Verdict &verdict,
                const Oracle &oracle) {
  std::vector<Vector> axes = axesOf(loop, verdict);
  switch (verdict.scheme) {
  case Scheme::Independent:
    EXPECT_TRUE(oracle.distances.empty());
    break;
  case Scheme::Disjoint:
  case Scheme::Skewed:
    EXPECT_FALSE(oracle.differInAll(axes));
    break;
  case Scheme::Wavefront:
    EXPECT_FALSE(oracle.differInAll(axes));
    for (const Vector &axis : axes)
      EXPECT_TRUE(oracle.allAtLeast(axis, 0));
    break;
  case Scheme::Timed:
    EXPECT_TRUE(oracle.allAtLeast(verdict.form, 1));
    for (const Vector &axis : axes)
      EXPECT_TRUE(oracle.allAtLeast(axis, 0));
    break;
  case Scheme::Serial:
    break;
  }
}

bool inHull(const Vector &distance, const Dependence &dependence) {
  for (size_t k = 0; k < distance.size(); ++k) {
    auto [least, most] = dependence.distances[k];
    if ((least && distance[k] < *least) || (most && distance[k] > *most))
      return false;
  }
  return true;
}
} // namespace

TEST(Oracle, RandomLoops) {
  RandomLoops loops(asked("BAECHI_RANDOM_SEED", 7));
  int count = asked("BAECHI_RANDOM_LOOPS", 1500), parallel = 0, found = 0;
  for (int n = 0; n < count && !HasFailure(); ++n) {
    Loop loop = loops.next();
    SCOPED_TRACE(describe(loop));
    ASSERT_EQ(check(loop), "");
    Verdict verdict = analyse(loop);
    // So are the other schemes, which may be chosen, too.
    std::vector<Verdict> schemes = schemesOf(loop, verdict);
    schemes.push_back(verdict);
    for (const Verdict &each : schemes)
      checkSound(loop, each, Oracle(loop, each.reduced));
    // Every dependence is told of.
    Oracle all(loop, {});
    for (const Vector &distance : all.distances)
      EXPECT_TRUE(std::any_of(verdict.dependences.begin(),
                              verdict.dependences.end(),
                              [&](const Dependence &dependence) {
                                return inHull(distance, dependence);
                              }));
    // And no better scheme is missed.
    if (verdict.reduced.empty()) {
      size_t least = all.leastDisjoint();
      if (all.distances.empty()) {
        EXPECT_EQ(verdict.scheme, Scheme::Independent);
        ++parallel;
        found += verdict.scheme == Scheme::Independent;
      } else if (least == 1 || (!loop.ordered && least <= 3)) {
        EXPECT_EQ(verdict.keys.size(), least);
        ++parallel;
        found += verdict.keys.size() == least;
      }
    }
  }
  tell("verdicts", count, parallel, found);
}

TEST(Oracle, BlocksOfAClockDoNotMeet) {
  RandomLoops loops(asked("BAECHI_RANDOM_SEED", 11));
  int count = asked("BAECHI_RANDOM_LOOPS", 1000), parallel = 0;
  for (int n = 0; n < count && !HasFailure(); ++n) {
    Loop loop = loops.next();
    Verdict verdict = analyse(loop);
    if (axesOf(loop, verdict).empty())
      continue;
    SCOPED_TRACE(describe(loop));
    auto entries = allEntries(loop);
    bool several = false;
    for (const Verdict &each : schemesOf(loop, verdict)) {
      Schedule schedule = scheduleOf(loop, each, 2, 1 + n % 2);
      EXPECT_EQ(findRace(loop, each, schedule, entries), std::nullopt)
          << schemeText(loop, each);
      several |= schedule.blocks.size() > 1;
    }
    parallel += several;
  }
  EXPECT_GT(parallel, count / 7);
  tell("schedules", count, parallel, parallel);
}
