//===- Shares.h - Items into devices, in fractions --------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_BOUNDS_SHARES_H
#define BAECHI_LIB_PLACEMENT_BOUNDS_SHARES_H

#include <limits>
#include <vector>

namespace baechi::placement::bounds {

/// The linear program of items that take shares of devices of several kinds,
/// split at will, by its dual.
struct Shares {
  static constexpr double impossible = std::numeric_limits<double>::infinity();

  std::vector<double> share;   ///< [item * kinds + kind]
  std::vector<double> devices; ///< per kind, how many there are, at least 1

  /// Of what the items cost on their cheapest kinds, the most over prices of
  /// kinds at which all devices together cost 1. Above 1 the items do not go
  /// into the devices; in general no way to put them there fills each device
  /// less than that. Valid whether or not the best prices are found; exact for
  /// up to two kinds. The search for prices ends at \p enough.
  double price(double enough = impossible) const;

private:
  double at(const std::vector<double> &prices) const;
};

} // namespace baechi::placement::bounds

#endif // BAECHI_LIB_PLACEMENT_BOUNDS_SHARES_H
