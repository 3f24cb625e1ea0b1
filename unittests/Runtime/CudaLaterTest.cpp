//===- CudaLaterTest.cpp - Calls that return before the GPU has ended -===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudaPrograms.h"
#include "drivers/cuda/CudaApi.h"

#include <gmock/gmock.h>

#include <chrono>
#include <cstring>
#include <thread>

using namespace baechi::runtime;
using namespace baechi::runtime::test;
using testing::HasSubstr;

namespace {
#define NEEDS_THE_FAKE_DRIVER()                                                \
  if (!usesFakeCuda())                                                         \
  GTEST_SKIP() << "only the fake driver can be made to do this"

constexpr size_t bytes = Ring::count * sizeof(int32_t);

constexpr int64_t behind = 64;

/// Its result is twice its argument, behind that in the arena.
Program twice(int devices = 1) {
  Program program = makeProgram(devices, 2 * behind);
  program.devices[0].kind = "cuda";
  program.devices[0].name = "cuda0";
  addArgument(program, 0, 0, bytes);
  addResult(program, 0, behind, bytes);
  return program;
}
int32_t launchTwice(Context, char *arena) {
  launch("double_numbers", {arena + behind, arena});
  return 0;
}

class CudaLater : public testing::Test {
protected:
  void SetUp() override {
    NEEDS_THE_FAKE_DRIVER();
    resetCuda();
    prepare();
  }
  void TearDown() override {
    if (!usesFakeCuda())
      return;
    session.reset();
    for (cuda::DevicePointer each : memory)
      api->memFree(each);
    api->setCurrent(nullptr);
    api->primaryRelease(0);
  }

  void prepare() {
    auto loaded = cuda::loadApi();
    ASSERT_TRUE(loaded);
    api = *loaded;
    SessionOptions options;
    options.timeline = false;
    session = makeSession(twice(), {launchTwice}, options);
    ASSERT_TRUE(session);
    ASSERT_EQ(0, api->primaryRetain(&context, 0));
    ASSERT_EQ(0, api->setCurrent(context));
    for (cuda::DevicePointer &each : memory) {
      ASSERT_EQ(0, api->memAlloc(&each, bytes));
      std::memset(at(each), 0, bytes);
    }
  }
  /// Device memory is host memory on the fake driver.
  static int32_t *at(cuda::DevicePointer pointer) {
    return reinterpret_cast<int32_t *>(pointer);
  }
  Error begin(cuda::DevicePointer from, cuda::DevicePointer to) {
    const void *arguments[] = {at(from)};
    void *results[] = {at(to)};
    return session->begin(arguments, results, &end);
  }
  cuda::Result await() {
    cuda::Result state;
    while ((state = api->eventQuery(cuda::Event(end))) == cuda::notReady)
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    api->eventDestroy(cuda::Event(end));
    return state;
  }

