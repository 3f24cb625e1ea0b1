//===- VerdictTest.cpp - Verdicts of known loops ---------------*- C++ -*--===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Loops.h"
#include "gtest/gtest.h"

using namespace baechi::loops;

namespace {
constexpr int64_t kLarge = 1000000;

Loop loopOf(std::vector<Key> keys, std::vector<Array> arrays,
            std::vector<Access> accesses) {
  Loop loop;
  loop.keys = std::move(keys);
  loop.arrays = std::move(arrays);
  loop.accesses = std::move(accesses);
  EXPECT_EQ(check(loop), "");
  return loop;
}

Key i(int64_t upper = kLarge, int64_t lower = 0) { return {"i", lower, upper}; }
Key j(int64_t upper = kLarge, int64_t lower = 0) { return {"j", lower, upper}; }

std::string schemeOf(const Loop &loop) {
  return schemeText(loop, analyse(loop));
}

std::vector<std::string> vectorsOf(const Loop &loop) {
  std::vector<std::string> made;
  for (const Dependence &dependence : analyse(loop).dependences)
    made.push_back(text(dependence));
  return made;
}

/// W[i, :] and H[j, :], both updated.
Loop factorisation() {
  return loopOf({i(), j(2000)},
                {array("W", {kLarge, 16}), array("H", {2000, 16})},
                {read(0, {at({1}), all()}), write(0, {at({1}), all()}),
                 read(1, {at({0, 1}), all()}), write(1, {at({0, 1}), all()})});
}

using Strings = std::vector<std::string>;
} // namespace

TEST(Verdict, EachEntryHasItsOwn) {
  Loop loop = loopOf({i()}, {array("x", {kLarge}), array("y", {kLarge})},
                     {read(0, {at({1})}), write(1, {at({1})})});
  EXPECT_EQ(schemeOf(loop), "independent");
  EXPECT_EQ(vectorsOf(loop), Strings());
}

TEST(Verdict, ScanIsSerial) {
  Loop loop = loopOf({i(kLarge, 1)}, {array("y", {kLarge})},
                     {read(0, {at({1}, -1)}), write(0, {at({1})})});
  EXPECT_EQ(vectorsOf(loop), Strings({"(1)"}));
  EXPECT_EQ(explain(loop, analyse(loop)),
            "serial, no more: y[i - 1] is read, y[i] is written; buffer 'y' to "
            "let its writes be seen late");
}

TEST(Verdict, Factorisation) {
  Loop loop = factorisation();
  EXPECT_EQ(schemeOf(loop), "2D over i and j");
  EXPECT_EQ(vectorsOf(loop).front(), "(0, >=1)");
  EXPECT_EQ(vectorsOf(loop).back(), "(>=1, 0)");
}

TEST(Verdict, SumsOfBlocks) {
  Loop loop = factorisation();
  loop.arrays.push_back(array("s", {}));
  loop.accesses.push_back(add(2, {}));
  EXPECT_EQ(explain(loop, analyse(loop)),
            "serial, no more: s is added to, by several entries at once; allow "
            "its sums another order (reassociate), or buffer 's'");
  loop.reassociate = true;
  EXPECT_EQ(schemeOf(loop), "2D over i and j with sums of 's'");
}

TEST(Verdict, ReadSumsAreNone) {
  Loop loop = factorisation();
  loop.reassociate = true;
  loop.arrays.push_back(array("s", {}));
  loop.accesses.push_back(read(2, {}));
  loop.accesses.push_back(add(2, {}));
  EXPECT_EQ(schemeOf(loop), "serial");
  loop.arrays.back().buffered = true;
  EXPECT_EQ(schemeOf(loop), "2D over i and j");
}

TEST(Verdict, LargeSumsAreCut) {
  Loop loop = loopOf({i()}, {array("s", {}), array("rows", {kLarge})},
                     {add(0, {}), add(1, {at({1})})});
  loop.reassociate = true;
  EXPECT_EQ(schemeOf(loop), "independent with sums of 's'");
}

TEST(Verdict, Wavefront) {
  Loop loop = loopOf({i(100, 1), j(100, 1)}, {array("a", {100, 100})},
                     {read(0, {at({1}, -1), at({0, 1})}),
                      read(0, {at({1}), at({0, 1}, -1)}),
                      write(0, {at({1}), at({0, 1})})});
  EXPECT_EQ(vectorsOf(loop), Strings({"(1, 0)", "(0, 1)"}));
  EXPECT_EQ(schemeOf(loop), "2D over i and j");
  loop.ordered = true;
  EXPECT_EQ(schemeOf(loop), "wavefront over i and j");
}

