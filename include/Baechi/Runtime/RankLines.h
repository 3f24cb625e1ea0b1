//===- RankLines.h - Threads of ranks that talk to rank 0 -------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Lines between rank 0 and threads of the other ranks, each for itself: texts
/// of a line arrive in the order in which they were said, and no line holds up
/// another. A thread of each rank moves them, and nothing else may use the
/// ranks as long as there are lines.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_RANKLINES_H
#define BAECHI_RUNTIME_RANKLINES_H

#include "Baechi/Runtime/Ranks.h"

#include <memory>
#include <vector>

namespace baechi::runtime {

class RankLines {
public:
  /// By all ranks, with the rank of each line's other end than rank 0; a line
  /// of rank 0 with itself is nobody's.
  RankLines(Ranks &ranks, std::vector<int32_t> peers);
  /// As `close`, without waiting for others.
  ~RankLines();

  void say(size_t line, const std::string &text);
  /// The line's next text. Fails where its other end is lost, and after so many
  /// \p seconds (infinity: never), for which \p late is set.
  Expected<std::string> hear(size_t line, double seconds, bool &late);

  /// By all ranks, when they have nothing to say any more: waits until
  /// everything has arrived everywhere, unless a rank was lost.
  void close();

private:
  struct State;
  std::unique_ptr<State> state;
};

} // namespace baechi::runtime

#endif // BAECHI_RUNTIME_RANKLINES_H
