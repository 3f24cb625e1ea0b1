//===- LendTest.cpp - Arguments that are read where callers have them -----===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Runtime/StepLibrary.h"
#include "GivenCalls.h"
#include "RankThreads.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <atomic>

using namespace baechi::runtime;
using namespace baechi::runtime::test;
using testing::HasSubstr;

namespace {

constexpr int64_t bytes = 1024;
constexpr int64_t resultOffset = 2048;

/// A value of the caller's, aligned as arenas are, and room behind it.
struct alignas(64) Value {
  std::array<char, bytes + 64> room;
  explicit Value(char with) { room.fill(with); }
  char *data() { return room.data(); }
};

/// The first device's argument is lendable; its result is a copy of it.
Program makeReader(size_t devices = 1) {
  Program program = makeProgram(devices);
  addArgument(program, 0, 0, bytes);
  program.arguments[0].lendable = true;
  addResult(program, int32_t(devices) - 1, resultOffset, bytes);
  return program;
}

struct Lend : testing::Test {
  const void *seen = nullptr; ///< where the step read the argument
  const void *arenaSeen = nullptr;

  std::unique_ptr<Session> reader(Program program = makeReader()) {
    return makeSession(std::move(program),
                       {[this](Context context, char *arena) {
                         arenaSeen = arena;
                         seen = baechi_argument(context, 0, arena);
                         std::memcpy(arena + resultOffset, seen, bytes);
                         return 0;
                       }});
  }

