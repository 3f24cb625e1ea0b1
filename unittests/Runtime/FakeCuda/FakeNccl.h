//===- FakeNccl.h - NCCL without a GPU -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Communicators between threads of one process. A group is one work of its
/// stream, as a kernel of NCCL's is: it begins when the stream comes to it, and
/// keeps the stream until each of its sends has met a receive of the peer's
/// group that has begun, too. Groups of one communicator begin one after the
/// other, on whatever streams. So what can deadlock with NCCL does here.
///
/// Sends and receives between two ranks meet in order; that sizes differ, that
/// a call comes while the last one goes on, or after the communicator's end,
/// and the like, is blamed (fakeCudaMisuse).
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_UNITTESTS_RUNTIME_FAKECUDA_FAKENCCL_H
#define BAECHI_UNITTESTS_RUNTIME_FAKECUDA_FAKENCCL_H

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace fakecuda {

class Engine;
struct FakeContext;
struct FakeStream;
struct FakeCommunicator;

/// A send or a receive.
struct FakeTransfer {
  bool sends;
  void *buffer;
  size_t bytes;
  int peer;
  bool done = false;
};

/// What one groupEnd launched on a communicator.
struct FakeGroup {
  FakeCommunicator *communicator;
  FakeStream *stream;
  std::vector<std::shared_ptr<FakeTransfer>> transfers;
  bool begun = false;
};

/// The communicators that have one id.
struct FakeClique {
  size_t ranks = 0;
  std::map<int, FakeCommunicator *> members;
  /// By (sender, receiver): those that have begun and have not met.
  using Queue = std::deque<std::shared_ptr<FakeTransfer>>;
  std::map<std::pair<int, int>, Queue> sends, receives;
  size_t finalized = 0;
  /// What all learn; 0: nothing.
  int error = 0;
};

struct FakeCommunicator {
  std::shared_ptr<FakeClique> clique;
  int rank;
  FakeContext *context;
  /// Groups that were launched, that have begun, and that have ended.
  uint64_t launched = 0, begun = 0, ended = 0;
  /// Until when NCCL's own threads are busy with the last call.
  std::chrono::steady_clock::time_point busyUntil{};
  bool finalized = false, aborted = false;
};

/// Forgets all of them.
void dropCommunicators(Engine &engine);

} // namespace fakecuda

#endif // BAECHI_UNITTESTS_RUNTIME_FAKECUDA_FAKENCCL_H
