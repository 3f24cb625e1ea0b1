//===- SparseLdlTest.cpp - Multifrontal factors ---------------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lp/SparseLdl.h"

#include <gmock/gmock.h>

#include <cmath>
#include <random>

using namespace baechi::placement::lp;

namespace {

/// A random quasi-definite matrix, as lists of entries.
struct Matrix {
  int32_t size, positive;
  std::vector<std::pair<int32_t, int32_t>> places;
  std::vector<double> values, diagonal;

  Matrix(int32_t size, double density, uint32_t seed)
      : size(size), positive(size * 2 / 3), diagonal(size, 1) {
    std::mt19937 random(seed);
    auto below = [&](int32_t n) {
      return static_cast<int32_t>(random() % static_cast<uint32_t>(n));
    };
    for (int32_t k = 0; k < size * density; ++k) {
      int32_t i = below(size), j = below(size);
      if (i == j)
        continue;
      double value = (below(2001) - 1000) / 1000.0;
      places.emplace_back(std::min(i, j), std::max(i, j));
      values.push_back(value);
      // Dominant within the blocks.
      diagonal[i] += std::abs(value);
      diagonal[j] += std::abs(value);
    }
    for (int32_t i = positive; i < size; ++i)
      diagonal[i] *= -1;
  }

  std::vector<double> times(const std::vector<double> &x) const {
    std::vector<double> result(size);
    for (int32_t i = 0; i < size; ++i)
      result[i] = diagonal[i] * x[i];
    for (size_t k = 0; k < places.size(); ++k) {
      auto [i, j] = places[k];
      result[i] += values[k] * x[j];
      result[j] += values[k] * x[i];
    }
    return result;
  }

  void fill(SparseLdl &ldl) const {
    std::fill(ldl.values().begin(), ldl.values().end(), 0.0);
    for (int32_t i = 0; i < size; ++i)
      ldl.values()[ldl.slot(i, i)] += diagonal[i];
    for (size_t k = 0; k < places.size(); ++k)
      ldl.values()[ldl.slot(places[k].first, places[k].second)] += values[k];
  }
};

TEST(SparseLdl, SolvesSystemsOfAnyDensity) {
  for (int32_t size : {1, 2, 3, 10, 60, 300})
    for (double density : {0.0, 0.7, 1.5, 4.0, 30.0}) {
      Matrix matrix(size, density, 7 * size);
      SparseLdl ldl(size, matrix.positive, matrix.places);
      ldl.allocate();
      // Twice: the factors must not depend on what was there before.
      for (int run = 0; run < 2; ++run) {
        matrix.fill(ldl);
        std::vector<double> x;
        for (int32_t i = 0; i < size; ++i)
          x.push_back(std::sin(i + run));
        std::vector<double> b = matrix.times(x), halfway = b;
        EXPECT_EQ(ldl.factor(b), 0);
        ldl.finish(halfway);
        ldl.solve(b);
        EXPECT_EQ(b, halfway);
        for (int32_t i = 0; i < size; ++i)
          EXPECT_NEAR(b[i], x[i], 1e-10) << size << " " << density;
      }
    }
}

TEST(SparseLdl, WorkGrowsWithTheFill) {
  Matrix chain(1000, 0, 1), dense(1000, 20, 1);
  for (int32_t i = 0; i + 1 < 1000; ++i)
    chain.places.emplace_back(i, i + 1);
  SparseLdl a(1000, 1000, chain.places), b(1000, 1000, dense.places);
  EXPECT_LT(a.factorWork(), 20000);
  EXPECT_GT(b.factorWork(), 1e7);
  EXPECT_LT(a.solveWork(), 20000);
}

TEST(SparseLdl, AVanishingPivotTakesItsVariableOut) {
  // Rows 0 and 1 are the same.
  SparseLdl ldl(3, 3, {{0, 1}, {1, 2}});
  ldl.allocate();
  auto add = [&](int32_t i, int32_t j, double value) {
    ldl.values()[ldl.slot(i, j)] += value;
  };
  add(0, 0, 1);
  add(0, 1, 1);
  add(1, 1, 1);
  add(2, 2, 1);
  std::vector<double> x{1, 1, 5};
  EXPECT_EQ(ldl.factor(x), 1);
  ldl.solve(x);
  EXPECT_NEAR(x[0] + x[1], 1, 1e-12);
  EXPECT_NEAR(x[2], 5, 1e-12);
}

} // namespace
