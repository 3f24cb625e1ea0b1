//===- CallerTest.cpp - The calling thread runs a device ------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Short steps that surely end begin in the thread that calls: the results, the
/// errors and the thread's own state are those of a step that wakes others.
///
//===----------------------------------------------------------------------===//

#include "TestPrograms.h"

#include <gmock/gmock.h>

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

using namespace baechi::runtime;
using namespace baechi::runtime::test;
using testing::HasSubstr;

namespace {

Program shortProgram(size_t devices) {
  Program program = makeProgram(devices);
  program.ends = true;
  program.predicted.stepNs = 1000;
  return program;
}

/// Message i goes from device i to the next one, round all of them.
Program roundTrip(Program program) {
  auto devices = int32_t(program.devices.size());
  for (int32_t i = 0; i < devices; ++i)
    addQueue(program, i, (i + 1) % devices, {1});
  addArgument(program, 0, 0, 1);
  addResult(program, 0, 64, 1);
  return program;
}

/// Adds one on each device.
std::vector<Body> addingBodies(int32_t devices) {
  std::vector<Body> result;
  for (int32_t i = 0; i < devices; ++i)
    result.push_back([=](Context context, char *arena) -> int32_t {
      if (i == 0)
        return sendAndWait(context, 0, 0, arena) ||
               recvAndWait(context, devices - 1, 0, arena + 64);
      if (recvAndWait(context, i - 1, 0, arena))
        return 1;
      ++*arena;
      return sendAndWait(context, i, 0, arena);
    });
  return result;
}

TEST(Caller, RunsOneDeviceOfAShortStep) {
  for (size_t devices : {1, 2}) {
    std::thread::id ranOn[2];
    std::vector<Body> notes;
    for (size_t i = 0; i < devices; ++i)
      notes.push_back([&, i](Context, char *) {
        ranOn[i] = std::this_thread::get_id();
        return 0;
      });
    auto session = makeSession(shortProgram(devices), notes);
    ASSERT_TRUE(session);
    ASSERT_SUCCESS(session->step());
    EXPECT_EQ(1,
              std::count(ranOn, ranOn + devices, std::this_thread::get_id()));
  }
}

TEST(Caller, RunsNoneOfOtherSteps) {
  Program mayNotEnd = shortProgram(1), isLong = shortProgram(1),
          isUnknown = shortProgram(1);
  mayNotEnd.ends = false;
  isLong.predicted.stepNs = 100'000'000;
  isUnknown.predicted.stepNs = 0;
  for (const Program &program : {mayNotEnd, isLong, isUnknown}) {
    std::thread::id ranOn;
    auto session = makeSession(program, {[&](Context, char *) {
                                 ranOn = std::this_thread::get_id();
                                 return 0;
                               }});
    ASSERT_TRUE(session);
    ASSERT_SUCCESS(session->step());
    EXPECT_NE(std::this_thread::get_id(), ranOn);
  }
}

TEST(Caller, WakesWhoeverHasSomethingToDo) {
  for (int32_t devices : {2, 3, 4})
    for (bool pins : {true, false}) {
      SessionOptions options;
      options.pinThreads = pins;
      auto session = makeSession(roundTrip(shortProgram(size_t(devices))),
                                 addingBodies(devices), options);
      ASSERT_TRUE(session);
      for (char value = 0; value < 100; ++value) {
        ASSERT_SUCCESS(session->setArgument(0, &value, 1));
        ASSERT_SUCCESS(session->step());
        char result = 0;
        ASSERT_SUCCESS(session->getResult(0, &result, 1));
        ASSERT_EQ(value + devices - 1, result);
      }
    }
}

/// From any thread, in turns, and beside other sessions.
TEST(Caller, MayBeAnyThread) {
  auto one = makeSession(roundTrip(shortProgram(2)), addingBodies(2));
  auto other = makeSession(roundTrip(shortProgram(2)), addingBodies(2));
  ASSERT_TRUE(one && other);
  std::mutex turn;
  auto use = [](Session &session, std::mutex *turn) {
    for (char value = 0; value < 100; ++value) {
      std::unique_lock<std::mutex> guard =
          turn ? std::unique_lock<std::mutex>(*turn)
               : std::unique_lock<std::mutex>();
      ASSERT_SUCCESS(session.setArgument(0, &value, 1));
      ASSERT_SUCCESS(session.step());
      char result = 0;
      ASSERT_SUCCESS(session.getResult(0, &result, 1));
      ASSERT_EQ(value + 1, result);
    }
  };
  std::thread threads[] = {std::thread([&] { use(*one, &turn); }),
                           std::thread([&] { use(*one, &turn); }),
                           std::thread([&] { use(*other, nullptr); })};
  for (std::thread &thread : threads)
    thread.join();
}

/// Whoever fails, on the caller's thread or elsewhere, all end, the error names
/// the device, and the next step is right.
TEST(Caller, SeesFailuresOfAll) {
  std::atomic<int32_t> failing{-1};
  std::vector<Body> adding = addingBodies(3), entries;
  for (int32_t i = 0; i < 3; ++i)
    entries.push_back([&, i](Context context, char *arena) {
      if (failing == i)
        return baechi_fail(context, "chosen");
      return adding[size_t(i)](context, arena);
    });
  auto session = makeSession(roundTrip(shortProgram(3)), entries);
  ASSERT_TRUE(session);
  for (int round = 0; round < 20; ++round) {
    failing = round % 3;
    Error error = session->step();
    ASSERT_TRUE(error);
    EXPECT_THAT(error.message(), HasSubstr("host" + std::to_string(failing)));
    EXPECT_THAT(error.message(), HasSubstr("chosen"));
    failing = -1;
    ASSERT_SUCCESS(session->step());
  }
}

TEST(Caller, FindsADeadlockWhileItSleeps) {
  auto session = makeSession(roundTrip(shortProgram(2)),
                             {[](Context context, char *arena) {
                                return recvAndWait(context, 1, 0, arena);
                              },
                              [](Context context, char *arena) {
                                return recvAndWait(context, 0, 0, arena);
                              }});
  ASSERT_TRUE(session);
  auto begun = std::chrono::steady_clock::now();
  EXPECT_THAT(session->step().message(), HasSubstr("deadlock"));
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(30));
}

