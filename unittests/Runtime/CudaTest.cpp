//===- CudaTest.cpp - CUDA devices in programs ---===//
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
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <thread>

#include <unistd.h>

using namespace baechi::runtime;
using namespace baechi::runtime::test;
using testing::AllOf;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::StartsWith;

namespace {

std::unique_ptr<Session> start(Ring &ring, SessionOptions options = {}) {
  return makeSession(ring.program, ring.bodies(), options);
}

class CudaRingTest : public testing::TestWithParam<std::vector<std::string>> {};

TEST_P(CudaRingTest, GivesTheRightNumbersInAnyOrder) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    fakecuda::FakeOptions options;
    options.seed = seed;
    options.devices = seed % 2 ? 1 : 2; // Logical devices share a GPU, or not.
    resetCuda(options);
    Ring ring(GetParam());
    auto session = start(ring);
    ASSERT_TRUE(session);
    for (int64_t step = 0; step < 5; ++step)
      ring.stepsRight(*session, step);
    session.reset();
    ASSERT_EQ("", cudaMisuse());
  }
}

TEST_P(CudaRingTest, HasATimeline) {
  Ring ring(GetParam());
  auto session = start(ring);
  ASSERT_TRUE(session);
  ring.stepsRight(*session, 3);
  const Timeline &timeline = session->timeline();
  for (const DeviceRecord &device : timeline.devices) {
    int64_t before = 0;
    for (const Interval &interval : device.operators) {
      ASSERT_TRUE(interval.happened());
      EXPECT_LE(before, interval.beginNs);
      before = interval.endNs;
    }
    EXPECT_LE(before, timeline.wallNs);
  }
  for (const auto &queue : timeline.queues)
    for (const CopyRecord &copy : queue)
      EXPECT_TRUE(copy.happened());
}

TEST_P(CudaRingTest, RunsWithoutATimeline) {
  Ring ring(GetParam());
  SessionOptions options;
  options.timeline = false;
  auto session = start(ring, options);
  ASSERT_TRUE(session);
  for (int64_t step = 0; step < 3; ++step)
    ring.stepsRight(*session, step);
}

const std::vector<std::string> machines[] = {
    {"cuda", "cuda"},
    {"cuda", "host"},
    {"host", "cuda", "cuda"},
    {"cuda", "host", "cuda", "host"},
};
INSTANTIATE_TEST_SUITE_P(Machines, CudaRingTest, testing::ValuesIn(machines),
                         [](const auto &info) {
                           return testing::PrintToString(info.index);
                         });

#define NEEDS_THE_FAKE_DRIVER()                                                \
  if (!usesFakeCuda())                                                         \
  GTEST_SKIP() << "only the fake driver can be made to do this"

TEST(Cuda, AWaitThatIsMissingIsFound) {
  NEEDS_THE_FAKE_DRIVER();
  Ring ring({"cuda", "cuda"}, /*forgets=*/true);
  auto session = start(ring);
  ASSERT_TRUE(session);
  ASSERT_SUCCESS(session->step());
  session.reset();
  EXPECT_THAT(cudaMisuse(), HasSubstr("nothing orders the two"));
  resetCuda();
}

TEST(Cuda, AnArenaThatDoesNotFit) {
  NEEDS_THE_FAKE_DRIVER();
  fakecuda::FakeOptions options;
  options.memoryBytes = 1000;
  resetCuda(options);
  Ring ring({"cuda", "host"});
  EXPECT_THAT(creationError(ring),
              MatchesRegex("device cuda0: cannot allocate an arena of 1024 "
                           "bytes; 1000 of the GPU's 1000 are free: "
                           "CUDA_ERROR_OUT_OF_MEMORY .*"));
}

/// Which of them comes first does not matter.
TEST(Cuda, ArenasThatDoNotFitTogether) {
  NEEDS_THE_FAKE_DRIVER();
  fakecuda::FakeOptions options;
  options.memoryBytes = 1500;
  resetCuda(options);
  Ring ring({"cuda", "cuda"});
  EXPECT_THAT(creationError(ring),
              MatchesRegex("device cuda[01]: the 2 devices of the program on "
                           "this GPU need arenas of 2048 bytes together, and "
                           "it has 1500: lower their limits .*"));
}

TEST(Cuda, NoGpu) {
  NEEDS_THE_FAKE_DRIVER();
  fakecuda::FakeOptions options;
  options.devices = 0;
  resetCuda(options);
  Ring ring({"cuda", "host"});
  EXPECT_EQ("device cuda0: CUDA finds no GPU on this machine; take host "
            "devices",
            creationError(ring));
}

int createWithout(const char *library) {
  setenv("BAECHI_CUDA_LIBRARY", library, 1);
  std::cerr << creationError(Ring({"cuda", "cuda"})) << '\n';
  return 0;
}

