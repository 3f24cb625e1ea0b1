//===- AllocationTest.cpp - A step allocates nothing ----------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A program of its own, because it replaces the process's allocator by one
/// that counts.
///
//===----------------------------------------------------------------------===//

#include "LoopbackTransport.h"
#include "Sanitized.h"
#include "TestPrograms.h"

#include "Baechi/Runtime/Ranks.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

static std::atomic<bool> counting{false};
static std::atomic<int64_t> allocations{0};

static void count() {
  if (counting.load(std::memory_order_relaxed))
    allocations.fetch_add(1, std::memory_order_relaxed);
}

#if BAECHI_SANITIZED
// The sanitizers own malloc and call this on every allocation.
extern "C" void __sanitizer_malloc_hook(const volatile void *, size_t) {
  count();
}
extern "C" void __sanitizer_free_hook(const volatile void *) {}
#else
// Everything that allocates, operator new too, comes to these; glibc keeps the
// real ones under another name.
extern "C" void *__libc_malloc(size_t);
extern "C" void *__libc_calloc(size_t, size_t);
extern "C" void *__libc_realloc(void *, size_t);
extern "C" void *__libc_memalign(size_t, size_t);
extern "C" void *malloc(size_t bytes) {
  count();
  return __libc_malloc(bytes);
}
extern "C" void *calloc(size_t number, size_t bytes) {
  count();
  return __libc_calloc(number, bytes);
}
extern "C" void *realloc(void *old, size_t bytes) {
  count();
  return __libc_realloc(old, bytes);
}
extern "C" void *aligned_alloc(size_t alignment, size_t bytes) {
  count();
  return __libc_memalign(alignment, bytes);
}
#endif

using namespace baechi::runtime;
using namespace baechi::runtime::test;

namespace {

int64_t allocationsDuring(const std::function<void()> &work) {
  allocations = 0;
  counting = true;
  work();
  counting = false;
  return allocations;
}

TEST(Allocation, TheCounterCounts) {
  // Kept from the optimiser, which may do without an allocation.
  void *volatile kept;
  EXPECT_EQ(1, allocationsDuring([&] { kept = std::malloc(100); }));
  std::free(kept);
  EXPECT_EQ(1, allocationsDuring([&] { kept = ::operator new(100); }));
  ::operator delete(kept);
}

TEST(Allocation, NoneInAStep) {
  constexpr int32_t messages = 10;
  Program program = makeProgram(3, 2 * 64 * messages);
  for (int32_t i = 0; i < 3; ++i)
    addQueue(program, i, (i + 1) % 3, std::vector<int64_t>(messages, 64));
  std::vector<Body> entries;
  for (int32_t i = 0; i < 3; ++i)
    entries.push_back([i](Context context, char *arena) {
      int32_t in = (i + 2) % 3;
      for (int32_t seq = 0; seq < messages; ++seq) {
        baechi_operator_begin(context, seq % 2);
        baechi_operator_end(context, seq % 2);
        if (baechi_recv(context, in, seq, arena + 64 * seq) ||
            baechi_send(context, i, seq, arena + 64 * (messages + seq)) ||
            baechi_await_recv(context, in, seq) ||
            baechi_await_send(context, i, seq))
          return 1;
      }
      return 0;
    });
  program.predicted.stepNs = 1000;
  for (bool ends : {false, true}) { // then the caller's thread runs a device
    program.ends = ends;
    auto session = makeSession(program, entries);
    ASSERT_TRUE(session);
    bool failed = false;
    auto steps = [&] {
      for (int i = 0; i < 100 && !failed; ++i)
        failed = bool(session->step());
    };
    steps(); // Once-only initialisations of the libraries.
    EXPECT_EQ(0, allocationsDuring(steps));
    EXPECT_FALSE(failed);
  }
}

/// Nor among several ranks, apart from what their transport does.
TEST(Allocation, NoneInAStepOfSeveralRanks) {
  constexpr int32_t messages = 10;
  Program program = makeProgram(2, 2 * 64 * messages);
  for (int32_t i = 0; i < 2; ++i) {
    addQueue(program, i, 1 - i, std::vector<int64_t>(messages, 64));
    bodies[i] = [i](Context context, char *arena) {
      for (int32_t seq = 0; seq < messages; ++seq)
        if (baechi_recv(context, 1 - i, seq, arena + 64 * seq) ||
            baechi_send(context, i, seq, arena + 64 * (messages + seq)) ||
            baechi_await_recv(context, 1 - i, seq) ||
            baechi_await_send(context, i, seq))
          return 1;
      return 0;
    };
  }
  auto hub = std::make_shared<LoopbackHub>(2);
  SessionOptions options[2];
  for (int32_t rank = 0; rank < 2; ++rank)
    options[rank].ranks =
        std::make_shared<Ranks>(std::make_unique<LoopbackTransport>(hub, rank));
  std::thread follower([&] {
    auto session = Session::create(program, resolveBody, options[1]);
    EXPECT_TRUE(session && !(*session)->follow());
  });
  {
    auto session = Session::create(program, resolveBody, options[0]);
    ASSERT_TRUE(session);
    bool failed = false;
    auto steps = [&] {
      for (int i = 0; i < 20 && !failed; ++i)
        failed = bool((*session)->step());
    };
    steps();
    EXPECT_EQ(0, allocationsDuring(steps));
    EXPECT_FALSE(failed);
  }
  follower.join();
}

/// Longer than the coordinator leaves a step alone.
TEST(Allocation, NoneInALongStep) {
  Program program = makeProgram(2);
  addQueue(program, 0, 1, {64});
  auto session = makeSession(
      program, {[](Context context, char *arena) {
                  std::this_thread::sleep_for(std::chrono::milliseconds(100));
                  return sendAndWait(context, 0, 0, arena);
                },
                [](Context context, char *arena) {
                  return recvAndWait(context, 0, 0, arena);
                }});
  ASSERT_TRUE(session);
  bool failed = false;
  auto step = [&] { failed |= bool(session->step()); };
  step();
  EXPECT_EQ(0, allocationsDuring(step));
  EXPECT_FALSE(failed);
}

} // namespace
