//===- Surrogate.h - A cheap stand-in for the makespan ----------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_SEARCH_SURROGATE_H
#define BAECHI_LIB_PLACEMENT_SEARCH_SURROGATE_H

#include "Search/Levels.h"
#include "Search/Traffic.h"

namespace baechi::placement::search {

/// Assignments of clusters that balance load, memory and traffic: what to
/// begin a search with. Weighs a p-norm of the devices' loads, one of their
/// traffic, and the cut.
class Surrogate {
public:
  Surrogate(const UnitTable &units, const Level &level, const Traffic &traffic);

  struct Weights {
    double traffic = 0.1;
    double cut = 0;
    double norm = 4; ///< 3 or 4
    int32_t devices = 1;
    int32_t steps = 1000;
  };
  /// Anneals from a random assignment; a device per cluster.
  std::vector<int32_t> sample(const Weights &weights, Random &random) const;

  int32_t size() const { return clusters; }

private:
  int32_t clusters, devices;
  const Traffic &traffic;
  std::vector<double> load;     ///< [cluster * devices + d], shares of all work
  std::vector<double> bytes;    ///< per cluster
  std::vector<double> memory;   ///< per device
  std::vector<uint8_t> allowed; ///< [cluster * devices + d]
  std::vector<int32_t> fastestFirst; ///< devices by the time of all work
  Rows rowsOf;                       ///< cluster -> rows it has a part in
  double allWork;
};

} // namespace baechi::placement::search

#endif // BAECHI_LIB_PLACEMENT_SEARCH_SURROGATE_H
