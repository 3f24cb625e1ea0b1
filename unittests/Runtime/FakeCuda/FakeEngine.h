//===- FakeEngine.h - Streams that run in any order that is allowed -*- C++
//-*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_UNITTESTS_RUNTIME_FAKECUDA_FAKEENGINE_H
#define BAECHI_UNITTESTS_RUNTIME_FAKECUDA_FAKEENGINE_H

#include "FakeChecker.h"
#include "FakeCuda.h"
#include "FakeNccl.h"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <thread>

namespace fakecuda {

using Clock = std::chrono::steady_clock;

struct FakeStream;

struct FakeContext {
  int device;
  int retained = 0;
  /// What every call answers after a kernel has destroyed the context.
  int broken = 0;
  /// Other devices whose memory it may reach.
  std::set<int> peers = {};
  /// What synchronous copies go through; null until there is one.
  FakeStream *legacy = nullptr;
};

struct FakeEvent {
  FakeContext *context;
  bool timed;
  /// Records that were called for, and that were reached.
  uint64_t asked = 0, reached = 0;
  Clock::time_point when;
  Clocks clocks;
};

struct Work {
  /// Null: it may run. Else: only when that event has reached `record`.
  FakeEvent *waitsFor = nullptr;
  uint64_t record = 0;
  std::function<void()> run;
  /// Instead of `run`: tried until it says that it has ended.
  std::function<bool()> attempt = nullptr;
};

/// Work that was captured, and what must have ended before.
struct FakeNode {
  using Issue = std::function<void(FakeStream &)>;
  Issue issue;
  std::vector<FakeNode *> after;
};

struct FakeGraph {
  FakeContext *context = nullptr;
  std::vector<std::shared_ptr<FakeNode>> nodes;
  /// What the next node comes after: the last one, unless the thread has said
  /// something else.
  std::vector<FakeNode *> next;
  bool invalid = false;
};

struct FakeExecutable {
  FakeContext *context;
  std::vector<std::shared_ptr<FakeNode>> nodes;
  /// Launches that have not ended.
  std::shared_ptr<int> running;
  /// Reached by each node, where there are branches.
  std::vector<std::unique_ptr<FakeEvent>> ends = {};
};

struct FakeStream {
  FakeContext *context;
  size_t timeline;
  std::deque<Work> work;
  /// While it is captured: the work so far.
  std::unique_ptr<FakeGraph> capture = nullptr;
  /// What else runs the branches of graphs that are launched on it.
  std::vector<std::unique_ptr<FakeStream>> lanes = {};

  bool isLegacy() const { return context->legacy == this; }
};

struct FakeModule {
  FakeContext *context;
  const FakeImage *image;
};

struct FakeFunction {
  FakeContext *context;
  const FakeKernel *kernel;
};

struct Allocation {
  size_t bytes;
  int device; ///< Engine::host: pinned memory
  FakeContext *context;
};

/// All that the library holds, behind one lock.
class Engine {
public:
  static Engine &get();

  void reset(const FakeOptions &options);
  void enqueue(FakeStream &stream, Work work);
  void release();
  /// Does work on a stream, or adds it to the stream's capture.
  int issue(FakeStream &stream, FakeNode::Issue work);
  /// Whether a thread that captures may make that call.
  static bool mayBeCaptured(const std::string &call);

  /// Memory of a device. What is unmapped is not used again before the next
  /// reset, so that who uses it still is found.
  void *map(size_t bytes);
  void unmap(uintptr_t begin, size_t bytes);

  FakeContext *contextOf(int device);
  /// With all that was made in it.
  void endContext(FakeContext &context);
  FakeStream &legacyOf(FakeContext &context);

  /// Whose memory that is; `host` where it is no device's.
  static constexpr int host = -1;
  int deviceOf(uintptr_t address) const;
  /// Blames `who` where `context` has no way to that memory.
  bool reaches(const FakeContext &context, uintptr_t address,
               const std::string &who);

  std::mutex mutex;
  FakeOptions options;
  Checker checker;
  int calls = 0, loads = 0, launches = 0, graphLaunches = 0;
  int longestChain = 0; ///< of the graph that was instantiated last
  std::vector<std::unique_ptr<FakeContext>> contexts; ///< a device each
  /// Given up, while threads may still have selected them.
  std::vector<std::unique_ptr<FakeContext>> deadContexts;
  std::set<FakeStream *> streams;
  std::set<FakeEvent *> events;
  std::set<FakeCommunicator *> communicators;
  /// Ended, while streams may still come to their groups.
  std::vector<std::unique_ptr<FakeCommunicator>> retiredCommunicators;
  /// By their ids.
  std::map<uint64_t, std::shared_ptr<FakeClique>> cliques;
  /// What communicators were called for, a line each.
  std::string ncclLog;
  int ncclGroups = 0;
  /// Destroyed while work referred to them.
  std::vector<std::unique_ptr<FakeEvent>> retired;
  std::set<FakeModule *> modules;
  std::set<FakeGraph *> graphs;
  std::set<FakeExecutable *> executables;
  std::vector<std::unique_ptr<FakeFunction>> functions;
  std::map<uintptr_t, Allocation> allocations;
  std::map<void *, FakeContext *> registered;
  size_t usedBytes = 0;
  /// With what code and graphs take.
  size_t takenBytes() const {
    size_t nodes = 0;
    for (const FakeExecutable *each : executables)
      nodes += each->nodes.size();
    return usedBytes + modules.size() * options.codeBytes +
           nodes * options.nodeBytes;
  }
  bool hanging = false;

  static thread_local FakeContext *current;
  /// The stream that the thread captures.
  static thread_local FakeStream *capturing;

private:
  Engine();
  void loop();
  FakeStream *pick();
  void fallBehind(std::unique_lock<std::mutex> &lock);

  std::vector<std::pair<void *, size_t>> mappings;
  std::mt19937_64 random;
  std::condition_variable wake;
  std::thread thread;
};

} // namespace fakecuda

#endif // BAECHI_UNITTESTS_RUNTIME_FAKECUDA_FAKEENGINE_H