/// The other device is late for the watchdog.
TEST(Caller, GivesUpAStepInWhichNothingHappens) {
  SessionOptions options;
  options.watchdogSeconds = 0.1;
  options.abortGraceSeconds = 30;
  // Which one the caller runs depends on its processor: only the other sleeps.
  std::thread::id caller = std::this_thread::get_id();
  auto sleepsElsewhere = [=](int32_t device) {
    return [=](Context context, char *arena) {
      if (std::this_thread::get_id() == caller)
        return recvAndWait(context, 1 - device, 0, arena);
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
      return 0;
    };
  };
  auto session = makeSession(roundTrip(shortProgram(2)),
                             {sleepsElsewhere(0), sleepsElsewhere(1)}, options);
  ASSERT_TRUE(session);
  EXPECT_THAT(session->step().message(), HasSubstr("watchdog"));
  EXPECT_TRUE(session->usable());
}

TEST(Caller, ComputesAsDevicesDoOnlyMeanwhile) {
  volatile float tiny = 1e-40f, one = 1;
  auto session =
      makeSession(shortProgram(1),
                  {[&](Context, char *) { return tiny * one == 0 ? 0 : 1; }});
  ASSERT_TRUE(session);
  ASSERT_SUCCESS(session->step());
  EXPECT_NE(tiny * one, 0);
}

TEST(Caller, IsTheDeviceThatDividesByZero) {
  auto session = makeSession(shortProgram(1), {[](Context context, char *) {
                               baechi_operator_begin(context, 1);
                               baechi_divided_by_zero();
                               baechi_operator_end(context, 1);
                               return 0;
                             }});
  ASSERT_TRUE(session);
  EXPECT_THAT(session->step().message(), HasSubstr("divided by zero"));
  baechi_divided_by_zero(); // of nobody's step
}

/// A child has the memory, and none of the threads.
TEST(Caller, RefusesAStepInAForkedProcess) {
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
  GTEST_SKIP() << "ThreadSanitizer knows no threads of a forked process";
#endif
#endif
  auto session = makeSession(roundTrip(shortProgram(2)), addingBodies(2));
  ASSERT_TRUE(session);
  ASSERT_SUCCESS(session->step());
  pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    bool refused =
        session->step().message().find("forked") != std::string::npos;
    session.reset(); // waits for no thread
    _exit(refused ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(child, waitpid(child, &status, 0));
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_SUCCESS(session->step());
}

} // namespace
