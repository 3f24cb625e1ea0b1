//===- CudaFaultTest.cpp - Every call of CUDA fails once ---===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudaPrograms.h"

#include <gmock/gmock.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <thread>

#include <unistd.h>

using namespace baechi::runtime;
using namespace baechi::runtime::test;
using testing::AllOf;
using testing::HasSubstr;
using testing::MatchesRegex;
using Clock = std::chrono::steady_clock;

namespace {

class CudaFaultTest : public testing::Test {
protected:
  void SetUp() override {
    if (!usesFakeCuda())
      GTEST_SKIP() << "only the fake driver can be made to fail";
  }

  /// A session that must come to be and give the right numbers.
  static void succeeds(Ring &ring, const SessionOptions &given = {}) {
    auto session = makeSession(ring.program, ring.bodies(), given);
    ASSERT_TRUE(session);
    for (int64_t step = 0; step < stepsOf(given); ++step)
      ring.stepsRight(*session, step);
  }

  static void everyCallFails(const fakecuda::FakeOptions &machine,
                             const SessionOptions &given = {});
  /// Without a timeline, the first notes, the second captures, the third
  /// replays.
  static int64_t stepsOf(const SessionOptions &given) {
    return given.timeline ? 1 : 3;
  }
};

/// On a machine as `machine` says.
void CudaFaultTest::everyCallFails(const fakecuda::FakeOptions &machine,
                                   const SessionOptions &given) {
  Ring ring({"cuda", "cuda", "host"}, /*forgets=*/false, /*rounds=*/1);
  resetCuda(machine);
  succeeds(ring, given);
  int calls = fakeCudaCalls();
  ASSERT_GT(calls, 100);
  int refused = 0, failed = 0, unnoticed = 0;
  for (int n = 1; n <= calls; ++n) {
    SCOPED_TRACE(n);
    fakecuda::FakeOptions options = machine;
    options.failCall = n;
    options.failWith = 2; // Out of memory: the context survives.
    resetCuda(options);
    std::string said;
    auto session = Session::create(
        ring.program,
        [&](const std::string &name) {
          std::vector<Body> list = ring.bodies();
          std::move(list.begin(), list.end(), bodies);
          return resolveBody(name);
        },
        given);
    bool created = bool(session);
    if (!created) {
      ++refused;
      EXPECT_THAT(session.error().message(),
                  AllOf(MatchesRegex("(device cuda[01]|queue [012]).*"),
                        HasSubstr("CUDA_ERROR_OUT_OF_MEMORY")));
    } else {
      int64_t zero[Ring::count / 2] = {};
      for (int64_t step = 0; step < stepsOf(given) && said.empty(); ++step) {
        for (size_t device = 0; device < 3 && said.empty(); ++device)
          said = (*session)->setArgument(device, zero, sizeof(zero)).message();
        if (said.empty())
          said = (*session)->step().message();
      }
      failed += !said.empty();
      unnoticed += said.empty();
      if (!said.empty())
        EXPECT_THAT(said,
                    AllOf(MatchesRegex("(device (cuda|host)[012]|argument "
                                       "[012]).*"),
                          HasSubstr("CUDA_ERROR_OUT_OF_MEMORY")));
      // The next step can run.
      if (!said.empty() && (*session)->usable())
        for (int64_t step = 0; step < stepsOf(given); ++step)
          ring.stepsRight(**session, step);
      session->reset();
    }
    // A call that releases something and fails leaves that behind; all else is
    // given back. (Where it was to select the device, there is more behind it.)
    bool ending = created && said.empty();
    EXPECT_THAT(cudaMisuse(), MatchesRegex(ending ? "([0-9]+ [a-z ]+ left\n)*"
                                                  : "(1 [a-z ]+ left\n)*"));
    resetCuda(machine);
    if (n % 8 == 0)
      succeeds(ring, given); // Nothing of it is left in this process.
    EXPECT_EQ("", cudaMisuse());
  }
  EXPECT_GT(refused, 20);
  EXPECT_GT(failed, 20);
  EXPECT_GT(unnoticed, 0);
}

TEST_F(CudaFaultTest, EveryCallFails) { everyCallFails({}); }

TEST_F(CudaFaultTest, EveryCallFailsBetweenGpus) {
  fakecuda::FakeOptions machine;
  machine.devices = 2;
  everyCallFails(machine);
}

TEST_F(CudaFaultTest, EveryCallFailsThroughTheHost) {
  fakecuda::FakeOptions machine;
  machine.devices = 2;
  machine.peerAccess = false;
  everyCallFails(machine);
}

TEST_F(CudaFaultTest, EveryCallFailsInReplays) {
  SessionOptions untimed;
  untimed.timeline = false;
  testing::internal::CaptureStderr();
  everyCallFails({}, untimed);
  // A capture that fails is no failure of the step.
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("graphs: "));
}

TEST_F(CudaFaultTest, AKernelThatDestroysItsContext) {
  for (int launch = 1; launch <= 8; ++launch) {
    SCOPED_TRACE(launch);
    fakecuda::FakeOptions options;
    options.breakLaunch = launch;
    resetCuda(options);
    Ring ring({"cuda", "host"});
    auto session = makeSession(ring.program, ring.bodies());
    ASSERT_TRUE(session);
    EXPECT_THAT(session->step().message(),
                AllOf(HasSubstr("device cuda0"),
                      HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS")));
    session.reset();
    options.breakLaunch = 0;
    resetCuda(options);
    succeeds(ring);
  }
}

int stepBlocking() {
  setenv("BAECHI_CUDA_BLOCKING", "1", 1);
  fakecuda::FakeOptions options;
  options.breakLaunch = 3;
  resetCuda(options);
  Ring ring({"cuda", "host"});
  auto session = makeSession(ring.program, ring.bodies());
  std::cerr << session->step().message() << '\n';
  return session->usable();
}

TEST_F(CudaFaultTest, BlockingNamesTheOperator) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(_exit(stepBlocking()), testing::ExitedWithCode(0),
              "device cuda0, in operator 2 'double_numbers1': .*"
              "CUDA_ERROR_ILLEGAL_ADDRESS");
}

TEST_F(CudaFaultTest, AKernelThatDoesNotEnd) {
  fakecuda::FakeOptions options;
  options.hangLaunch = 2;
  resetCuda(options);
  Ring ring({"cuda", "host"});
  SessionOptions session;
  session.watchdogSeconds = 0.5;
  session.abortGraceSeconds = 0.1;
  auto hanging = makeSession(ring.program, ring.bodies(), session);
  ASSERT_TRUE(hanging);
  Clock::time_point begin = Clock::now();
  EXPECT_THAT(hanging->step().message(),
              AllOf(HasSubstr("no device made progress within the watchdog's "
                              "time"),
                    HasSubstr("left behind: cuda0")));
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(60));
  EXPECT_FALSE(hanging->usable());
  hanging.reset();
  fakeCudaRelease();
  // The thread that was left behind gives all back.
  for (int i = 0; i < 500 && !cudaMisuse().empty(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ("", cudaMisuse());
}

} // namespace
