//===- Sweep.h - What other machines would do -------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The buyer's questions: the step on more or fewer devices, with more or less
/// memory, over faster or slower links, and the least memory a device must
/// have. The machines are made from one that is given:
///
/// - Its first device is the pattern. The devices of its kind become as many as
///   asked for, with the pattern's memory or the one asked for; the first of
///   them keep their names.
/// - All links between them are as that between the first two of them (or, if
///   there is one only, as its first link); links to other devices are as the
///   pattern's. A link's speed is its bandwidth, latencies stay.
/// - Devices of other kinds stay as they are when some operator cannot do
///   without them, and are left out otherwise.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_PLACEMENT_STUDY_SWEEP_H
#define BAECHI_PLACEMENT_STUDY_SWEEP_H

#include "Baechi/Placement/Session/Place.h"

namespace baechi::placement {

/// A memory to try, of every device of the pattern's kind.
struct SweepMemory {
  enum class Kind {
    AsIs,  ///< the pattern's own
    Bytes, ///< `value` bytes
    Share, ///< `value` / 100 of what one device alone needs
  };
  Kind kind = Kind::AsIs;
  double value = 0;
};

/// Reads "own", a size ("8GiB", "512MiB", "1000000") or a share of what one
/// device alone needs ("50%"). Returns an error, empty on success.
std::string parseSweepMemory(std::string_view text, SweepMemory &memory);

struct SweepOptions {
  std::vector<int32_t> devices = {1, 2, 4, 8};
  /// The first is the one that the links are varied with.
  std::vector<SweepMemory> memory = {
      {}, {SweepMemory::Kind::Share, 50}, {SweepMemory::Kind::Share, 25}};
  /// Factors of the bandwidth; the memory is varied with 1 if it is among
  /// them, else with the first.
  std::vector<double> links = {1, 0.25, 0.5, 2, 4};
  /// Look for the least memory of a device.
  bool leastMemory = true;
  /// How every machine is placed on, and who hears of the progress.
  PlaceOptions place;
};

/// One machine, and the best that was found for it.
struct SweepPoint {
  int32_t devices = 0; ///< of the pattern's kind
  int64_t memoryBytes = 0;
  double linkSpeed = 1;
  bool valid = false;
  /// Why there is no placement.
  std::string problem;
  int64_t makespanNs = 0;
  int64_t maxLoadNs = 0;
  int64_t lowerBoundNs = 0; ///< of the objective
  double gap = 0;
  /// Of the fullest device of the pattern's kind.
  int64_t peakBytes = 0;
  /// Which candidate won.
  std::string winner;
  double seconds = 0;
  /// A point of a machine that is nowhere better, whose placement is taken over
  /// because it is better than what was found here; -1: none.
  int32_t takenFrom = -1;
};

struct LeastMemory {
  int32_t devices = 0;
  /// The smallest memory for which a placement was found, by bisection to two
  /// per cent: an upper bound; nullopt: none at all.
  std::optional<int64_t> bytes;
  /// Why there is none.
  std::string problem;
  /// No placement can do with less.
  int64_t provenBytes = 0;
  /// With `bytes`.
  int64_t makespanNs = 0;
  int32_t tried = 0; ///< calls of `place`
  double seconds = 0;
};

struct Sweep {
  Objective objective = Objective::Makespan;
  std::string pattern; ///< the name of the first device
  /// The step on one device of the pattern with all the memory it needs, and
  /// its peak; 0 when it cannot run the graph alone.
  int64_t oneDeviceNs = 0;
  int64_t oneDeviceBytes = 0;
  /// By devices, memory and links.
  std::vector<SweepPoint> points;
  std::vector<LeastMemory> leastMemory;
  /// What was made of the given machine.
  std::vector<std::string> notes;
  /// What is wrong with the input; then there are no points.
  std::string error;
};

Sweep sweep(const Problem &problem, const SweepOptions &options = {});

} // namespace baechi::placement

#endif // BAECHI_PLACEMENT_STUDY_SWEEP_H
