//===- Conflicts.h - Which commands must follow which -----------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Commands of one device are asked for one after the other; placement, memory
/// plan and step function take it that they run so. They may run in any order
/// that leaves each pair of commands in conflict as it was asked for: a
/// conflict is that both touch the same byte, and one of the two writes it.
///
/// Then every command reads what it would read one after the other. Take the
/// first, as asked, that reads another value at some byte: the last command
/// before it that writes this byte is in conflict with it, so it ran before,
/// and wrote what it would; any other command that writes the byte comes before
/// that one or after the reader, is in conflict with both, and so did not run
/// in between. So no command is the first. The same holds for what memory holds
/// at the end, as if a last command read all of it. Nothing is assumed of why
/// two tensors lie at one place: memory that is used again is a conflict like
/// any other.
///
/// A command of which it is not known what it touches is in conflict with all.
///
/// The runtime orders a GPU's commands so (drivers/cuda/CudaReplay.h), and the
/// simulation of a step predicts them so (Analysis/GpuRun.h).
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_SUPPORT_CONFLICTS_H
#define BAECHI_SUPPORT_CONFLICTS_H

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace baechi::support {

/// Bytes from `begin` up to `end` that a command reads or writes.
struct Access {
  uintptr_t begin, end;
  bool writes;
};
using Accesses = std::vector<Access>;

/// Takes commands in the order that they are asked for in, numbered from 0.
class Conflicts {
public:
  /// Between two commands that all others are in conflict with: the memory of
  /// this class grows with the square.
  static constexpr size_t mostBetween = 8192;

  /// The commands that the next one must come after, in ascending order,
  /// without those that one of these comes after itself.
  std::vector<size_t> add(std::span<const Access> accesses);
  /// The same for one that is in conflict with all.
  std::vector<size_t> addUnknown();

private:
  /// Up to the next segment of the map, or `end`.
  struct Segment {
    uintptr_t end;
    /// The last command that writes it; `none` if none does since the last that
    /// is in conflict with all.
    size_t writer;
    /// Those that have read it since.
    std::vector<size_t> readers;
  };
  using Segments = std::map<uintptr_t, Segment>;
  static constexpr size_t none = SIZE_MAX;

  /// Cuts segments so that some of them are exactly this range; the first.
  Segments::iterator isolate(uintptr_t begin, uintptr_t end);
  std::vector<size_t> reduce(std::vector<size_t> &found) const;
  void enter(const std::vector<size_t> &after);

  Segments segments;
  /// Of the last command that is in conflict with all; `none` if there is none.
  size_t barrier = none;
  /// The first command behind that one.
  size_t first = 0;
  size_t count = 0;
  using Bits = std::vector<uint64_t>;
  /// For each command from `first` on, which from there on come before it, a
  /// bit each, up to its own.
  std::vector<Bits> before;
  /// Nothing comes after these yet.
  std::vector<size_t> last;
};

} // namespace baechi::support

#endif // BAECHI_SUPPORT_CONFLICTS_H