  const cuda::Api *api = nullptr;
  cuda::Context context = nullptr;
  std::unique_ptr<Session> session;
  cuda::DevicePointer memory[2] = {};
  void *end = nullptr;
};

TEST_F(CudaLater, ReturnsBeforeTheGpuHasEnded) {
  at(memory[0])[3] = 7;
  fakeCudaHold();
  ASSERT_SUCCESS(begin(memory[0], memory[1]));
  ASSERT_TRUE(end);
  EXPECT_EQ(cuda::notReady, api->eventQuery(cuda::Event(end)));
  EXPECT_EQ(0, at(memory[1])[3]);
  fakeCudaRelease();
  EXPECT_EQ(cuda::success, await());
  EXPECT_EQ(14, at(memory[1])[3]);
}

/// Launched, captured and replayed, one call behind the other.
TEST_F(CudaLater, CallsThatTakeWhatOthersMake) {
  at(memory[0])[0] = 1;
  std::vector<void *> ends;
  for (int call = 0; call < 8; ++call) {
    ASSERT_SUCCESS(begin(memory[call % 2], memory[(call + 1) % 2]));
    ASSERT_TRUE(end);
    ends.push_back(end);
  }
  // In any order: the last one is behind all.
  for (; !ends.empty(); ends.pop_back()) {
    end = ends.back();
    EXPECT_EQ(cuda::success, await());
  }
  EXPECT_EQ(256, at(memory[0])[0]);
}

/// What is told the legacy stream later finds the argument read and the result
/// written.
TEST_F(CudaLater, TheLegacyStreamWaits) {
  using Copy = int (*)(unsigned long long, const void *, size_t);
  auto copy = reinterpret_cast<Copy>(fakecuda::find("cuMemcpyHtoD_v2"));
  for (int32_t round = 1; round <= 20; ++round) {
    std::vector<int32_t> values(Ring::count, round), spoiled(Ring::count, -1);
    ASSERT_EQ(0, copy(memory[0], values.data(), bytes));
    ASSERT_SUCCESS(begin(memory[0], memory[1]));
    ASSERT_EQ(0, copy(memory[0], spoiled.data(), bytes));
    EXPECT_EQ(cuda::success, await());
    EXPECT_EQ(2 * round, at(memory[1])[5]);
  }
}

TEST_F(CudaLater, WhatIsReadOnTheHostHasEnded) {
  at(memory[0])[1] = 5;
  std::vector<int32_t> result(Ring::count);
  const void *arguments[] = {at(memory[0])};
  void *results[] = {result.data()};
  end = this;
  ASSERT_SUCCESS(session->begin(arguments, results, &end));
  EXPECT_FALSE(end);
  EXPECT_EQ(10, result[1]);
  // A plain call is waited for, also after one that is not.
  ASSERT_SUCCESS(begin(memory[0], memory[1]));
  ASSERT_TRUE(end);
  ASSERT_SUCCESS(session->call(arguments, results));
  EXPECT_EQ(cuda::success, await());
  ASSERT_SUCCESS(begin(memory[0], memory[1]));
  ASSERT_SUCCESS(session->getResult(0, result.data(), bytes));
  EXPECT_EQ(10, result[1]);
  EXPECT_EQ(cuda::success, await());
}

TEST_F(CudaLater, TimesAreThoseOfStepsThatHaveEnded) {
  session->recordTimes(true);
  ASSERT_SUCCESS(begin(memory[0], memory[1]));
  EXPECT_FALSE(end);
}

TEST_F(CudaLater, AFailureIsTheEventsAndTheNextCalls) {
  fakeCudaHold();
  ASSERT_SUCCESS(begin(memory[0], memory[1]));
  ASSERT_TRUE(end);
  fakeCudaBreak();
  fakeCudaRelease();
  EXPECT_EQ(700, await());
  EXPECT_THAT(begin(memory[0], memory[1]).message(),
              HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS"));
  EXPECT_FALSE(end);
}

TEST_F(CudaLater, AnEndThatCannotBeMarked) {
  fakeCudaFail("cuEventCreate");
  EXPECT_THAT(begin(memory[0], memory[1]).message(),
              HasSubstr("the step's end cannot be marked: CUDA_ERROR_UNKNOWN"));
  EXPECT_FALSE(end);
  fakeCudaFail(nullptr);
}

TEST(CudaLaterCalls, OfSeveralDevicesAreWaitedFor) {
  NEEDS_THE_FAKE_DRIVER();
  resetCuda();
  auto nothing = [](Context, char *) { return 0; };
  SessionOptions options;
  options.timeline = false;
  auto session = makeSession(twice(2), {launchTwice, nothing}, options);
  ASSERT_TRUE(session);
  const void *arguments[] = {nullptr};
  void *results[] = {nullptr}, *end = &end;
  ASSERT_SUCCESS(session->begin(arguments, results, &end));
  EXPECT_FALSE(end);
}

} // namespace
