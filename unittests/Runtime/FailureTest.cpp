//===- FailureTest.cpp - Aborts, deadlocks, misuse ------------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestPrograms.h"

#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <iostream>
#include <thread>

#include <unistd.h>

using namespace baechi::runtime;
using namespace baechi::runtime::test;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

namespace {

/// Every device sends a message to every other and waits for all of them, so
/// that a device that fails leaves all others waiting. `failing` fails inside
/// operator 1; -1: none does.
struct AllToAll {
  explicit AllToAll(int32_t devices) : devices(devices) {
    program = makeProgram(devices);
    for (int32_t from = 0; from < devices; ++from)
      for (int32_t to = 0; to < devices; ++to)
        if (from != to)
          addQueue(program, from, to, {8});
    for (int32_t device = 0; device < devices; ++device)
      entries.push_back([this, device](Context context, char *arena) {
        return run(context, arena, device);
      });
  }

  int32_t run(Context context, char *arena, int32_t device) {
    baechi_operator_begin(context, 0);
    baechi_operator_end(context, 0);
    if (failing == device) {
      baechi_operator_begin(context, 1);
      if (int32_t returned = code)
        return returned;
      return baechi_fail(context, "the kernel gave up");
    }
    for (size_t q = 0; q < program.queues.size(); ++q) {
      char *buffer = arena + 64 * q;
      if (program.queues[q].from == device &&
          baechi_send(context, q, 0, buffer))
        return 1;
      if (program.queues[q].to == device && baechi_recv(context, q, 0, buffer))
        return 1;
    }
    for (size_t q = 0; q < program.queues.size(); ++q) {
      if (program.queues[q].from == device && baechi_await_send(context, q, 0))
        return 1;
      if (program.queues[q].to == device && baechi_await_recv(context, q, 0))
        return 1;
    }
    return 0;
  }

