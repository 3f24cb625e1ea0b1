//===- CudaRanksTest.cpp - CUDA devices of several ranks ---===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Ranks are threads (RankThreads.h), on the fake driver and the fake NCCL
/// (FakeCuda/FakeNccl.h), or on GPUs.
///
//===----------------------------------------------------------------------===//

#include "CudaPrograms.h"
#include "RankThreads.h"

#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <iostream>

#include <unistd.h>

using namespace baechi::runtime;
using namespace baechi::runtime::test;
using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using testing::StartsWith;
using Clock = std::chrono::steady_clock;

namespace {

class CudaRanksTest : public testing::Test, protected RankThreads {
protected:
  void SetUp() override {
    if (!usesFakeCuda())
      GTEST_SKIP() << "only the fake driver has the GPUs that are wanted";
  }

  static void reset(int gpus, fakecuda::FakeOptions options = {}) {
    options.devices = gpus;
    resetCuda(options);
  }

  void build(int32_t ranks, Ring &ring) {
    RankThreads::build(ranks);
    program = ring.program;
    std::vector<Body> list = ring.bodies();
    std::move(list.begin(), list.end(), bodies);
  }

  /// What rank 0 wrote to standard error meanwhile.
  std::string runAndHear(const std::function<void(Session &)> &lead) {
    testing::internal::CaptureStderr();
    run(lead);
    return testing::internal::GetCapturedStderr();
  }

