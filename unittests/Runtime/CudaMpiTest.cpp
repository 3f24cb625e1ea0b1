//===- CudaMpiTest.cpp - CUDA devices of several processes ---===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Processes that mpirun has started: test/Tools/run-ranks-cuda.test, and
/// benchmarks/gpu/run.sh on GPUs. Each has one device. Without mpirun all is
/// skipped.
///
//===----------------------------------------------------------------------===//

#include "CudaPrograms.h"

#include "Baechi/Runtime/Launch.h"
#include "Baechi/Runtime/Ranks.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <utility>

#include <unistd.h>

using namespace baechi::runtime;
using namespace baechi::runtime::test;

namespace {

class CudaMpiTest : public testing::Test {
protected:
  void SetUp() override {
    auto launch = findLaunch();
    if (!launch || launch->way != Launch::Way::Mpi)
      GTEST_SKIP() << "mpirun has not started several processes";
    auto joined = Ranks::join(*launch, BAECHI_MPI_MODULE);
    ASSERT_TRUE(joined) << joined.error().message();
    ranks = *joined;
    // What rank 0 says is enough.
    testing::TestEventListeners &listeners =
        testing::UnitTest::GetInstance()->listeners();
    if (!ranks->leads())
      delete listeners.Release(listeners.default_result_printer());
  }

  /// This rank's session of a program; the others follow rank 0's.
  void run(const Program &program, std::vector<Body> list,
           const std::function<void(Session &)> &lead) {
    SessionOptions options;
    options.ranks = ranks;
    auto session = makeSession(program, std::move(list), options);
    ASSERT_TRUE(session);
    if (ranks->leads())
      lead(*session);
    else
      EXPECT_SUCCESS(session->follow());
  }

  Ring ring() const {
    return Ring(std::vector<std::string>(size_t(ranks->size()), "cuda"));
  }

  std::shared_ptr<Ranks> ranks;
};

TEST_F(CudaMpiTest, ARing) {
  Ring all = ring();
  run(all.program, all.bodies(), [&](Session &session) {
    for (int64_t step = 0; step < 20; ++step)
      all.stepsRight(session, step);
    std::cout << "a ring of " << ranks->size() << " processes, "
              << session.stagingBytes()
              << " bytes of rank 0's messages through the host\n";
  });
  ranks->close();
}

TEST_F(CudaMpiTest, AKilledProcess) {
  Ring all = ring();
  std::vector<Body> list = all.bodies();
  list[1] = [rehearses = true](Context context, char *) mutable {
    if (std::exchange(rehearses, false))
      return 0;
    baechi_operator_begin(context, 0);
    return raise(SIGKILL);
  };
  run(all.program, std::move(list), [&](Session &session) {
    std::cout << session.step().message() << std::endl;
  });
  // MPI cannot end in order any more.
  std::fflush(nullptr);
  _exit(ranks->broken() ? 0 : 1);
}

/// How fast messages between processes are.
TEST_F(CudaMpiTest, Bandwidth) {
  for (int64_t bytes :
       {int64_t(64) << 10, int64_t(4) << 20, int64_t(24) << 20}) {
    Program program = makeProgram(size_t(ranks->size()), bytes);
    for (DeviceInfo &device : program.devices)
      device.kind = "cuda";
    addQueue(program, 0, 1, {bytes});
    program.queues[0].messages[0].group = 0;
    std::vector<Body> list(size_t(ranks->size()), doNothing);
    list[0] = [](Context context, char *arena) {
      return sendAndWait(context, 0, 0, arena);
    };
    list[1] = [](Context context, char *arena) {
      return recvAndWait(context, 0, 0, arena);
    };
    run(program, std::move(list), [&](Session &session) {
      int64_t best = 0;
      for (int step = 0; step < 10; ++step) {
        ASSERT_SUCCESS(session.step());
        int64_t time = session.timeline().queues[0][0].durationNs();
        best = step == 0 ? time : std::min(best, time);
      }
      std::printf("a message of %lld KiB between two processes%s: %.1f us, "
                  "%.1f GB/s\n",
                  static_cast<long long>(bytes >> 10),
                  session.stagingBytes() ? ", through the host" : "",
                  double(best) / 1e3,
                  double(bytes) / std::max(double(best), 1.0));
    });
  }
  ranks->close();
}

} // namespace
