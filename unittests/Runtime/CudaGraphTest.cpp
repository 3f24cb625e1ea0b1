//===- CudaGraphTest.cpp - Steps replayed as graphs ---===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Runtime/CudaAbi.h"
#include "CudaPrograms.h"
#include "drivers/cuda/CudaApi.h"

#include <gmock/gmock.h>

#include <chrono>
#include <thread>

using namespace baechi::runtime;
using namespace baechi::runtime::test;
using testing::HasSubstr;

namespace {

SessionOptions untimed() {
  SessionOptions options;
  options.timeline = false;
  return options;
}

class CudaGraphRingTest
    : public testing::TestWithParam<std::vector<std::string>> {};

TEST_P(CudaGraphRingTest, GivesTheRightNumbersInAnyOrder) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    fakecuda::FakeOptions options;
    options.seed = seed;
    options.devices = seed % 2 ? 1 : 2;
    options.peerAccess = seed % 4 != 0;
    resetCuda(options);
    Ring ring(GetParam());
    auto session = makeSession(ring.program, ring.bodies(), untimed());
    ASSERT_TRUE(session);
    for (int64_t step = 0; step < 6; ++step)
      ring.stepsRight(*session, step);
    session.reset();
    ASSERT_EQ("", cudaMisuse());
  }
}

const std::vector<std::string> machines[] = {
    {"cuda", "cuda"},
    {"cuda", "host"},
    {"host", "cuda", "cuda"},
    {"cuda", "cuda", "cuda", "cuda"},
};
INSTANTIATE_TEST_SUITE_P(Machines, CudaGraphRingTest,
                         testing::ValuesIn(machines), [](const auto &info) {
                           return testing::PrintToString(info.index);
                         });

#define NEEDS_THE_FAKE_DRIVER()                                                \
  if (!usesFakeCuda())                                                         \
  GTEST_SKIP() << "only the fake driver counts and can be made to do this"

/// Graphs that each of some steps launches.
std::vector<int> graphsOfSteps(const SessionOptions &options, int steps) {
  Ring ring({"cuda", "host"});
  auto session = makeSession(ring.program, ring.bodies(), options);
  std::vector<int> launched;
  for (int step = 0, before = 0; session && step < steps; ++step) {
    ring.stepsRight(*session, step);
    launched.push_back(fakeCudaGraphLaunches() - before);
    before += launched.back();
  }
  return launched;
}

TEST(CudaGraphs, EveryRunIsAGraphFromTheSecondStepOn) {
  NEEDS_THE_FAKE_DRIVER();
  // Two runs a round, of two commands each.
  EXPECT_EQ((std::vector<int>{0, 8, 8, 8}), graphsOfSteps(untimed(), 4));
}

TEST(CudaGraphs, NoneWhereTimesAreWantedOrTheyAreSwitchedOff) {
  NEEDS_THE_FAKE_DRIVER();
  const std::vector<int> none{0, 0, 0};
  EXPECT_EQ(none, graphsOfSteps({}, 3));
  {
    Environment off("BAECHI_CUDA_GRAPHS", "0");
    EXPECT_EQ(none, graphsOfSteps(untimed(), 3));
  }
  {
    Environment blocking("BAECHI_CUDA_BLOCKING", "1");
    EXPECT_EQ(none, graphsOfSteps(untimed(), 3));
  }
  Environment on("BAECHI_CUDA_GRAPHS", "1");
  EXPECT_EQ((std::vector<int>{0, 8, 8}), graphsOfSteps(untimed(), 3));
}

