//===- WeakerMachines.h - Machines that can do no more ----------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A placement for a machine whose links do less at a time, or for a part of
/// its devices, is one for the machine itself. So that more is never worse by
/// construction, each of them has a session of its own, and hands its answer on
/// round by round.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_WEAKERMACHINES_H
#define BAECHI_LIB_PLACEMENT_WEAKERMACHINES_H

#include "Session/Session.h"

#include <deque>
#include <span>
#include <string>
#include <vector>

namespace baechi::placement::session {

/// Graphs of up to so many operators are also placed on all weaker machines;
/// larger ones have no time for the same candidates and search so often.
constexpr size_t fewOperators = 1000;

/// The devices of parts of a machine: for every set of devices that are of one
/// kind and memory and have equal links with each other, if these can run all
/// operators, its first 2, 4, 8, 16 ..., of few operators also 3 and 6. Of one
/// set the smaller come first. None where operators have pins: no two devices
/// are equal then.
std::vector<std::vector<int32_t>> partsOf(const Problem &problem);

/// What machines that can do less are asked for.
enum class Help {
  None,
  Placed,   ///< what placers find for all devices with links that do less
  Searched, ///< what a search finds, for parts of the devices, too
};

/// The session of a problem, and those of what can do less.
class Sessions {
public:
  /// \p own has begun; it and the others must outlive this.
  Sessions(const Problem &problem, const PlaceOptions &options, Session &own,
           Help help);
  Sessions(const Sessions &) = delete;

  /// Whether one that is of all devices has no answer yet.
  bool lackAnswer() const;
  /// One more round of each that can still help; false: none can.
  bool search(const search::Round &round);
  /// Whoever has found nothing packs by memory alone.
  void finish();

private:
  struct Weaker {
    Weaker(const Problem &given, Machine machine, const PlaceOptions &options)
        : problem{given.graph, std::move(machine)}, options(options),
          session(problem, this->options, result, /*explains=*/false) {
      this->options.progress = nullptr;
    }
    Problem problem;
    PlaceOptions options;
    PlaceResult result;
    Session session;
  };
  /// A session of the lattice, those that it takes over from before it.
  struct Entry {
    std::string name;
    Session *session = nullptr; ///< none: it has not begun
    LinkModel links = LinkModel::Sequential;
    std::vector<int32_t> devices; ///< the numbers that the problem gives them
    std::vector<size_t> from;
    bool isNeeded = false; ///< it can still help those above it
  };

  void add(LinkModel links, const std::vector<int32_t> &devices);
  const Session *sessionOf(const std::vector<int32_t> &devices) const;
  void connect(Entry &taker);
  bool isSearched(const Entry &entry) const;
  bool canHelp(size_t giver) const;
  bool mayTakeOver(const Entry &taker) const;
  void start(size_t k);
  void begin(bool ofAllDevices);
  void dismiss();
  template <typename Visit>
  void forEachNeeded(std::span<Entry> some, Visit visit);

  const Problem &problem;
  const PlaceOptions &options;
  Session &own;
  Help help;
  size_t numDevices;
  bool isOfOneKind; ///< all devices
  std::vector<search::Round> past;
  std::deque<Weaker> weaker;
  std::vector<Entry> entries; ///< the problem's own comes last
};

} // namespace baechi::placement::session

#endif // BAECHI_LIB_PLACEMENT_WEAKERMACHINES_H