  int32_t devices;
  Program program;
  std::vector<Body> entries;
  std::atomic<int32_t> failing{-1};
  std::atomic<int32_t> code{0};
};

TEST(Failure, EachDeviceInTurn) {
  AllToAll all(4);
  auto session = makeSession(all.program, all.entries);
  ASSERT_TRUE(session);
  for (int32_t device = 0; device < 4; ++device) {
    std::string who = "device host" + std::to_string(device);
    all.failing = device;
    EXPECT_EQ(who + ", in operator 1 'b': the kernel gave up",
              session->step().message());
    all.code = 7;
    EXPECT_EQ(who + ", in operator 1 'b': its step function returned 7",
              session->step().message());
    all.code = 0;
    // The next step is none the worse for it.
    all.failing = -1;
    EXPECT_TRUE(session->usable());
    ASSERT_SUCCESS(session->step());
  }
}

TEST(Failure, ResultsOfAFailedStepCannotBeRead) {
  AllToAll all(2);
  addResult(all.program, 0, 0, 8);
  auto session = makeSession(all.program, all.entries);
  ASSERT_TRUE(session);
  char value[8];
  ASSERT_SUCCESS(session->step());
  EXPECT_SUCCESS(session->getResult(0, value, 8));
  all.failing = 1;
  EXPECT_TRUE(bool(session->step()));
  EXPECT_THAT(session->getResult(0, value, 8).message(),
              HasSubstr("no step has succeeded"));
}

TEST(Failure, MissingSenderIsADeadlock) {
  Program program = makeProgram(3);
  addQueue(program, 0, 1, {4});
  addQueue(program, 1, 2, {4});
  auto session =
      makeSession(program, {doNothing,
                            [](Context context, char *arena) {
                              return recvAndWait(context, 0, 0, arena);
                            },
                            [](Context context, char *arena) {
                              return recvAndWait(context, 1, 0, arena);
                            }});
  ASSERT_TRUE(session);
  for (int step = 0; step < 2; ++step)
    EXPECT_EQ("deadlock: host1 waits to receive message 0 'm0' of queue 0 "
              "(host0 to host1) before its first operator; host2 waits to "
              "receive message 0 'm0' of queue 1 (host1 to host2) before its "
              "first operator",
              session->step().message());
  EXPECT_TRUE(session->usable());
}

TEST(Failure, MissingReceiverIsADeadlock) {
  Program program = makeProgram(2);
  addQueue(program, 0, 1, {4});
  auto session =
      makeSession(program, {[](Context context, char *arena) {
                              baechi_operator_begin(context, 0);
                              baechi_operator_end(context, 0);
                              return sendAndWait(context, 0, 0, arena);
                            },
                            doNothing});
  ASSERT_TRUE(session);
  EXPECT_EQ("deadlock: host0 waits to send message 0 'm0' of queue 0 (host0 to "
            "host1) after operator 0 'a'",
            session->step().message());
}

TEST(Failure, CycleOfWaitsIsADeadlock) {
  Program program = makeProgram(2);
  addQueue(program, 0, 1, {4});
  addQueue(program, 1, 0, {4});
  auto body = [](int32_t in, int32_t out) {
    return [=](Context context, char *arena) {
      if (recvAndWait(context, in, 0, arena))
        return 1;
      return sendAndWait(context, out, 0, arena);
    };
  };
  auto session = makeSession(program, {body(1, 0), body(0, 1)});
  ASSERT_TRUE(session);
  EXPECT_THAT(session->step().message(),
              AllOf(StartsWith("deadlock: host0 waits to receive"),
                    HasSubstr("host1 waits to receive")));
}

TEST(Failure, UndeliveredMessages) {
  Program program = makeProgram(2);
  addQueue(program, 0, 1, {4});
  std::string message = "message 0 'm0' of queue 0 (host0 to host1)";
  auto sendOnly = [](Context context, char *arena) {
    return baechi_send(context, 0, 0, arena);
  };
  auto receiveOnly = [](Context context, char *arena) {
    return baechi_recv(context, 0, 0, arena);
  };
  EXPECT_EQ(message + " was sent but not received",
            makeSession(program, {sendOnly, doNothing})->step().message());
  EXPECT_EQ(message + " was awaited but not sent",
            makeSession(program, {doNothing, receiveOnly})->step().message());
  EXPECT_EQ(message + " was sent and received but not awaited",
            makeSession(program, {sendOnly, receiveOnly})->step().message());
  EXPECT_EQ(message + " was neither sent nor received",
            makeSession(program, {doNothing, doNothing})->step().message());
}

struct Misuse {
  const char *name;
  int32_t (*body)(Context, char *);
  const char *error;
};

void PrintTo(const Misuse &misuse, std::ostream *os) { *os << misuse.name; }

class MisuseTest : public testing::TestWithParam<Misuse> {};

/// Device 0 breaks a rule of the C interface while device 1 waits for it.
TEST_P(MisuseTest, EndsTheStep) {
  Program program = makeProgram(2);
  addQueue(program, 0, 1, {4});
  addQueue(program, 1, 0, {4});
  auto session =
      makeSession(program, {GetParam().body, [](Context context, char *arena) {
                              return recvAndWait(context, 0, 0, arena);
                            }});
  ASSERT_TRUE(session);
  for (int step = 0; step < 2; ++step)
    EXPECT_EQ(std::string("device host0, ") + GetParam().error,
              session->step().message());
}

const Misuse misuses[] = {
    {"NoSuchQueue",
     [](Context context, char *arena) {
       return baechi_send(context, 2, 0, arena);
     },
     "before its first operator: used a queue that does not exist: message 0 "
     "of queue 2"},
    {"NegativeQueue",
     [](Context context, char *arena) {
       return baechi_recv(context, -1, 0, arena);
     },
     "before its first operator: used a queue that does not exist: message 0 "
     "of queue -1"},
    {"NoSuchMessage",
     [](Context context, char *arena) {
       return baechi_send(context, 0, 1, arena);
     },
     "before its first operator: used a message that does not exist: message 1 "
     "of queue 0 (host0 to host1)"},
    {"SentFromTheWrongEnd",
     [](Context context, char *arena) {
       return baechi_send(context, 1, 0, arena);
     },
     "before its first operator: sent on a queue of another device: message 0 "
     "'m0' of queue 1 (host1 to host0)"},
    {"ReceivedAtTheWrongEnd",
     [](Context context, char *arena) {
       return baechi_recv(context, 0, 0, arena);
     },
     "before its first operator: received on a queue of another device: "
     "message 0 'm0' of queue 0 (host0 to host1)"},
    {"ReceivedTwice",
     [](Context context, char *arena) {
       baechi_recv(context, 1, 0, arena);
       return baechi_recv(context, 1, 0, arena);
     },
     "before its first operator: offered a message twice in one step: message "
     "0 'm0' of queue 1 (host1 to host0)"},
    {"AwaitedTooEarly",
     [](Context context, char *) { return baechi_await_recv(context, 1, 0); },
     "before its first operator: awaited a message before it was offered: "
     "message 0 'm0' of queue 1 (host1 to host0)"},
    {"NullBuffer",
     [](Context context, char *) {
       return baechi_send(context, 0, 0, nullptr);
     },
     "before its first operator: offered a null buffer: message 0 'm0' of "
     "queue 0 (host0 to host1)"},
    {"NoSuchOperator",
     [](Context context, char *) {
       baechi_operator_begin(context, 2);
       return 0;
     },
     "before its first operator: began an operator that does not exist"},
    {"OperatorNotBegun",
     [](Context context, char *) {
       baechi_operator_begin(context, 0);
       baechi_operator_end(context, 1);
       return 0;
     },
     "in operator 0 'a': ended an operator that had not begun"},
    {"NoReason",
     [](Context context, char *) { return baechi_fail(context, nullptr); },
     "before its first operator: no reason given"},
    {"DividedByZero",
     [](Context context, char *) {
       baechi_operator_begin(context, 1);
       baechi_divided_by_zero();
       baechi_operator_end(context, 1);
       return 0;
     },
     "in operator 1 'b': an integer is divided by zero"},
    {"FailureIgnored",
     [](Context context, char *arena) {
       baechi_operator_begin(context, 0);
       baechi_fail(context, "first");
       baechi_fail(context, "second");
       baechi_operator_end(context, 0);
       return baechi_send(context, 7, 7, arena);
     },
     "in operator 0 'a': first"},
};

INSTANTIATE_TEST_SUITE_P(Failure, MisuseTest, testing::ValuesIn(misuses),
                         [](const auto &info) {
                           return std::string(info.param.name);
                         });

/// A kernel that runs until it is let go.
struct Stuck {
  Program program = makeProgram(2);
  std::atomic<bool> letGo{false};
  std::atomic<bool> returned{false};