TEST(CudaGraphs, WhatCannotBeCapturedIsLaunchedAndNoted) {
  NEEDS_THE_FAKE_DRIVER();
  for (auto [function, what] :
       {std::pair("cuStreamBeginCapture", "a stream cannot be captured"),
        std::pair("cuStreamUpdateCaptureDependencies",
                  "a captured command cannot be ordered"),
        std::pair("cuStreamGetCaptureInfo",
                  "a captured command cannot be ordered"),
        std::pair("cuStreamEndCapture", "a stream cannot be captured"),
        std::pair("cuGraphInstantiateWithFlags",
                  "a graph cannot be instantiated")}) {
    fakecuda::FakeOptions options;
    options.failFunction = function;
    options.failWith = 901;
    resetCuda(options);
    testing::internal::CaptureStderr();
    EXPECT_EQ((std::vector<int>{0, 0, 0}), graphsOfSteps(untimed(), 3));
    EXPECT_EQ("baechi: device cuda0 launches kernels one by one, not all as "
              "CUDA graphs: " +
                  std::string(what) +
                  ": CUDA_ERROR_STREAM_CAPTURE_INVALIDATED\n",
              testing::internal::GetCapturedStderr());
    EXPECT_EQ("", cudaMisuse());
  }
}

TEST(CudaGraphs, AGraphThatCannotBeLaunched) {
  NEEDS_THE_FAKE_DRIVER();
  fakecuda::FakeOptions options;
  options.failFunction = "cuGraphLaunch";
  resetCuda(options);
  Ring ring({"cuda", "host"});
  auto session = makeSession(ring.program, ring.bodies(), untimed());
  ASSERT_TRUE(session);
  ring.stepsRight(*session, 0);
  EXPECT_EQ("device cuda0, after operator 0 'double_numbers0': a graph of "
            "kernels cannot be launched: CUDA_ERROR_UNKNOWN: message 0 'm0' of "
            "queue 0 (cuda0 to host1)",
            session->step().message());
  EXPECT_FALSE(session->usable());
}

/// One device that doubles its argument as often as the step has it.
TEST(CudaGraphs, StepsThatDiffer) {
  const int doublings[] = {3, 3, 3, 2, 2, 2, 4, 4, 3, 4, 1, 1, 6, 6, 6};
  constexpr auto bytes = int64_t(Ring::count * sizeof(int32_t));
  Program program = makeProgram(1, 4 * Ring::slot);
  program.devices[0].kind = "cuda";
  program.devices[0].name = "cuda0";
  addArgument(program, 0, 0, bytes);
  addResult(program, 0, 3 * Ring::slot, bytes);
  size_t step = 0;
  auto session =
      makeSession(program, {[&](Context, char *arena) {
                    // The place is another one now and then, too.
                    char *place = arena + (step < 8 ? 1 : 2) * Ring::slot;
                    launch("double_numbers", {place, arena});
                    for (int i = 1; i < doublings[step]; ++i)
                      launch("double_numbers", {place, place});
                    baechi_cuda_copy(arena + 3 * Ring::slot, place, bytes);
                    return 0;
                  }},
                  untimed());
  ASSERT_TRUE(session);
  for (; step < std::size(doublings); ++step) {
    SCOPED_TRACE(step);
    std::vector<int32_t> values(Ring::count), got(Ring::count);
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = int32_t(i * 10 + step);
    ASSERT_SUCCESS(session->setArgument(0, values.data(), size_t(bytes)));
    ASSERT_SUCCESS(session->step());
    ASSERT_SUCCESS(session->getResult(0, got.data(), size_t(bytes)));
    for (int32_t &value : values)
      value <<= doublings[step];
    EXPECT_EQ(values, got);
  }
}

