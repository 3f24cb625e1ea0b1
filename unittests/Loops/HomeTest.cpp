//===- HomeTest.cpp - How arrays are cut ------------------------*- C++ -*-===//
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
/// "dimension: factor, constant, below, above", and how it is sheared.
std::string homeText(const std::vector<Access> &accesses,
                     const std::vector<int64_t> &form) {
  Loop loop;
  loop.keys = {{"i", 4, 8}, {"j", 4, 8}};
  loop.arrays = {
      array("a", std::vector<int64_t>(accesses[0].subscripts.size(), 30))};
  loop.accesses = accesses;
  auto home = homeOf(loop, 0, form);
  if (!home)
    return "none";
  std::string made =
      std::to_string(home->dimension) + ": " + std::to_string(home->factor);
  for (int64_t number : {home->constant, home->below, home->above})
    made += ", " + std::to_string(number);
  if (home->sheared)
    made += ", with " + std::to_string(home->multiple) + " * " +
            std::to_string(*home->sheared);
  return made;
}
} // namespace

TEST(Home, Halos) {
  // Written at i, read at i - 1 and i + 2.
  EXPECT_EQ(homeText({read(0, {at({1}, -1)}), write(0, {at({1})}),
                      read(0, {at({1}, 2)})},
                     {1, 0}),
            "0: 1, 0, 1, 2");
  // Only read: the halo is all above.
  EXPECT_EQ(homeText({read(0, {at({1}, -1)}), read(0, {at({1}, 1)})}, {1, 0}),
            "0: 1, -1, 0, 2");
  // A block's own: 2 * i and 2 * i + 1.
  EXPECT_EQ(homeText({write(0, {at({2}, 1)}), write(0, {at({2})}),
                      read(0, {at({2}, 2)})},
                     {1, 0}),
            "0: 2, 0, 0, 1");
  // The dimension with the least halo.
  EXPECT_EQ(
      homeText({write(0, {at({1}), at({1})}), read(0, {at({1}, -1), at({1})})},
               {1, 0}),
      "1: 1, 0, 0, 0");
}

TEST(Home, None) {
  // A neighbour writes there, too.
  EXPECT_EQ(homeText({write(0, {at({1})}), write(0, {at({1}, 1)})}, {1, 0}),
            "none");
  EXPECT_EQ(homeText({write(0, {at({1})}), read(0, {at({2})})}, {1, 0}),
            "none");
  EXPECT_EQ(homeText({write(0, {at({-1}, 9)})}, {1, 0}), "none");
  EXPECT_EQ(homeText({write(0, {at({0, 1})})}, {1, 0}), "none");
  EXPECT_EQ(homeText({write(0, {at({1})}), read(0, {all()})}, {1, 0}), "none");
  EXPECT_EQ(homeText({write(0, {at({1})}), read(0, {any()})}, {1, 0}), "none");
}

TEST(Home, Diagonals) {
  std::vector<Access> diagonal = {write(0, {at({1}), at({0, 1})}),
                                  read(0, {at({1}, -1), at({0, 1}, -1)})};
  EXPECT_EQ(homeText(diagonal, {1, -1}), "0: 1, 0, 0, 0, with -1 * 1");
  // Along a key, no diagonal is needed.
  EXPECT_EQ(homeText(diagonal, {1, 0}), "0: 1, 0, 1, 0");
  // What is only read stays whole.
  EXPECT_EQ(homeText({diagonal[1]}, {1, -1}), "none");
  diagonal[1] = read(0, {at({1}, -1), at({0, 1}, 2)});
  EXPECT_EQ(homeText(diagonal, {1, -1}), "0: 1, 0, 3, 0, with -1 * 1");
  EXPECT_EQ(homeText(diagonal, {1, 2}), "0: 1, 0, 0, 3, with 2 * 1");
}
