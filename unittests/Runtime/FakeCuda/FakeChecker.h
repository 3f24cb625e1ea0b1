//===- FakeChecker.h - Are uses of device memory ordered -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A happens-before checker. Each stream, and the host, has a clock; an event
/// carries the clocks of all that came before its record. Two uses of the same
/// bytes, one of which writes, must be ordered by these, whatever order they
/// really ran in. The host's threads count as one: the runtime orders them.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_UNITTESTS_RUNTIME_FAKECUDA_FAKECHECKER_H
#define BAECHI_UNITTESTS_RUNTIME_FAKECUDA_FAKECHECKER_H

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace fakecuda {

/// How far each timeline is known to have come.
using Clocks = std::vector<uint64_t>;
void join(Clocks &into, const Clocks &other);

class Checker {
public:
  static constexpr size_t host = 0;

  /// A new timeline: a stream.
  size_t addTimeline();
  /// What a timeline does next comes after all that \p clocks tell.
  void order(size_t timeline, const Clocks &clocks) {
    join(timelines[timeline], clocks);
  }
  /// A step of the timeline: its clocks then, which later work may wait for.
  const Clocks &advance(size_t timeline);
  const Clocks &clocksOf(size_t timeline) const { return timelines[timeline]; }

  void allocate(uintptr_t begin, size_t bytes);
  void free(uintptr_t begin);
  /// Memory that goes with its context, whoever may use it still.
  void drop(uintptr_t begin);
  bool isAllocated(uintptr_t begin) const { return allocations.count(begin); }

  /// A use of device memory in the step that advance() began. Memory that is
  /// not a device's is not looked at.
  void use(size_t timeline, uintptr_t begin, size_t bytes, bool writes,
           const std::string &who);

  void blame(const std::string &what);
  std::vector<std::string> misuses;

private:
  struct Use {
    uintptr_t begin, end;
    bool writes;
    size_t timeline;
    uint64_t time;
    std::string who;
  };
  struct Allocation {
    uintptr_t end;
    std::vector<Use> uses;
  };
  using Allocations = std::map<uintptr_t, Allocation>;
  Allocations::iterator find(uintptr_t address);

  std::vector<Clocks> timelines{Clocks{0}};
  Allocations allocations;
  /// Freed ranges, until they are allocated again.
  std::map<uintptr_t, uintptr_t> freed;
};

} // namespace fakecuda

#endif // BAECHI_UNITTESTS_RUNTIME_FAKECUDA_FAKECHECKER_H
