//===- Explain.h - Why an operator is where it is ---------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// For an operator of a placement, what every device would have meant: when it
/// could have started there, what the step would have taken, or which limit
/// excludes the device. Works on any valid placement, whoever found it.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_PLACEMENT_STUDY_EXPLAIN_H
#define BAECHI_PLACEMENT_STUDY_EXPLAIN_H

#include "Baechi/Placement/Session/Place.h"

#include <memory>
#include <span>

namespace baechi::placement {

/// What keeps an operator off a device.
enum class Limit {
  None,
  Kind,   ///< it has no time for the device's kind
  Pin,    ///< it is pinned to another device
  Group,  ///< another operator of its group cannot be there
  Link,   ///< the device cannot talk to one that it would have to talk to
  Memory, ///< the bytes do not fit
};

/// One device, and an operator that is or could be there while all else stays
/// as it is. Times are ns since the step began.
struct DeviceChoice {
  int32_t device = 0;
  Limit limit = Limit::None;
  /// What the limit is about, a sentence; empty without one.
  std::string reason;

  // The rest means nothing under Limit::Kind, Pin, Group and Link.

  /// The operator's duration there.
  int64_t timeNs = 0;
  /// When the last of what it waits for would be there: for operands that are
  /// not there in this placement, after a transfer from their producer in the
  /// first gap of the links.
  int64_t arrivalNs = 0;
  /// The operator that comes last, and its output (-1: a control edge); -1:
  /// it waits for nothing.
  int32_t lastOperand = -1;
  int32_t lastOutput = -1;
  /// The device it comes from; \p device itself when it is produced there.
  int32_t lastFrom = -1;
  /// The earliest start: from then on the device is idle for `timeNs`.
  int64_t startNs = 0;
  /// What the device runs until then, when that is after the arrival; else -1.
  int32_t occupant = -1;
  /// Bytes that the operator would bring (its group's resident bytes, its
  /// results and scratch, copies of operands), and those free at that time.
  int64_t neededBytes = 0;
  int64_t freeBytes = 0;
  /// Of the whole step with the operator and its group on this device, all
  /// others where they are, scheduled again. nullopt: not asked for, or it
  /// does not fit.
  std::optional<int64_t> makespanNs;
  std::optional<int64_t> maxLoadNs;
};

struct Explanation {
  int32_t op = 0;
  int32_t device = 0;
  int64_t startNs = 0;
  int64_t timeNs = 0;
  /// Operators that must be on one device, this one included.
  int32_t groupSize = 1;
  /// The makespan hangs on it.
  bool critical = false;
  /// What the placement was judged by.
  Objective objective = Objective::Makespan;
  /// Of the placement itself.
  int64_t makespanNs = 0;
  int64_t maxLoadNs = 0;
  /// Its makespan when it is scheduled again with nothing moved, which is what
  /// those of the devices compare with; nullopt: not asked for.
  std::optional<int64_t> againNs;
  /// One a device, in the machine's order.
  std::vector<DeviceChoice> devices;
  /// Why this device, in a sentence or two.
  std::string why;
};

/// Several operators at once: what the step would be if all of them, with
/// their groups, were on one device.
struct SetExplanation {
  struct OnDevice {
    int32_t operators = 0;
    int64_t timeNs = 0; ///< their work there
    Limit limit = Limit::None;
    std::string reason;
    std::optional<int64_t> makespanNs;
    std::optional<int64_t> maxLoadNs;
  };
  int32_t operators = 0;
  Objective objective = Objective::Makespan;
  int64_t makespanNs = 0;
  int64_t maxLoadNs = 0;
  std::optional<int64_t> againNs;
  std::vector<OnDevice> devices;
};

struct ExplainOptions {
  Objective objective = Objective::Makespan;
  /// Schedule the step again for every device an operator could be moved to:
  /// some milliseconds each at 20,000 operators. Without it, memory excludes a
  /// device by the bytes at the operator's start alone.
  bool reschedule = true;
};

/// Explains operators of one placement; what they share is computed once.
class Explainer {
public:
  /// \p problem must pass `check`, \p placement must pass `verify`; both must
  /// outlive the explainer.
  Explainer(const Problem &problem, const Placement &placement,
            const ExplainOptions &options = {});
  ~Explainer();

  Explanation explain(int32_t op);
  SetExplanation explainSet(std::span<const int32_t> ops);

private:
  class Implementation;
  std::unique_ptr<Implementation> implementation;
};

/// For a person.
std::string explanationText(const Problem &problem,
                            const Explanation &explanation);
std::string explanationText(const Problem &problem,
                            const SetExplanation &explanation);

/// The operators that \p pattern names: by name, by number, or by a pattern of
/// names with `*`, `?` and `[...]`. Returns an error with the closest name when
/// there is none, empty on success.
std::string findOperators(const Graph &graph, const std::string &pattern,
                          std::vector<int32_t> &ops);

} // namespace baechi::placement

#endif // BAECHI_PLACEMENT_STUDY_EXPLAIN_H