  Stuck() { addQueue(program, 0, 1, {4}); }
  ~Stuck() {
    release();
    returned.wait(false);
  }
  void release() {
    letGo = true;
    letGo.notify_all();
  }

  std::vector<Body> entries() {
    return {[this](Context context, char *) {
              baechi_operator_begin(context, 1);
              letGo.wait(false);
              returned = true;
              returned.notify_all();
              return 0;
            },
            [](Context context, char *arena) {
              return recvAndWait(context, 0, 0, arena);
            }};
  }
};

TEST(Failure, WatchdogLeavesAStuckDeviceBehind) {
  SessionOptions options;
  options.watchdogSeconds = 0.5;
  options.abortGraceSeconds = 0.5; // enough for the other device to hear
  Stuck stuck;
  addArgument(stuck.program, 1, 64, 4);
  auto session = makeSession(stuck.program, stuck.entries(), options);
  ASSERT_TRUE(session);
  EXPECT_EQ("no device made progress within the watchdog's time: host0 is in "
            "operator 1 'b'; host1 waits to receive message 0 'm0' of queue 0 "
            "(host0 to host1) before its first operator; left behind: host0 is "
            "in operator 1 'b'",
            session->step().message());
  EXPECT_FALSE(session->usable());
  EXPECT_THAT(session->step().message(), HasSubstr("create a new one"));
  int32_t value = 0;
  EXPECT_THAT(session->setArgument(0, &value, 4).message(),
              HasSubstr("cannot be reached"));
  EXPECT_FALSE(session->timeline().devices[0].operators[1].happened());
  // Its end must neither wait for the kernel nor take its memory away.
  session.reset();
}

/// Steps while another process suspends this one for twice the watchdog's time;
/// 0 when the step ended well.
int stepSuspended() {
  SessionOptions options;
  options.watchdogSeconds = 0.5;
  auto session = makeSession(makeProgram(1), {[](Context, char *) {
                               for (int i = 0; i < 15; ++i)
                                 std::this_thread::sleep_for(
                                     std::chrono::milliseconds(20));
                               return 0;
                             }},
                             options);
  pid_t self = getpid();
  if (fork() == 0) {
    usleep(100'000);
    kill(self, SIGSTOP);
    usleep(1'000'000);
    kill(self, SIGCONT);
    _exit(0);
  }
  Error error = session->step();
  if (error)
    std::cerr << error.message() << '\n';
  return bool(error);
}

TEST(FailureDeathTest, ASuspendedProcessIsNotLate) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(_exit(stepSuspended()), testing::ExitedWithCode(0), "");
}

TEST(Failure, AbortLeavesAStuckDeviceBehind) {
  SessionOptions options;
  options.watchdogSeconds = 0;
  options.abortGraceSeconds = 0.1;
  Stuck stuck;
  auto entries = stuck.entries();
  entries[1] = [](Context context, char *) {
    return baechi_fail(context, "out of luck");
  };
  auto session = makeSession(stuck.program, entries, options);
  ASSERT_TRUE(session);
  EXPECT_EQ("device host1, before its first operator: out of luck; left "
            "behind: host0 is in operator 1 'b'",
            session->step().message());
  EXPECT_FALSE(session->usable());
}

TEST(Failure, AStuckDeviceMayComeBack) {
  SessionOptions options;
  options.watchdogSeconds = 0.5;
  options.abortGraceSeconds = 0.1;
  Stuck stuck;
  auto session = makeSession(stuck.program, stuck.entries(), options);
  ASSERT_TRUE(session);
  EXPECT_TRUE(bool(session->step()));
  stuck.release();
  stuck.returned.wait(false);
  EXPECT_FALSE(session->usable());
}

} // namespace