/// Squares of a matrix: C = A A, C += A C, which a constant is added to.
TEST(CudaGraphs, ProductsAndConstants) {
  static const float one[4] = {1, 1, 1, 1};
  Program program = makeProgram(1, 4 * Ring::slot);
  program.devices[0].kind = "cuda";
  addArgument(program, 0, 0, 16);
  addResult(program, 0, 2 * Ring::slot, 16);
  auto session =
      makeSession(program, {[&](Context, char *arena) {
                    auto *a = reinterpret_cast<float *>(arena);
                    float *b = a + Ring::slot / 4, *c = b + Ring::slot / 4;
                    baechi_cuda_constant(arena + 3 * Ring::slot, one, 16);
                    baechi_cuda_copy(c, arena + 3 * Ring::slot, 16);
                    baechi_cuda_product square = denseProduct(2, 2, 2);
                    baechi_cuda_multiply(&square, a, a, b, nullptr, nullptr, 0);
                    baechi_cuda_multiply(&square, a, b, c, nullptr, nullptr, 1);
                    return 0;
                  }},
                  untimed());
  ASSERT_TRUE(session);
  for (int step = 0; step < 4; ++step) {
    auto x = float(step + 1);
    std::vector<float> values{x, 0, 1, x}, got(4);
    ASSERT_SUCCESS(session->setArgument(0, values.data(), 16));
    ASSERT_SUCCESS(session->step());
    ASSERT_SUCCESS(session->getResult(0, got.data(), 16));
    EXPECT_EQ(
        (std::vector<float>{x * x * x + 1, 1, 3 * x * x + 1, x * x * x + 1}),
        got);
  }
}

/// A host device answers only when it sees the work that was held back.
TEST(CudaGraphs, AreUnderWayBeforeTheThreadWaits) {
  NEEDS_THE_FAKE_DRIVER();
  Program program = makeProgram(2, 4 * Ring::slot);
  program.devices[0].kind = "cuda";
  addQueue(program, 1, 0, {8});
  int before = 0, waits = 0;
  auto session = makeSession(
      program,
      {[](Context context, char *arena) {
         if (int32_t stop = baechi_recv(context, 0, 0, arena + 3 * Ring::slot))
           return stop;
         launch("double_numbers", {arena + Ring::slot, arena});
         launch("double_numbers", {arena, arena + Ring::slot});
         return baechi_await_recv(context, 0, 0);
       },
       [&](Context context, char *arena) {
         auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
         while (waits > 0 && fakeCudaGraphLaunches() == before) {
           if (std::chrono::steady_clock::now() > end)
             return baechi_fail(context, "nothing was launched");
           std::this_thread::yield();
         }
         return sendAndWait(context, 0, 0, arena);
       }},
      untimed());
  ASSERT_TRUE(session);
  for (; waits < 4; ++waits, before = fakeCudaGraphLaunches())
    ASSERT_SUCCESS(session->step());
  EXPECT_EQ(3, before);
}

TEST(CudaGraphs, TheFakeDriverSeesWrongUse) {
  NEEDS_THE_FAKE_DRIVER();
  auto loaded = cuda::loadApi();
  ASSERT_TRUE(loaded);
  const cuda::Api &api = **loaded;
  cuda::Context context = nullptr;
  cuda::Stream stream = nullptr;
  cuda::Graph graph = nullptr;
  cuda::DevicePointer memory = 0;
  ASSERT_EQ(cuda::success, api.primaryRetain(&context, 0));
  ASSERT_EQ(cuda::success, api.setCurrent(context));
  ASSERT_EQ(cuda::success, api.streamCreate(&stream, 1));
  EXPECT_NE(cuda::success, api.beginCapture(stream, /*global*/ 0));
  EXPECT_NE(cuda::success, api.endCapture(stream, &graph));
  ASSERT_EQ(cuda::success, api.beginCapture(stream, cuda::captureThreadLocal));
  EXPECT_NE(cuda::success, api.memAlloc(&memory, 64));
  EXPECT_NE(cuda::success, api.endCapture(stream, &graph));
  EXPECT_EQ(nullptr, graph);
  ASSERT_EQ(cuda::success, api.beginCapture(stream, cuda::captureThreadLocal));
  ASSERT_EQ(cuda::success, api.endCapture(stream, &graph));
  EXPECT_EQ(cuda::success, api.graphDestroy(graph));
  EXPECT_NE(cuda::success, api.graphDestroy(graph));
  std::string misuse = cudaMisuse();
  for (const char *text :
       {"a capture that hinders other threads",
        "a capture is ended that its thread did not begin",
        "cuMemAlloc while its thread captures", "a graph is destroyed twice"})
    EXPECT_THAT(misuse, HasSubstr(text));
  resetCuda();
}

} // namespace
