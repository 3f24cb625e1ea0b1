//===- CudaTest.cpp - CUDA devices in programs ---===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudaPrograms.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <iostream>

#include <unistd.h>

using namespace baechi::runtime;
using namespace baechi::runtime::test;
using testing::AllOf;
using testing::HasSubstr;
using testing::MatchesRegex;

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
  options.memoryBytes = 1500;
  resetCuda(options);
  Ring ring({"cuda", "cuda"});
  EXPECT_THAT(creationError(ring.program),
              MatchesRegex("device cuda[01]: cannot allocate an arena of 1024 "
                           "bytes; 476 of the GPU's 1500 are free: "
                           "CUDA_ERROR_OUT_OF_MEMORY .*"));
}

TEST(Cuda, NoGpu) {
  NEEDS_THE_FAKE_DRIVER();
  fakecuda::FakeOptions options;
  options.devices = 0;
  resetCuda(options);
  Ring ring({"cuda", "host"});
  EXPECT_EQ("device cuda0: CUDA finds no GPU on this machine; take host "
            "devices",
            creationError(ring.program));
}

int createWithout(const char *library) {
  setenv("BAECHI_CUDA_LIBRARY", library, 1);
  std::cerr << creationError(Ring({"cuda", "cuda"}).program) << '\n';
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
            creationError(ring.program));
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
  auto session = makeSession(ring.program, bodies);
  ASSERT_TRUE(session);
  EXPECT_THAT(session->step().message(),
              AllOf(HasSubstr("device cuda0, in operator 0 'double_numbers0': "
                              "a kernel is not in the program's GPU code"),
                    HasSubstr("CUDA_ERROR_NOT_FOUND")));
  EXPECT_TRUE(session->usable());
}

} // namespace
