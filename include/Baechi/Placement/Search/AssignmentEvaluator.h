//===- AssignmentEvaluator.h - What assignments are worth, many times -*- C++
//-*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// For searches and learned placers that try a hundred thousand assignments of
/// one problem: what all calls share is computed once.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_PLACEMENT_SEARCH_ASSIGNMENTEVALUATOR_H
#define BAECHI_PLACEMENT_SEARCH_ASSIGNMENTEVALUATOR_H

#include "Baechi/Placement/Model/Placement.h"

#include <memory>
#include <span>
#include <string>

namespace baechi::placement {

/// A step as the list scheduler of `place` runs it without a look at memory.
struct Evaluation {
  /// The largest number where there is no step.
  int64_t makespanNs = 0;
  std::vector<int64_t> peakBytes; ///< per device
  /// Why there is no step: names an edge whose ends are on devices that cannot
  /// talk. Empty: there is one.
  std::string problem;
};

/// One problem. Not for several threads at once: one evaluator each.
class AssignmentEvaluator {
public:
  /// Null, and what `check` says of the problem in \p error, when it is not
  /// well formed.
  static std::unique_ptr<AssignmentEvaluator> create(Problem problem,
                                                     std::string &error);
  ~AssignmentEvaluator();

  const Problem &problem() const;
  /// Operators of one unit are on one device: a number an operator, from 0.
  const std::vector<int32_t> &units() const;
  int32_t numUnits() const;
  /// Whether kinds and pins let every operator of a unit run on a device.
  bool mayUse(int32_t unit, int32_t device) const;

  /// An assignment is a device an operator. \p order, unless empty, has every
  /// operator once, the most urgent first; of what is ready, a device runs the
  /// most urgent. Empty: by the longest path to the end. A tensor goes to a
  /// device directly, or where there is no link over others. Returns an error,
  /// empty on success, for what is no assignment of this problem.

  /// The time of a step, without the peaks, which cost about as much again.
  /// Devices that cannot talk but must are an error, too.
  std::string makespan(std::span<const int32_t> device,
                       std::span<const int32_t> order, int64_t &ns);
  std::string evaluate(std::span<const int32_t> device,
                       std::span<const int32_t> order, Evaluation &result);
  /// A placement within the memories: as `evaluate` has it where that fits,
  /// otherwise by the scheduler that waits for memory. An error also when no
  /// order of the steps that fits was found.
  std::string schedule(std::span<const int32_t> device,
                       std::span<const int32_t> order, Placement &placement);

private:
  class Implementation;
  explicit AssignmentEvaluator(std::unique_ptr<Implementation> implementation);
  std::unique_ptr<Implementation> implementation;
};

} // namespace baechi::placement

#endif // BAECHI_PLACEMENT_SEARCH_ASSIGNMENTEVALUATOR_H
