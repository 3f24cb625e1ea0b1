//===- Shares.cpp - Items into devices, in fractions ------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Bounds/Shares.h"

#include <algorithm>
#include <numeric>

using namespace baechi::placement;
using namespace baechi::placement::bounds;

double Shares::at(const std::vector<double> &prices) const {
  size_t kinds = prices.size();
  double sum = 0;
  for (size_t item = 0; item < share.size(); item += kinds) {
    double least = impossible;
    for (size_t k = 0; k < kinds; ++k)
      if (share[item + k] != impossible)
        least = std::min(least, prices[k] * share[item + k]);
    sum += least;
  }
  return sum;
}

/// Golden section search (Kiefer 1953) of a concave function on [0, 1], until
/// it is at least \p enough.
template <typename Function>
static void maximize(Function function, double enough) {
  constexpr double golden = 0.6180339887498949;
  constexpr int cuts = 28;
  double low = 0, high = 1;
  double left = 1 - golden, right = golden;
  double atLeft = function(left), atRight = function(right);
  for (int k = 0; k < cuts && std::max(atLeft, atRight) < enough; ++k)
    if (atLeft > atRight) {
      high = right;
      right = left;
      atRight = atLeft;
      left = high - golden * (high - low);
      atLeft = function(left);
    } else {
      low = left;
      left = right;
      atLeft = atRight;
      right = low + golden * (high - low);
      atRight = function(right);
    }
}

double Shares::price(double enough) const {
  double total = std::accumulate(devices.begin(), devices.end(), 0.0);
  std::vector<double> prices(devices.size(), 1 / total);
  double best = at(prices);
  constexpr size_t manyKinds = 8;
  if (devices.size() > manyKinds || best >= enough)
    return best;
  // Moves cost between every two kinds.
  int sweeps = devices.size() > 2 ? 3 : 1;
  for (int sweep = 0; sweep < sweeps; ++sweep)
    for (size_t a = 0; a < devices.size(); ++a)
      for (size_t b = a + 1; b < devices.size(); ++b) {
        double cost = prices[a] * devices[a] + prices[b] * devices[b];
        std::vector<double> tried = prices;
        auto valueOf = [&](double share) {
          tried[a] = share * cost / devices[a];
          tried[b] = (1 - share) * cost / devices[b];
          double value = at(tried);
          if (value > best) {
            best = value;
            prices = tried;
          }
          return value;
        };
        maximize(valueOf, enough);
        if (best >= enough)
          return best;
      }
  return best;
}