TEST(Verdict, Skewed) {
  Loop loop = loopOf({i(100, 1), j(99, 1)}, {array("a", {100, 100})},
                     {read(0, {at({1}, -1), at({0, 1}, -1)}),
                      write(0, {at({1}), at({0, 1})})});
  EXPECT_EQ(vectorsOf(loop), Strings({"(1, 1)"}));
  EXPECT_EQ(schemeOf(loop), "1D over i - j");
  loop.accesses[0].subscripts[1] = at({0, 1}, 1);
  EXPECT_EQ(vectorsOf(loop), Strings({"(1, -1)"}));
  EXPECT_EQ(schemeOf(loop), "1D over i + j");
}

TEST(Verdict, Timed) {
  Loop loop = loopOf({i(100, 1), j(99, 1)}, {array("a", {100, 100})},
                     {read(0, {at({1}, -1), at({0, 1})}),
                      read(0, {at({1}, -1), at({0, 1}, -1)}),
                      read(0, {at({1}, -1), at({0, 1}, 1)}),
                      write(0, {at({1}), at({0, 1})})});
  EXPECT_EQ(schemeOf(loop),
            "one after the other in i, those of one value at once");
}

TEST(Verdict, CoefficientsBoundsAndSigns) {
  Loop even = loopOf({i()}, {array("a", {2 * kLarge})},
                     {read(0, {at({2}, 1)}), write(0, {at({2})})});
  EXPECT_EQ(schemeOf(even), "independent");
  Loop halves = loopOf({i()}, {array("a", {2 * kLarge})},
                       {read(0, {at({1})}), write(0, {at({1}, kLarge)})});
  EXPECT_EQ(schemeOf(halves), "independent");
  // Entries 0 and 5, 1 and 4, ... meet.
  Loop mirrored = loopOf({i(6)}, {array("a", {6})},
                         {read(0, {at({1})}), write(0, {at({-1}, 5)})});
  EXPECT_EQ(vectorsOf(mirrored), Strings({"(>=1)", "(>=1)"}));
  EXPECT_EQ(schemeOf(mirrored), "serial");
  Loop far = loopOf({i(2)}, {array("a", {11})},
                    {read(0, {at({1})}), write(0, {at({-1}, 10)})});
  EXPECT_EQ(schemeOf(far), "independent");
}

TEST(Verdict, EdgesOfGraphs) {
  Loop loop = loopOf({{"source", 0, kLarge}, {"target", 0, kLarge}},
                     {array("p", {kLarge}), array("r", {kLarge})},
                     {read(0, {at({1})}), add(1, {at({0, 1})})});
  EXPECT_EQ(schemeOf(loop), "1D over target");
}

TEST(Verdict, ThreeKeys) {
  Loop loop = loopOf({i(100), j(200), {"k", 0, 300}},
                     {array("A", {100}), array("B", {200}), array("C", {300})},
                     {write(0, {at({1})}), read(0, {at({1})}),
                      write(1, {at({0, 1})}), read(1, {at({0, 1})}),
                      write(2, {at({0, 0, 1})}), read(2, {at({0, 0, 1})})});
  EXPECT_EQ(schemeOf(loop), "3D over k, j and i");
}

TEST(Verdict, DataDependent) {
  Loop loop =
      loopOf({i()}, {array("w", {500})}, {read(0, {any()}), write(0, {any()})});
  EXPECT_EQ(explain(loop, analyse(loop)),
            "serial, no more: w[?] is read, w[?] is written, at positions that "
            "depend on data; buffer 'w' to let its writes be seen late");
  loop.arrays[0].buffered = true;
  EXPECT_EQ(schemeOf(loop), "independent");
}

TEST(Verdict, LowerBounds) {
  Loop loop = loopOf({i(20, 10)}, {array("a", {40})},
                     {read(0, {at({1}, -10)}), write(0, {at({1})})});
  EXPECT_EQ(schemeOf(loop), "independent");
}

TEST(Verdict, NumbersThatAreNotKnown) {
  // a[i + n] = a[i] below n, whatever that is.
  Loop loop = loopOf({i()}, {array("a", {-1})},
                     {read(0, {at({1})}), write(0, {at({1})})});
  loop.symbols = {"n"};
  loop.accesses[1].subscripts[0].at.symbols = {1};
  EXPECT_EQ(explain(loop, analyse(loop)),
            "serial, no more: a[i] is read, a[i + n] is written; buffer 'a' to "
            "let its writes be seen late");
  loop.domain = {{{-1}, -1, {1}}};
  EXPECT_EQ(schemeOf(loop), "independent");
}

