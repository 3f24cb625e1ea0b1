//===- CudaContextTest.cpp - Contexts, and copies from the host ---===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Runtime/Machine.h"
#include "CudaPrograms.h"
#include "drivers/cuda/CudaDevice.h"

#include <gmock/gmock.h>

using namespace baechi::runtime;
using namespace baechi::runtime::test;
using testing::HasSubstr;

namespace {

/// The driver's function of the fake, called as code beside the runtime does.
template <typename... Parameters>
int callDriver(const char *function, Parameters... parameters) {
  return reinterpret_cast<int (*)(Parameters...)>(fakecuda::find(function))(
      parameters...);
}

void *selected() {
  void *context = nullptr;
  EXPECT_EQ(0, callDriver("cuCtxGetCurrent", &context));
  return context;
}

class CudaContext : public testing::Test {
protected:
  void SetUp() override {
    if (!usesFakeCuda())
      GTEST_SKIP() << "only the fake driver tells what it is called for";
  }
  /// The context of the calling device, after a step.
  static cuda::Context contextOfStep(Ring &ring) {
    cuda::Context context = nullptr;
    std::vector<Body> bodies = ring.bodies();
    bodies[0] = [&, body = bodies[0]](Context step, char *arena) {
      EXPECT_EQ(0, cuda::currentDevice->api().getCurrent(&context));
      return body(step, arena);
    };
    auto session = makeSession(ring.program, bodies);
    EXPECT_TRUE(session);
    if (session)
      ring.stepsRight(*session, 1);
    return context;
  }
};

/// What libraries keep in it would go with it.
TEST_F(CudaContext, StaysWhenSessionsEnd) {
  Ring ring({"cuda", "cuda"});
  cuda::Context first = contextOfStep(ring);
  EXPECT_TRUE(queryGpu(0, 1));
  EXPECT_EQ(first, contextOfStep(ring));
  EXPECT_EQ("", cudaMisuse());
}

/// One that a kernel has made useless is given up, by its last user.
TEST_F(CudaContext, GoesAfterAKernelHasBrokenIt) {
  fakecuda::FakeOptions options;
  Ring ring({"cuda", "host"});
  cuda::Context first = contextOfStep(ring);
  options.breakLaunch = 2;
  resetCuda(options);
  auto bystander = makeSession(ring.program, ring.bodies());
  auto session = makeSession(ring.program, ring.bodies());
  ASSERT_TRUE(session && bystander);
  EXPECT_THAT(session->step().message(),
              HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS"));
  session.reset();
  EXPECT_THAT(creationError(ring), HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS"));
  bystander.reset();
  EXPECT_EQ("", cudaMisuse());
  EXPECT_NE(first, contextOfStep(ring));
}

/// A thread of the program goes on with what it had selected.
TEST_F(CudaContext, TheProgramsOwnStaysSelected) {
  fakecuda::FakeOptions options;
  options.devices = 2;
  resetCuda(options);
  void *own = nullptr;
  ASSERT_EQ(0, callDriver("cuDevicePrimaryCtxRetain", &own, 1));
  Ring ring({"cuda", "host"});
  auto session = makeSession(ring.program, ring.bodies());
  ASSERT_TRUE(session);
  ASSERT_EQ(0, callDriver("cuCtxSetCurrent", own));
  ring.stepsRight(*session, 1);
  EXPECT_EQ(own, selected());
  EXPECT_TRUE(queryGpu(0, 2));
  EXPECT_EQ(own, selected());
}

TEST_F(CudaContext, OneThatCannotBeHad) {
  // What was given up is asked for anew.
  fakecuda::FakeOptions options;
  options.breakLaunch = 1;
  resetCuda(options);
  Ring ring({"cuda", "host"});
  auto session = makeSession(ring.program, ring.bodies());
  ASSERT_TRUE(session);
  EXPECT_TRUE(session->step());
  session.reset();
  options = {};
  options.failFunction = "cuDevicePrimaryCtxRetain";
  resetCuda(options);
  EXPECT_THAT(creationError(ring),
              HasSubstr("device cuda0: the GPU cannot be opened: "
                        "CUDA_ERROR_UNKNOWN"));
}

/// The fake itself: a synchronous copy may land after a stream that does not
/// block has read what it was to bring.
TEST_F(CudaContext, ACopyOnTheLegacyStreamIsFound) {
  Ring ring({"cuda", "host"}, /*forgets=*/false, /*rounds=*/1);
  std::vector<Body> bodies = ring.bodies();
  bodies[0] = [body = bodies[0]](Context context, char *arena) {
    const int32_t numbers[Ring::count] = {};
    EXPECT_EQ(0,
              callDriver("cuMemcpyHtoD_v2",
                         reinterpret_cast<unsigned long long>(arena),
                         static_cast<const void *>(numbers), sizeof(numbers)));
    return body(context, arena);
  };
  auto session = makeSession(ring.program, bodies);
  ASSERT_TRUE(session);
  ASSERT_SUCCESS(session->step());
  session.reset();
  EXPECT_THAT(cudaMisuse(), HasSubstr("reads what cuMemcpyHtoD writes, and "
                                      "nothing orders the two"));
  resetCuda();
}

/// Copies from the host fall behind by milliseconds; who sets an argument may
/// change its memory as soon as that returns.
TEST_F(CudaContext, ArgumentsAreTakenWhenTheyAreSet) {
  fakecuda::FakeOptions options;
  options.longestDelay = 3000;
  resetCuda(options);
  Ring ring({"cuda", "host"});
  auto session = makeSession(ring.program, ring.bodies());
  ASSERT_TRUE(session);
  std::vector<int32_t> values(Ring::count);
  for (int32_t round = 0; round < 50; ++round) {
    std::fill(values.begin(), values.end(), round);
    ASSERT_SUCCESS(session->setArgument(0, values.data(),
                                        values.size() * sizeof(int32_t)));
    std::fill(values.begin(), values.end(), -1);
    ASSERT_SUCCESS(session->getArgument(0, values.data(),
                                        values.size() * sizeof(int32_t)));
    ASSERT_EQ(std::vector<int32_t>(Ring::count, round), values);
  }
}

struct Launch {
  unsigned gx, gy, bx, shared;
};

/// What no GPU launches the fake does not launch either.
TEST_F(CudaContext, LaunchesHaveLimits) {
  for (Launch wrong :
       {Launch{0, 1, 32, 0}, Launch{1, 1, 1025, 0}, Launch{1, 65536, 32, 0},
        Launch{1U << 31, 1, 32, 0}, Launch{1, 1, 32, (48 << 10) + 1}}) {
    Ring ring({"cuda", "host"});
    std::vector<Body> bodies = ring.bodies();
    bodies[0] = [wrong](Context context, char *arena) {
      baechi_operator_begin(context, 0);
      launch("double_numbers", {arena, arena},
             {wrong.gx, wrong.gy, wrong.bx, wrong.shared});
      baechi_operator_end(context, 0);
      return 0;
    };
    auto session = makeSession(ring.program, bodies);
    ASSERT_TRUE(session);
    EXPECT_THAT(session->step().message(),
                HasSubstr("a kernel cannot be launched: "
                          "CUDA_ERROR_INVALID_VALUE"));
  }
}

/// Code is there when a session is, graphs when the second step has ended; what
/// other sessions plan for is no part of it.
TEST_F(CudaContext, WhatNoPlanCountsIsTold) {
  fakecuda::FakeOptions options;
  options.codeBytes = 3000;
  options.nodeBytes = 100;
  resetCuda(options);
  Ring ring({"cuda", "host"});
  SessionOptions untimed;
  untimed.timeline = false;
  auto session = makeSession(ring.program, ring.bodies(), untimed);
  ASSERT_TRUE(session);
  EXPECT_EQ(3000, session->besideArena(0));
  EXPECT_EQ(0, session->besideArena(1));
  auto other = makeSession(ring.program, ring.bodies(), untimed);
  ASSERT_TRUE(other);
  ring.stepsRight(*session, 0);
  EXPECT_EQ(3000, session->besideArena(0));
  ring.stepsRight(*session, 1);
  // The other session's code is on this GPU, too.
  int64_t both = session->besideArena(0);
  EXPECT_GT(both, 6000);
  EXPECT_EQ(0, (both - 6000) % 100);
  ring.stepsRight(*session, 2);
  EXPECT_EQ(both, session->besideArena(0));
}

TEST_F(CudaContext, ArenasThatLeaveNoMemoryForCodeAreNamed) {
  fakecuda::FakeOptions options;
  options.codeBytes = options.memoryBytes;
  resetCuda(options);
  EXPECT_THAT(creationError(Ring({"cuda", "host"})),
              HasSubstr("the arenas leave no memory for GPU code, which is in "
                        "no plan: lower the device's limit "
                        "(--machine=cuda:1@SIZE): CUDA_ERROR_OUT_OF_MEMORY"));
}

} // namespace
