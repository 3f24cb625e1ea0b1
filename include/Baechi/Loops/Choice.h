//===- Choice.h - Which of a loop's schemes is best ------------*- C++ -*--===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A loop often has several schemes: other keys to cut along, other arrays that
/// stay, more and smaller blocks. Each is simulated with entries of the loop,
/// on as many devices as there are workers, and chosen by the time of a pass
/// and the bytes that it moves, as Orion's paper does by bytes (EuroSys 2019,
/// section 4.3). The choice follows from the loop, its entries and the workers:
/// devices, and how fast they are, change no block.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LOOPS_CHOICE_H
#define BAECHI_LOOPS_CHOICE_H

#include "Baechi/Loops/Schedule.h"

namespace baechi::loops {

/// Some of a loop's entries.
struct Sample {
  std::vector<std::vector<int64_t>> entries; ///< key vectors
  double each = 1;                           ///< how many one stands for
};

/// At most \p most of the key vectors of \p loop's box and domain, spread
/// evenly. \p entries: how many there are, or none: one a key vector.
Sample sampleBox(const Loop &loop, size_t most,
                 std::optional<int64_t> entries = std::nullopt);

/// What a pass takes when passes follow each other.
struct PassCost {
  double nanoseconds = 0;
  int64_t bytes = 0; ///< that move between workers
};

PassCost simulatePass(const Loop &loop, const Verdict &verdict,
                      const Schedule &schedule, const Sample &sample);

/// A scheme with the number of parts of each axis.
struct Plan {
  Verdict verdict;
  std::vector<int32_t> parts;
  PassCost cost;
};

/// All that were looked at, the best one first: of those that take no more than
/// a twentieth longer than the fastest the one that moves the fewest bytes, of
/// equal ones that which `analyse` names, in its fewest blocks. The others by
/// their times. None for a scheme that has no blocks. Of plans with very many
/// blocks only the first is looked at.
std::vector<Plan> plansOf(const Loop &loop, const Verdict &first,
                          const Sample &sample, int32_t workers);

/// "1D over j in 4 parts: 1.200 ms a pass, 3.1 MiB moved".
std::string text(const Loop &loop, const Plan &plan);
/// The first of \p plans, and what it was compared with.
std::string explainChoice(const Loop &loop, const std::vector<Plan> &plans);

} // namespace baechi::loops

#endif // BAECHI_LOOPS_CHOICE_H