  std::string allErrors() const {
    std::string text;
    for (const auto *errors : {&createErrors, &followErrors})
      for (const std::string &error : *errors)
        text += error;
    return text;
  }
};

struct Machine {
  const char *name;
  int gpus;
  int32_t ranks;
  std::vector<std::string> kinds;
  bool usesNccl;
};

const Machine machines[] = {
    {"AGpuARank", 2, 2, {"cuda", "cuda"}, true},
    {"TwoGpusARank", 4, 2, {"cuda", "cuda", "cuda", "cuda"}, true},
    {"TwoDevicesAGpu", 2, 2, {"cuda", "cuda", "cuda", "cuda"}, true},
    {"ThreeRanks", 3, 3, {"cuda", "cuda", "cuda"}, true},
    {"OneGpuForAll", 1, 2, {"cuda", "cuda"}, false},
    {"HostAndGpu", 1, 2, {"host", "cuda"}, false},
    {"HostsBeside", 2, 2, {"cuda", "host", "host", "cuda"}, true},
    {"ARankOfHosts", 2, 3, {"host", "cuda", "cuda"}, true},
    // Ranks 0 and 1 share a GPU, 1 and 2 do not.
    {"Some", 2, 3, {"cuda", "cuda", "cuda"}, true},
};

TEST_F(CudaRanksTest, GiveTheRightNumbers) {
  for (const Machine &machine : machines)
    for (uint64_t seed = 1; seed <= 4; ++seed)
      for (bool timeline : {true, false}) {
        SCOPED_TRACE(machine.name);
        fakecuda::FakeOptions fake;
        fake.seed = seed;
        fake.longestDelay = seed == 4 ? 300 : 0;
        reset(machine.gpus, fake);
        Ring ring(machine.kinds);
        build(machine.ranks, ring);
        hub->eager = seed % 2;
        hub->longestDelay = seed == 3 ? 40 : 0;
        options.timeline = timeline;
        runAndHear([&](Session &session) {
          for (int64_t step = 0; step < 4; ++step)
            ring.stepsRight(session, step);
          for (const auto &queue : session.timeline().queues)
            for (const CopyRecord &copy : queue)
              EXPECT_TRUE(copy.happened() || !timeline);
        });
        EXPECT_EQ("", allErrors());
        EXPECT_EQ(0, hub->wrong);
        EXPECT_EQ(machine.usesNccl, fakeNcclLog()[0] != 0);
        ASSERT_EQ("", cudaMisuse());
      }
}

TEST_F(CudaRanksTest, SaysWhatGoesThroughTheHost) {
  Ring ring({"cuda", "cuda"});
  auto notes = [&](int gpus) {
    reset(gpus);
    build(2, ring);
    return runAndHear([](Session &session) { EXPECT_SUCCESS(session.step()); });
  };
  EXPECT_EQ("", notes(2));
  const std::string begin = "baechi: note: messages between cuda0 and cuda1 go "
                            "through host memory, not by NCCL: ";
  EXPECT_EQ(begin + "both devices are on one GPU, which NCCL takes once\n",
            notes(1));
  {
    Environment off("BAECHI_NCCL", "0");
    EXPECT_EQ(begin + "BAECHI_NCCL=0 is set\n", notes(2));
    EXPECT_STREQ("", fakeNcclLog());
  }
  ring.program.queues[0].messages[1].group = -1;
  EXPECT_EQ(begin + "the program does not tell their order; compile it again\n",
            notes(2));
  // The other direction still goes by NCCL, of which rank 0 has the first GPU.
  EXPECT_THAT(fakeNcclLog(), HasSubstr("1: > 0 32\n"));
  EXPECT_THAT(fakeNcclLog(), testing::Not(HasSubstr("0: > 1 32\n")));
}

/// Ranks 0 and 1 share a GPU, and NCCL has it of one of them.
TEST_F(CudaRanksTest, NcclHasAGpuOfOneRank) {
  reset(2);
  Ring ring({"cuda", "cuda", "cuda"});
  build(3, ring);
  std::string notes =
      runAndHear([&](Session &session) { ring.stepsRight(session, 1); });
  EXPECT_THAT(notes, HasSubstr("cuda0 and cuda1 go through host memory, not by "
                               "NCCL: both devices are on one GPU"));
  EXPECT_THAT(notes, HasSubstr("cuda2 and cuda0 go through host memory, not by "
                               "NCCL: another process has one of the two GPUs "
                               "in NCCL, which takes it once"));
  EXPECT_THAT(fakeNcclLog(), HasSubstr("0: > 1 32\n"));
  EXPECT_EQ("", allErrors());
}

/// Two devices that exchange three messages each way, all offered at once.
TEST_F(CudaRanksTest, WhatIsReadyGoesTogether) {
  reset(2);
  RankThreads::build(2);
  program = makeProgram(2, 4096);
  for (int32_t device : {0, 1}) {
    program.devices[size_t(device)].kind = "cuda";
    addQueue(program, device, 1 - device, {64, 0, 128});
    for (MessageInfo &message : program.queues.back().messages)
      message.group = 0;
    bodies[device] = [device](Context context, char *arena) {
      for (int32_t seq = 0; seq < 3; ++seq)
        if (baechi_send(context, device, seq, arena + 256 * seq) ||
            baechi_recv(context, 1 - device, seq, arena + 2048 + 256 * seq))
          return 1;
      for (int32_t seq = 0; seq < 3; ++seq)
        if (baechi_await_send(context, device, seq) ||
            baechi_await_recv(context, 1 - device, seq))
          return 1;
      return 0;
    };
  }
  int together = 0;
  for (int round = 0; round < 200 && together == 0; ++round) {
    run([](Session &session) { EXPECT_SUCCESS(session.step()); });
    // Whatever was ready when the first was issued: not always all.
    std::string log = fakeNcclLog();
    together += log.find("0: > 1 64 > 1 128 < 1 64 < 1 128\n") != log.npos;
  }
  EXPECT_GT(together, 0);
  EXPECT_EQ("", allErrors());
}

/// Device 0 posts the buffer of an answer before it sends the question: NCCL
/// must not be given the receive first, nor both at once, for its own message
/// in between, which needs the first one's end.
class CudaRanksOrderTest : public CudaRanksTest {
protected:
  void converse(std::vector<int64_t> groups) {
    reset(2);
    RankThreads::build(2);
    program = makeProgram(2, 4096);
    for (DeviceInfo &device : program.devices)
      device.kind = "cuda";
    addQueue(program, 0, 1, {64, 64});
    addQueue(program, 1, 0, {64});
    program.queues[0].messages[0].group = groups[0];
    program.queues[0].messages[1].group = groups[1];
    program.queues[1].messages[0].group = groups[2];
    bodies[0] = [](Context context, char *arena) {
      return baechi_recv(context, 1, 0, arena + 1024) ||
             sendAndWait(context, 0, 0, arena) ||
             sendAndWait(context, 0, 1, arena) ||
             baechi_await_recv(context, 1, 0);
    };
    bodies[1] = [](Context context, char *arena) {
      return recvAndWait(context, 0, 0, arena) ||
             recvAndWait(context, 0, 1, arena + 256) ||
             sendAndWait(context, 1, 0, arena + 1024);
    };
    options.watchdogSeconds = 1;
    options.abortGraceSeconds = 0.5;
  }
};

TEST_F(CudaRanksOrderTest, TheProgramsOrderEnds) {
  converse({0, 1, 2});
  run([](Session &session) {
    for (int step = 0; step < 5; ++step)
      EXPECT_SUCCESS(session.step());
  });
  EXPECT_EQ("", allErrors());
}

TEST_F(CudaRanksOrderTest, AWrongOrderIsFoundByTheWatchdog) {
  converse({1, 2, 0});
  run([](Session &session) {
    EXPECT_THAT(session.step().message(),
                HasSubstr("no device made progress within the watchdog's "
                          "time: "));
  });
}

TEST_F(CudaRanksTest, ALostRankEndsTheStep) {
  for (int gpus : {3, 1}) // By NCCL, and through the host.
    for (int32_t lost : {1, 2}) {
      reset(gpus);
      Ring ring({"cuda", "cuda", "cuda"});
      build(3, ring);
      options.timeline = false; // else nothing is replayed
      // Not when the step is only run through, as a session starts.
      std::atomic<bool> isLost{false};
      bodies[lost] = [&, lost, usual = bodies[lost]](Context context,
                                                     char *arena) {
        if (!isLost)
          return usual(context, arena);
        baechi_operator_begin(context, 0);
        hub->killed = lost;
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        return 1;
      };
      Clock::time_point begin = Clock::now();
      int launches = 0;
      runAndHear([&](Session &session) {
        for (int64_t step = 0; step < 3; ++step)
          ring.stepsRight(session, step);
        launches = fakeCudaGraphLaunches();
        isLost = true;
        EXPECT_THAT(session.step().message(),
                    StartsWith("rank " + std::to_string(lost) +
                               " was lost: its process has ended; it held "
                               "cuda" +
                               std::to_string(lost)));
        EXPECT_FALSE(session.usable());
      });
      EXPECT_GT(launches, 0);
      EXPECT_LT(Clock::now() - begin, std::chrono::seconds(30));
      EXPECT_EQ("", cudaMisuse());
    }
}

TEST_F(CudaRanksTest, AnErrorThatNcclLearnsOfEndsTheStep) {
  fakecuda::FakeOptions fake;
  fake.ncclBreakGroup = 5; // The first two connect.
  reset(2, fake);
  Ring ring({"cuda", "cuda"});
  build(2, ring);
  run([&](Session &session) {
    EXPECT_THAT(session.step().message(),
                AllOf(StartsWith("rank "), HasSubstr("NCCL"),
                      HasSubstr("remote process exited")));
  });
  EXPECT_EQ("", followErrors[1]);
  // A new session goes on.
  run([&](Session &session) { ring.stepsRight(session, 1); });
  EXPECT_EQ("", allErrors());
}

TEST_F(CudaRanksTest, AFailingDeviceEndsTheOthers) {
  reset(2);
  Ring ring({"cuda", "cuda"});
  build(2, ring);
  bodies[1] = [](Context context, char *) {
    baechi_operator_begin(context, 1);
    return baechi_fail(context, "no luck");
  };
  run([&](Session &session) {
    EXPECT_EQ("rank 1: device cuda1, in operator 1 'add_numbers0': no luck",
              session.step().message());
  });
}

/// Each call of CUDA and NCCL fails once, in the creation and a step of two
/// ranks.
TEST_F(CudaRanksTest, EveryCallFails) {
  Ring ring({"cuda", "cuda"}, /*forgets=*/false, /*rounds=*/1);
  auto step = [&](Session &session, std::string &said) {
    int64_t zero[Ring::count / 2] = {};
    for (size_t device = 0; device < 2 && said.empty(); ++device)
      said = session.setArgument(device, zero, sizeof(zero)).message();
    if (said.empty())
      said = session.step().message();
  };
  for (int gpus : {2, 1}) {
    std::string said;
    reset(gpus);
    build(2, ring);
    runAndHear([&](Session &session) { step(session, said); });
    ASSERT_EQ("", said + allErrors());
    int calls = fakeCudaCalls(), failures = 0;
    for (int n = gpus; n <= calls; n += 3) {
      SCOPED_TRACE(n);
      fakecuda::FakeOptions fake;
      fake.failCall = n;
      reset(gpus, fake);
      build(2, ring);
      said.clear();
      runAndHear([&](Session &session) { step(session, said); });
      std::string all = said + allErrors();
      failures += !all.empty();
      if (!all.empty()) {
        EXPECT_THAT(all, AnyOf(HasSubstr("CUDA_ERROR_UNKNOWN"),
                               HasSubstr("unhandled system error")));
      }
    }
    EXPECT_GT(failures, 30);
    // What a failing call was to release is left; nothing outlives that.
    reset(gpus);
    build(2, ring);
    runAndHear([&](Session &session) { ring.stepsRight(session, 7); });
    EXPECT_EQ("", allErrors() + cudaMisuse());
  }
}

TEST_F(CudaRanksTest, SlowCallsChangeNothing) {
  for (const char *name : {"ncclGroupEnd", "ncclCommInitRankConfig",
                           "cuEventRecord", "cuMemcpyAsync", "cuEventQuery"}) {
    SCOPED_TRACE(name);
    fakecuda::FakeOptions fake;
    fake.slowFunction = name;
    fake.slowMicroseconds = 500;
    fake.longestDelay = 100;
    reset(2, fake);
    Ring ring({"cuda", "host", "host", "cuda"});
    build(2, ring);
    run([&](Session &session) {
      for (int64_t step = 0; step < 2; ++step)
        ring.stepsRight(session, step);
    });
    EXPECT_EQ("", allErrors());
  }
}

/// In a process of its own: what has been loaded stays.
int createWithoutNccl() {
  setenv("BAECHI_NCCL_LIBRARY", "/nowhere/libnccl.so.2", 1);
  fakecuda::FakeOptions fake;
  fake.devices = 2;
  resetCuda(fake);
  Ring ring({"cuda", "cuda"});
  RankThreads ranks;
  ranks.build(2);
  ranks.program = ring.program;
  std::vector<Body> list = ring.bodies();
  std::move(list.begin(), list.end(), bodies);
  ranks.run([](Session &) {});
  std::cerr << ranks.createErrors[0] << '\n';
  return ranks.createErrors[0] == ranks.createErrors[1] ? 0 : 1;
}

/// Whichever of them would have come first.
TEST_F(CudaRanksTest, ArenasThatDoNotFitTogetherAreRefused) {
  Ring ring({"cuda", "cuda"});
  fakecuda::FakeOptions options;
  options.memoryBytes = 1500;
  reset(/*gpus=*/1, options);
  build(2, ring);
  run([](Session &) { ADD_FAILURE() << "a session was created"; });
  for (const std::string &error : createErrors)
    EXPECT_THAT(error, HasSubstr("the 2 devices of the program on this GPU "
                                 "need arenas of 2048 bytes together, and it "
                                 "has 1500: lower their limits"));
}

TEST_F(CudaRanksTest, NamesAMissingLibrary) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(_exit(createWithoutNccl()), testing::ExitedWithCode(0),
              "rank 0: NCCL cannot be loaded: /nowhere/libnccl.so.2: .*; "
              "install it, name it in BAECHI_NCCL_LIBRARY, or set "
              "BAECHI_NCCL=0");
}

} // namespace
