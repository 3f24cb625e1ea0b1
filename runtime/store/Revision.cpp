//===- Revision.cpp - Steps that know how late gradients are ----*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// McMahan and Streeter, "Delay-Tolerant Algorithms for Asynchronous
/// Distributed Online Learning" (adaptive revision), NIPS 2014, as in Bösen:
/// the server knows the sum G of all gradients of a parameter, and each
/// gradient g comes with the sum that was known where it was computed. What
/// came between, b, was stepped with a rate that did not know of g:
///
///   z += g^2 + 2 g b    z' = max(z, z')    x += -rate g + (old rate - rate) b
///
/// with rate = step / sqrt(z'). Without delay b is 0 and this is AdaGrad. The
/// gradients of a row that wait together are one, of what its first knew.
///
/// A row's numbers are x and G, and with it come z and z', both from 0.
///
//===----------------------------------------------------------------------===//

#include "store/StoreState.h"

#include <algorithm>
#include <cmath>

using namespace baechi::store;

const float *ParameterStore::State::revise(ServerStripe &stripe, size_t table,
                                           size_t at, const float *gradients) {
  size_t width = shapes[table].width;
  const float *value = stripe.values.row(at);
  float *sums = stripe.revised.data() + at * 2 * width;
  std::copy_n(gradients, stripe.change.size(), stripe.change.begin());
  for (size_t i = 0; i < width; ++i) {
    double gradient = gradients[i];
    double between = double(value[width + i]) - gradients[width + i];
    double before = sums[width + i];
    double sum = sums[i] + gradient * gradient + 2 * gradient * between;
    double largest = std::max(before, sum);
    auto rateOf = [&](double squares) {
      return squares > 0 ? shapes[table].step / std::sqrt(squares) : 0.0;
    };
    double rate = rateOf(largest);
    stripe.change[i] =
        float(-rate * gradient + (rateOf(before) - rate) * between);
    stripe.change[width + i] = gradients[i];
    sums[i] = float(sum);
    sums[width + i] = float(largest);
  }
  return stripe.change.data();
}