TEST(CudaDeathTest, NoDriver) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(_exit(createWithout("/no/such/libcuda.so")),
              testing::ExitedWithCode(0),
              "device cuda0: the CUDA driver cannot be loaded: "
              "/no/such/libcuda.so: .*; install NVIDIA's driver, or take host");
  EXPECT_EXIT(_exit(createWithout("libm.so.6")), testing::ExitedWithCode(0),
              "libm.so.6 has no function cuInit: a CUDA driver of version 12");
}

/// A step that launches is code of the host's processor.
TEST(Cuda, AnotherProcessor) {
  Ring ring({"cuda", "cuda"});
  ring.program.processor = {"avx9000"};
  EXPECT_EQ("the program's code was compiled for a processor with avx9000, "
            "which this one lacks: compile it here again",
            creationError(ring));
}

TEST(Cuda, AKernelThatIsMissing) {
  Ring ring({"cuda", "host"});
  std::vector<Body> bodies = ring.bodies();
  bodies[0] = [](Context context, char *arena) {
    baechi_operator_begin(context, 0);
    launch("no_such_kernel", {arena});
    baechi_operator_end(context, 0);
    return baechi_send(context, 0, 0, arena);
  };
  std::move(bodies.begin(), bodies.end(), test::bodies);
  EXPECT_THAT(creationError(ring.program),
              AllOf(StartsWith("device cuda0, in operator 0 'double_numbers0': "
                               "a kernel is not in the program's GPU code"),
                    HasSubstr("CUDA_ERROR_NOT_FOUND")));
}

/// A call that loads or allocates may wait for the GPU, which may wait for
/// another process: none is a step's.
TEST(Cuda, LoadsAllBeforeTheFirstStep) {
  NEEDS_THE_FAKE_DRIVER();
  const int32_t numbers[Ring::count] = {1, 2, 3, 4, 5, 6, 7, 8};
  const baechi_cuda_product product = denseProduct(1, 1, 1);
  int computed = 0;
  for (bool rehearse : {true, false}) {
    SCOPED_TRACE(rehearse);
    resetCuda();
    Program program = makeProgram(1, 5 * Ring::slot);
    program.devices[0].kind = "cuda";
    addArgument(program, 0, 0, sizeof(numbers));
    addResult(program, 0, Ring::slot, sizeof(numbers));
    addResult(program, 0, 2 * Ring::slot, 64);
    SessionOptions options;
    options.rehearse = rehearse;
    auto session = makeSession(
        program, {[&](Context context, char *arena) {
          ++computed;
          baechi_operator_begin(context, 0);
          char *constant = arena + 4 * Ring::slot;
          baechi_cuda_constant(constant, numbers, sizeof(numbers));
          launch("add_numbers", {arena + Ring::slot, arena, constant});
          baechi_cuda_multiply(&product, arena + 3 * Ring::slot,
                               arena + 3 * Ring::slot, arena + 2 * Ring::slot,
                               nullptr, nullptr, 0);
          baechi_operator_end(context, 0);
          return 0;
        }},
        options);
    ASSERT_TRUE(session);
    EXPECT_EQ(rehearse, computed == 1);
    int loads = fakeCudaLoads();
    for (int step = 0; step < 3; ++step) {
      ASSERT_SUCCESS(session->setArgument(0, numbers, sizeof(numbers)));
      ASSERT_SUCCESS(session->step());
      int32_t sums[Ring::count] = {};
      ASSERT_SUCCESS(session->getResult(0, sums, sizeof(sums)));
      EXPECT_EQ(2 * numbers[7], sums[7]);
    }
    // The image and its kernel.
    EXPECT_EQ(loads + (rehearse ? 0 : 2), fakeCudaLoads());
    session.reset();
    EXPECT_EQ("", cudaMisuse());
    computed = 0;
  }
}

/// What was run through leaves the memory as it was, zero.
TEST(Cuda, RunningThroughLeavesNothingBehind) {
  const baechi_cuda_product product = denseProduct(1, 1, 1);
  const float two = 2;
  Program program = makeProgram(1, 4 * Ring::slot);
  program.devices[0].kind = "cuda";
  addArgument(program, 0, Ring::slot, sizeof(float));
  auto session = makeSession(
      program, {[&](Context context, char *arena) {
        baechi_operator_begin(context, 0);
        char *constant = arena + 2 * Ring::slot;
        baechi_cuda_constant(constant, &two, sizeof(two));
        baechi_cuda_multiply(&product, constant, constant, arena + Ring::slot,
                             nullptr, nullptr, 0);
        baechi_operator_end(context, 0);
        return 0;
      }});
  ASSERT_TRUE(session);
  float value = -1;
  ASSERT_SUCCESS(session->getArgument(0, &value, sizeof(value)));
  EXPECT_EQ(0, value);
  ASSERT_SUCCESS(session->step());
  ASSERT_SUCCESS(session->getArgument(0, &value, sizeof(value)));
  EXPECT_EQ(4, value);
}

