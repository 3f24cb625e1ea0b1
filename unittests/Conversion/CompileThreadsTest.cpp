//===- CompileThreadsTest.cpp - Who compiles when ---------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Conversion/HostJit/CompileThreads.h"
#include "HostJitFixture.h"
#include <atomic>
#include <future>

using namespace baechi;
using namespace baechi::test;

namespace {
TEST(CompileThreads, WorkBeginsInTheOrderOfItsBatches) {
  CompileThreads threads(1);
  std::vector<int> order;
  CompileThreads::Batch first(threads), second(threads);
  for (int number = 0; number < 3; ++number)
    first.begin([&, number] { order.push_back(number); });
  second.begin([&] { order.push_back(3); });
  first.wait();
  second.wait();
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3}));
}

/// The most that work at once, while \p before is alive.
template <typename Before> unsigned mostAtOnce(CompileThreads &threads) {
  std::atomic<unsigned> now = 0, most = 0;
  CompileThreads::Batch batch(threads);
  {
    Before before(threads);
    std::promise<void> all;
    std::atomic<int> left = 8;
    for (int number = 0; number < 8; ++number)
      batch.begin([&] {
        unsigned here = ++now;
        for (unsigned seen = most; seen < here;)
          most.compare_exchange_weak(seen, here);
        // Long enough for another one to begin.
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        --now;
        if (--left == 0)
          all.set_value();
      });
    all.get_future().wait();
  }
  batch.wait();
  return most;
}

struct Nothing {
  explicit Nothing(CompileThreads &) {}
};

TEST(CompileThreads, RoomTakesOneOfThem) {
  CompileThreads threads(3);
  EXPECT_EQ(mostAtOnce<CompileThreads::Room>(threads), 2u);
  EXPECT_LE(mostAtOnce<Nothing>(threads), 3u);
}

TEST(CompileThreads, TheOnlyOneWaitsForRoomToEnd) {
  CompileThreads threads(1);
  std::atomic<bool> ran = false;
  CompileThreads::Batch batch(threads);
  {
    CompileThreads::Room room(threads);
    batch.begin([&] { ran = true; });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_FALSE(ran);
  }
  batch.wait();
  EXPECT_TRUE(ran);
}

TEST(CompileThreads, RoomWaitsForWorkThatIsBegun) {
  CompileThreads threads(1);
  std::promise<void> begun;
  std::atomic<bool> ended = false;
  CompileThreads::Batch batch(threads);
  batch.begin([&] {
    begun.set_value();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ended = true;
  });
  begun.get_future().wait();
  CompileThreads::Room room(threads);
  EXPECT_TRUE(ended);
}

TEST_F(HostJitTest, CodeIsThereOnceItIsFinished) {
  HostJitOptions options;
  options.workers = std::make_shared<CompileThreads>(2);
  create(std::move(options));
  for (const char *name : {"one", "two"}) {
    auto module = mlir::parseSourceString<mlir::ModuleOp>(
        std::string("llvm.func @") + name + R"((%x: i32) -> i32 {
  %r = llvm.add %x, %x : i32
  llvm.return %r : i32
})",
        context.get());
    EXPECT_EQ(llvm::toString(jit->begin(*module)), "");
  }
  EXPECT_EQ(llvm::toString(jit->finish()), "");
  EXPECT_EQ(get<int32_t(int32_t)>("one")(4), 8);
  EXPECT_EQ(get<int32_t(int32_t)>("two")(5), 10);
  EXPECT_EQ(llvm::toString(jit->finish()), "");
}

TEST_F(HostJitTest, WhatIsBegunMayBeLeft) {
  HostJitOptions options;
  options.stopped = [] { return true; };
  create(std::move(options));
  auto module = mlir::parseSourceString<mlir::ModuleOp>(
      "llvm.func @left() { llvm.return }", context.get());
  EXPECT_EQ(llvm::toString(jit->begin(*module)), "");
  jit.reset();
}
} // namespace