TEST(Verdict, DomainsOfKeys) {
  // a[j, i] = a[i, j] above the diagonal.
  Loop loop =
      loopOf({i(100), j(100)}, {array("a", {100, 100})},
             {read(0, {at({1}), at({0, 1})}), write(0, {at({0, 1}), at({1})})});
  EXPECT_NE(schemeOf(loop), "independent");
  loop.domain = {{{-1, 1}, -1}};
  EXPECT_EQ(schemeOf(loop), "independent");
}

TEST(Verdict, KeysWithOneValue) {
  // As with several: no two entries differ in i, which makes none independent.
  Loop loop = factorisation();
  loop.keys[0].upper = 1;
  EXPECT_EQ(schemeOf(loop), "2D over i and j");
  EXPECT_EQ(vectorsOf(loop).front(), "(0, >=1)");
  loop.ordered = true;
  EXPECT_EQ(schemeOf(loop), "wavefront over i and j");
  loop.listed = true;
  EXPECT_EQ(schemeOf(loop), "serial");
  // What is not parallel with several is not with one.
  Loop sums = factorisation();
  sums.keys[0].upper = 1;
  sums.arrays.push_back(array("s", {}));
  sums.accesses.push_back(read(2, {}));
  sums.accesses.push_back(add(2, {}));
  EXPECT_EQ(explain(sums, analyse(sums)),
            "serial, no more: s is read, s is added to; buffer 's' to let its "
            "writes be seen late");
  // Entries with the same keys alone follow each other.
  loop = factorisation();
  loop.keys[0].upper = loop.keys[1].upper = 1;
  EXPECT_EQ(schemeOf(loop), "independent");
}

TEST(Verdict, ListedEntriesHaveNoTime) {
  Loop loop = loopOf({i(100, 1), j(99, 1)}, {array("a", {100, 100})},
                     {read(0, {at({1}, -1), at({0, 1})}),
                      read(0, {at({1}, -1), at({0, 1}, 1)}),
                      write(0, {at({1}), at({0, 1})})});
  loop.ordered = true;
  EXPECT_EQ(schemeOf(loop),
            "one after the other in i, those of one value at once");
  loop.listed = true;
  EXPECT_EQ(schemeOf(loop), "serial");
  Loop updates = factorisation();
  updates.ordered = true;
  EXPECT_EQ(schemeOf(updates), "wavefront over i and j");
  updates.listed = true;
  EXPECT_EQ(schemeOf(updates), "serial");
}

TEST(Verdict, SumsInAnyOrder) {
  Loop loop = loopOf({i()}, {array("s", {})}, {add(0, {})});
  EXPECT_EQ(schemeOf(loop), "serial");
  loop.arrays[0].anyOrder = true;
  loop.accesses[0].combiner = "maximum";
  EXPECT_EQ(schemeOf(loop), "independent with copies of 's'");
  EXPECT_EQ(text(loop, loop.accesses[0]), "s is updated by maximum");
}

TEST(Check, NamesThePlace) {
  Loop loop;
  EXPECT_EQ(check(loop), "the loop has no keys: give it one at least");
  loop.keys = {{"i", 3, 3}};
  EXPECT_EQ(check(loop), "key 'i' has no values: [3, 3) is empty");
  loop.keys = {{"i", 0, 8}};
  loop.arrays = {array("w", {4})};
  loop.accesses = {read(0, {at({1})})};
  loop.accesses[0].place = "mf.py:3";
  EXPECT_EQ(check(loop),
            "w[i] is read (mf.py:3): with the keys' bounds that is from 0 to "
            "7, and dimension 0 of 'w' has 4 elements: make the bounds of the "
            "keys narrower, or the array larger");
  loop.accesses[0].subscripts[0].at.constant = -2;
  EXPECT_EQ(check(loop),
            "w[i - 2] is read (mf.py:3): with the keys' bounds that is from "
            "-2 to 5, and dimension 0 of 'w' has 4 elements: make the bounds "
            "of the keys narrower, or add to the position, which does not "
            "count from the end");
  loop.accesses = {read(0, {})};
  EXPECT_EQ(check(loop),
            "w is read: it has 0 subscripts, the array 1 dimensions");
}