/// Memory of other code's on a GPU.
class Tensor {
public:
  explicit Tensor(int gpu, size_t bytes) : gpu(gpu) {
    select();
    EXPECT_EQ(cuda::success, api().memAlloc(&memory, bytes));
  }
  ~Tensor() {
    select();
    api().memFree(memory);
    api().primaryRelease(gpu);
  }
  Tensor(const Tensor &) = delete;
  void *data() const { return reinterpret_cast<void *>(memory); }

private:
  static const cuda::Api &api() { return **cuda::loadApi(); }
  void select() {
    if (!context)
      api().primaryRetain(&context, gpu);
    api().setCurrent(context);
  }
  const int gpu;
  cuda::Context context = nullptr;
  cuda::DevicePointer memory = 0;
};

/// Arguments and results that lie on the GPU do not go through the host.
TEST(Cuda, TakesAndGivesMemoryOfItsGpu) {
  NEEDS_THE_FAKE_DRIVER();
  resetCuda();
  Ring ring({"cuda"}, /*forgets=*/false, /*rounds=*/0);
  ring.program.queues.clear();
  ring.program.results[0].offset = 0;
  auto session = makeSession(ring.program, {[](Context, char *) { return 0; }});
  ASSERT_TRUE(session);
  {
    const size_t bytes = Ring::count * sizeof(int32_t);
    Tensor from(0, bytes), to(0, 2 * bytes);
    std::vector<int32_t> numbers(Ring::count, 7), got(Ring::count);
    // Device memory is host memory on the fake driver.
    std::memcpy(from.data(), numbers.data(), bytes);
    void *inside = static_cast<char *>(to.data()) + bytes;
    int calls = fakeCudaCalls();
    ASSERT_SUCCESS(session->setArgument(0, from.data(), bytes));
    ASSERT_SUCCESS(session->step());
    ASSERT_SUCCESS(session->getResult(0, inside, bytes));
    EXPECT_LT(calls, fakeCudaCalls());
    std::memcpy(got.data(), inside, bytes);
    EXPECT_EQ(numbers, got);
  }
  session.reset();
  EXPECT_EQ("", cudaMisuse());
}

TEST(Cuda, RefusesMemoryOfAnotherGpu) {
  NEEDS_THE_FAKE_DRIVER();
  fakecuda::FakeOptions options;
  options.devices = 2;
  resetCuda(options);
  Ring ring({"cuda", "cuda"});
  auto session = start(ring);
  ASSERT_TRUE(session);
  const size_t bytes = Ring::count * sizeof(int32_t);
  Tensor tensor(0, bytes);
  EXPECT_SUCCESS(session->setArgument(0, tensor.data(), bytes));
  EXPECT_THAT(session->setArgument(1, tensor.data(), bytes).message(),
              HasSubstr("cannot be copied: the memory given is of GPU 0, and "
                        "the device is on GPU 1: copy it there, or to the "
                        "host"));
}

/// Whoever called has the memory back, also when the kernel ends after all.
TEST(Cuda, AStepThatIsGivenUpGivesNoResults) {
  NEEDS_THE_FAKE_DRIVER();
  fakecuda::FakeOptions options;
  options.hangLaunch = 1;
  resetCuda(options);
  {
    Tensor result(0, Ring::count * sizeof(int32_t));
    const std::string held = cudaMisuse(); // the tensor and its context
    std::vector<int32_t> mine(Ring::count, 7), found(Ring::count);
    Ring ring({"cuda"}, /*forgets=*/false, /*rounds=*/0);
    ring.program.queues.clear();
    SessionOptions chosen;
    chosen.watchdogSeconds = 0.5;
    chosen.abortGraceSeconds = 0.1;
    // Nothing but the kernel keeps the step from its end.
    auto kernel = [](Context, char *arena) {
      launch("double_numbers", {arena, arena});
      return 0;
    };
    auto session = makeSession(ring.program, {kernel}, chosen);
    ASSERT_TRUE(session);
    const void *arguments[] = {nullptr};
    void *results[] = {result.data()};
    EXPECT_THAT(session->call(arguments, results).message(),
                HasSubstr("left behind: cuda0"));
    std::memcpy(result.data(), mine.data(), mine.size() * sizeof(int32_t));
    session.reset();
    fakeCudaRelease();
    // The thread that was left behind gives all of its own back.
    for (int i = 0; i < 500 && cudaMisuse() != held; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_EQ(held, cudaMisuse());
    std::memcpy(found.data(), result.data(), mine.size() * sizeof(int32_t));
    EXPECT_EQ(mine, found);
  }
  EXPECT_EQ("", cudaMisuse());
}

} // namespace