  /// A call with that value, which must end well; what the result is.
  char call(Session &session, const void *value, bool isLent = true) {
    std::array<char, bytes> result{};
    const uint8_t lent = isLent;
    void *const results[] = {result.data()};
    EXPECT_SUCCESS(session.call(&value, results, &lent));
    EXPECT_EQ(bytes, std::count(result.begin(), result.end(), result[0]));
    return result[0];
  }
};

/// What a call says that lends this value and takes no result.
std::string errorOfLending(Session &session, const void *value) {
  const uint8_t lent = 1;
  void *const nothing[] = {nullptr};
  return session.call(&value, nothing, &lent).message();
}

constexpr const char *noValue =
    "argument 0 'argument' has no value: a call read it where its caller had "
    "it; set it, or give it with the call";

TEST_F(Lend, IsReadWhereTheCallerHasIt) {
  auto session = reader();
  ASSERT_TRUE(session);
  Value one(1), two(2);
  EXPECT_EQ(1, call(*session, one.data()));
  EXPECT_EQ(one.data(), seen);
  EXPECT_EQ(2, call(*session, two.data()));
  EXPECT_EQ(two.data(), seen);
  // Between calls it is the caller's.
  one.room.fill(3);
  EXPECT_EQ(3, call(*session, one.data()));
}

TEST_F(Lend, IsCopiedWhereItIsNotLentOrNotAligned) {
  auto session = reader();
  ASSERT_TRUE(session);
  Value one(1);
  EXPECT_EQ(1, call(*session, one.data(), /*isLent=*/false));
  EXPECT_EQ(arenaSeen, seen);
  one.room.fill(2);
  EXPECT_EQ(2, call(*session, one.data() + 4));
  EXPECT_EQ(arenaSeen, seen);
  // So the place has its value.
  std::array<char, bytes> value{};
  ASSERT_SUCCESS(session->getArgument(0, value.data(), bytes));
  EXPECT_EQ(2, value[0]);
  void *const nothing[] = {nullptr};
  const void *const stays[] = {nullptr};
  const uint8_t lent = 1;
  ASSERT_SUCCESS(session->call(stays, nothing, &lent));
  EXPECT_EQ(arenaSeen, seen);
}

TEST_F(Lend, IsCopiedWhereTheProgramDoesNotAsk) {
  Program program = makeReader();
  program.arguments[0].lendable = false;
  auto session = reader(program);
  ASSERT_TRUE(session);
  Value one(1);
  EXPECT_EQ(1, call(*session, one.data()));
  EXPECT_EQ(arenaSeen, seen);
  ASSERT_SUCCESS(session->step());
}

TEST_F(Lend, HasNoValueAfterwards) {
  auto session = reader();
  ASSERT_TRUE(session);
  Value one(1), two(2);
  EXPECT_EQ(1, call(*session, one.data()));
  seen = nullptr;
  std::array<char, bytes> value{}, result{};
  EXPECT_EQ(noValue, session->getArgument(0, value.data(), bytes).message());
  EXPECT_EQ(noValue, session->step().message());
  EXPECT_EQ(noValue, session->steps(2).message());
  const void *const stays[] = {nullptr};
  void *const results[] = {result.data()};
  EXPECT_EQ(noValue, session->call(stays, results).message());
  Calls calls(0, {{nullptr}}, {{nullptr}});
  EXPECT_THAT(session->overlapCalls(0, calls).message(),
              HasSubstr("an argument has no value: a call before read it where "
                        "its caller had it; give it with this call"));
  EXPECT_EQ(nullptr, seen) << "a step was run without its argument";

  ASSERT_SUCCESS(session->setArgument(0, two.data(), bytes));
  ASSERT_SUCCESS(session->step());
  EXPECT_EQ(arenaSeen, seen);
  ASSERT_SUCCESS(session->getArgument(0, value.data(), bytes));
  EXPECT_EQ(2, value[0]);
}

TEST_F(Lend, WhatIsGivenNextHasAValue) {
  auto session = reader();
  ASSERT_TRUE(session);
  Value one(1), two(2);
  std::array<char, bytes> value{};
  auto holds = [&](char wanted) {
    EXPECT_SUCCESS(session->getArgument(0, value.data(), bytes));
    EXPECT_EQ(bytes, std::count(value.begin(), value.end(), wanted));
  };
  call(*session, one.data());
  call(*session, two.data(), /*isLent=*/false);
  holds(2);
  call(*session, one.data());
  Calls calls(0, {{two.data()}, {nullptr}}, {{nullptr}, {nullptr}});
  ASSERT_SUCCESS(session->overlapCalls(0, calls));
  holds(2);
  call(*session, two.data());
  const Feed feed{0, one.data()};
  ASSERT_SUCCESS(session->steps(1, {&feed, 1}));
  holds(1);
}

TEST_F(Lend, IsTakenBackWhereAStepFails) {
  bool fails = true;
  auto session =
      makeSession(makeReader(), {[&](Context context, char *arena) -> int32_t {
                    arenaSeen = arena;
                    seen = baechi_argument(context, 0, arena);
                    return fails ? baechi_fail(context, "no luck") : 0;
                  }});
  ASSERT_TRUE(session);
  Value one(1);
  EXPECT_THAT(errorOfLending(*session, one.data()), HasSubstr("no luck"));
  EXPECT_EQ(one.data(), seen);
  EXPECT_EQ(noValue, session->step().message());
  fails = false;
  ASSERT_SUCCESS(session->setArgument(0, one.data(), bytes));
  ASSERT_SUCCESS(session->step());
  EXPECT_EQ(arenaSeen, seen);
}

TEST_F(Lend, ADeviceThatWasLeftBehindReadsOn) {
  std::atomic<bool> letGo{false}, ended{false};
  std::atomic<const void *> last{nullptr};
  SessionOptions options;
  options.watchdogSeconds = 0.3;
  options.abortGraceSeconds = 0.1;
  auto session = makeSession(makeReader(), {[&](Context context, char *arena) {
                               letGo.wait(false);
                               last = baechi_argument(context, 0, arena);
                               // The next test may take this body's place.
                               std::atomic<bool> &said = ended;
                               said = true;
                               said.notify_all();
                               return 0;
                             }},
                             options);
  ASSERT_TRUE(session);
  Value one(1);
  EXPECT_THAT(errorOfLending(*session, one.data()), HasSubstr("left behind"));
  EXPECT_FALSE(session->usable());
  letGo = true;
  letGo.notify_all();
  ended.wait(false);
  EXPECT_EQ(one.data(), last.load());
}

/// Copied, and lent on: the receiver reads the caller's memory.
TEST_F(Lend, IsSentFromWhereItLies) {
  for (bool isLentOn : {false, true}) {
    Program program = makeReader(2);
    addQueue(program, 0, 1, {bytes});
    program.queues[0].messages[0].lent = isLentOn;
    std::atomic<const void *> borrowed{nullptr};
    auto session = makeSession(
        program, {[&](Context context, char *arena) {
                    return sendAndWait(context, 0, 0,
                                       baechi_argument(context, 0, arena));
                  },
                  [&](Context context, char *arena) -> int32_t {
                    char *result = arena + resultOffset;
                    if (!isLentOn)
                      return recvAndWait(context, 0, 0, result);
                    const void *source = nullptr;
                    if (baechi_borrow(context, 0, 0, &source))
                      return 1;
                    borrowed = source;
                    std::memcpy(result, source, bytes);
                    return baechi_give_back(context, 0, 0);
                  }});
    ASSERT_TRUE(session);
    Value one(1), two(2);
    EXPECT_EQ(1, call(*session, one.data()));
    EXPECT_EQ(2, call(*session, two.data()));
    EXPECT_EQ(isLentOn ? two.data() : nullptr, borrowed.load());
  }
}

TEST_F(Lend, AnUnknownArgumentLiesWhereItIsSaidToLie) {
  auto session =
      makeSession(makeReader(), {[&](Context context, char *arena) {
                    EXPECT_EQ(arena, baechi_argument(context, 1, arena));
                    EXPECT_EQ(arena, baechi_argument(context, -1, arena));
                    return 0;
                  }});
  ASSERT_TRUE(session);
  ASSERT_SUCCESS(session->step());
}

TEST_F(Lend, OnlyWhatAHostDeviceOnlyReads) {
  Program program = makeReader();
  EXPECT_SUCCESS(program.check());
  constexpr const char *said = "argument 0 'argument': it is lendable, but is "
                               "in pieces, has copies or is updated";
  Program updated = program;
  updated.arguments[0].updatedBy = 0;
  EXPECT_EQ(said, updated.check().message());
  Program copied = makeReader(2);
  copied.arguments[0].copies = {{1, 0}};
  EXPECT_EQ(said, copied.check().message());
  Program cut = program;
  PieceInfo piece;
  piece.bytes = piece.size = bytes;
  cut.arguments[0].pieces = {piece};
  EXPECT_EQ(said, cut.check().message());
  Program onDisk = program;
  onDisk.devices[0].kind = "disk";
  EXPECT_EQ("argument 0 'argument': it is lendable, but device host0 is of "
            "kind 'disk', not 'host'",
            onDisk.check().message());
}

TEST_F(Lend, ThroughTheStepLibrary) {
  constexpr const char *manifest = R"({
    "format": "baechi-program", "version": 1,
    "devices": [{"name": "host0", "kind": "host", "entry": "entry0",
                 "arena_bytes": 4096, "memory": 4096, "operators": []}],
    "queues": [], "results": [],
    "arguments": [{"device": 0, "offset": 0, "bytes": 1024, "type": "i8",
                   "shape": [1024], "lendable": true}]})";
  bodies[0] = [this](Context context, char *arena) {
    seen = baechi_argument(context, 0, arena);
    return 0;
  };
  baechi_symbol symbol{"entry0", reinterpret_cast<void (*)()>(callBody<0>)};
  char error[200];
  baechi_step *step =
      baechi_step_open(manifest, &symbol, 1, nullptr, error, sizeof(error));
  ASSERT_TRUE(step) << error;
  Value one(1);
  const void *const arguments[] = {one.data()};
  const unsigned char lent[] = {1};
  EXPECT_EQ(0, baechi_step_call_lending(step, arguments, lent, nullptr));
  EXPECT_EQ(one.data(), seen);
  EXPECT_EQ(1, baechi_step_usable(step));
  EXPECT_EQ(1, baechi_step_run(step));
  EXPECT_THAT(baechi_step_error(step), HasSubstr("has no value"));
  EXPECT_EQ(0, baechi_step_call(step, arguments, nullptr));
  EXPECT_NE(one.data(), seen);
  baechi_step_close(step);
  EXPECT_EQ(0, baechi_step_usable(nullptr));
}

struct LendRanks : testing::Test, RankThreads {};

TEST_F(LendRanks, IsCopiedToAnotherProcess) {
  build(2);
  program = makeProgram(2);
  Value one(1);
  std::atomic<const void *> places[2] = {nullptr, nullptr};
  std::atomic<char> values[2] = {0, 0};
  for (int32_t i = 0; i < 2; ++i) {
    addArgument(program, i, 0, bytes);
    program.arguments.back().lendable = true;
    bodies[i] = [&, i](Context context, char *arena) {
      places[i] = baechi_argument(context, i, arena);
      values[i] = *static_cast<const char *>(places[i].load());
      return 0;
    };
  }
  run([&](Session &session) {
    const void *const arguments[] = {one.data(), one.data()};
    const uint8_t lent[] = {1, 1};
    ASSERT_SUCCESS(session.call(arguments, nullptr, lent));
  });
  EXPECT_EQ(one.data(), places[0].load());
  EXPECT_NE(one.data(), places[1].load());
  EXPECT_EQ(1, values[0]);
  EXPECT_EQ(1, values[1]);
}

} // namespace
