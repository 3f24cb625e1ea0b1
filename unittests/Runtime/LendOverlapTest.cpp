//===- LendOverlapTest.cpp - Arguments that overlapped calls lend ---------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Where calls overlap a device may be a call ahead of one that still reads
/// what the last call lent.
///
//===----------------------------------------------------------------------===//

#include "Baechi/Runtime/StepLibrary.h"
#include "GivenCalls.h"
#include "RankThreads.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <deque>
#include <thread>

using namespace baechi::runtime;
using namespace baechi::runtime::test;
using testing::HasSubstr;

namespace {

constexpr int64_t bytes = 4096;
constexpr int64_t resultOffset = 8192;
constexpr char gone = -1;

/// How a call gives its argument.
enum class Given : uint8_t { Lent, Copied, NotAligned, Stays };

/// Whose values are gone once their call has ended.
class LendingCalls final : public CallSource {
public:
  explicit LendingCalls(const std::vector<Given> &ways) {
    for (Given way : ways) {
      One &call = calls.emplace_back();
      call.room.fill(char(calls.size()));
      call.argument = call.room.data() + (way == Given::NotAligned ? 4 : 0);
      if (way == Given::Stays)
        call.argument = nullptr;
      call.lent = way != Given::Copied;
      call.results = {call.got[0].data(), call.got[1].data()};
    }
  }

  Next next(int64_t number, Places &places) override {
    if (size_t(number) >= calls.size())
      return Next::End;
    One &call = calls[size_t(number)];
    places = {&call.argument, call.results.data(), &call.lent};
    return Next::Call;
  }
  void ended(int64_t number) override { calls[size_t(number)].room.fill(gone); }

  struct One {
    alignas(64) std::array<char, bytes + 64> room{};
    const void *argument = nullptr;
    uint8_t lent = 0;
    std::array<std::array<char, bytes>, 2> got{};
    std::array<void *, 2> results{};
  };
  std::deque<One> calls;
};

/// The first device's argument goes to the second; the result of both is what
/// they read, late.
Program makePassing(bool isLentOn, bool isSimulated) {
  Program program = makeProgram(2, 4 * bytes);
  addArgument(program, 0, 0, bytes);
  program.arguments[0].lendable = true;
  addResult(program, 0, resultOffset, bytes);
  addResult(program, 1, resultOffset, bytes);
  addQueue(program, 0, 1, {bytes});
  program.queues[0].messages[0].lent = isLentOn;
  if (isSimulated)
    program.queues[0].link = SimulatedLink{100'000, 100'000, {0}};
  return program;
}

void wait(int64_t microseconds) {
  std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
}

/// \p late: us that each device takes before it reads.
std::vector<Body> passing(bool isLentOn, std::array<int64_t, 2> late,
                          std::vector<const void *> *seen = nullptr) {
  return {[=](Context context, char *arena) -> int32_t {
            const void *place = baechi_argument(context, 0, arena);
            if (seen)
              seen->push_back(place == arena ? nullptr : place);
            if (baechi_send(context, 0, 0, place))
              return 1;
            wait(late[0]);
            std::memcpy(arena + resultOffset, place, bytes);
            return 0;
          },
          [=](Context context, char *arena) -> int32_t {
            char *result = arena + resultOffset;
            if (!isLentOn) {
              wait(late[1]);
              return recvAndWait(context, 0, 0, result);
            }
            const void *source = nullptr;
            if (baechi_borrow(context, 0, 0, &source))
              return 1;
            wait(late[1]);
            std::memcpy(result, source, bytes);
            return baechi_give_back(context, 0, 0);
          }};
}

constexpr std::array<std::pair<bool, bool>, 3> ways = {
    {{false, false}, {true, false}, {false, true}}};

TEST(LendOverlap, ReadsWhatEachCallLendsAndNothingAfterItsEnd) {
  for (auto [isLentOn, isSimulated] : ways)
    for (std::array<int64_t, 2> late :
         {std::array<int64_t, 2>{0, 0}, std::array<int64_t, 2>{200, 0},
          std::array<int64_t, 2>{0, 200}}) {
      std::vector<Given> given;
      for (int i = 0; i < 40; ++i)
        given.push_back(i % 5 == 1   ? Given::Copied
                        : i % 5 == 2 ? Given::Stays
                        : i % 5 == 3 ? Given::NotAligned
                                     : Given::Lent);
      std::vector<const void *> seen;
      auto session = makeSession(makePassing(isLentOn, isSimulated),
                                 passing(isLentOn, late, &seen));
      ASSERT_TRUE(session);
      LendingCalls calls(given);
      ASSERT_SUCCESS(session->overlapCalls(0, calls));
      ASSERT_EQ(given.size(), seen.size());
      for (size_t i = 0; i < given.size(); ++i) {
        LendingCalls::One &call = calls.calls[i];
        EXPECT_EQ(given[i] == Given::Lent ? call.argument : nullptr, seen[i]);
        char wanted = char(given[i] == Given::Stays ? i : i + 1);
        for (const auto &got : call.got)
          EXPECT_EQ(bytes, std::count(got.begin(), got.end(), wanted)) << i;
      }
    }
}

TEST(LendOverlap, WhatWasLentHasNoValueInLaterCalls) {
  auto session = makeSession(makePassing(false, false), passing(false, {0, 0}));
  ASSERT_TRUE(session);
  LendingCalls calls({Given::Lent, Given::Stays});
  EXPECT_THAT(session->overlapCalls(0, calls).message(),
              HasSubstr("an argument has no value: a call before read it where "
                        "its caller had it; give it with this call"));
  EXPECT_THAT(session->step().message(), HasSubstr("has no value"));
  LendingCalls others({Given::Lent});
  ASSERT_SUCCESS(session->overlapCalls(0, others));
  EXPECT_THAT(session->step().message(), HasSubstr("has no value"));
  // Separate steps read their own places again.
  std::array<char, bytes> two{}, got{};
  two.fill(2);
  ASSERT_SUCCESS(session->setArgument(0, two.data(), bytes));
  ASSERT_SUCCESS(session->step());
  ASSERT_SUCCESS(session->getResult(1, got.data(), bytes));
  EXPECT_EQ(two, got);
}

TEST(LendOverlap, IsTakenBackWhereACallFails) {
  std::vector<Body> given = passing(false, {0, 0});
  std::atomic<const void *> seen{nullptr};
  std::atomic<bool> fails{true};
  Body first = given[0];
  given[0] = [&, first](Context context, char *arena) -> int32_t {
    seen = baechi_argument(context, 0, arena);
    return fails ? baechi_fail(context, "no luck") : first(context, arena);
  };
  auto session = makeSession(makePassing(false, false), given);
  ASSERT_TRUE(session);
  LendingCalls calls({Given::Lent});
  int64_t failed = -1;
  EXPECT_THAT(session->overlapCalls(0, calls, &failed).message(),
              HasSubstr("no luck"));
  EXPECT_EQ(0, failed);
  EXPECT_EQ(calls.calls[0].argument, seen.load());
  fails = false;
  LendingCalls next({Given::Copied});
  ASSERT_SUCCESS(session->overlapCalls(0, next));
  EXPECT_EQ(1, next.calls[0].got[1][7]);
  ASSERT_SUCCESS(session->step());
}

TEST(LendOverlap, ADeviceThatWasLeftBehindReadsOn) {
  std::atomic<bool> letGo{false}, ended{false};
  std::atomic<const void *> last{nullptr};
  SessionOptions options;
  options.watchdogSeconds = 0.3;
  options.abortGraceSeconds = 0.1;
  std::vector<Body> given = passing(false, {0, 0});
  given[0] = [&](Context context, char *arena) -> int32_t {
    letGo.wait(false);
    last = baechi_argument(context, 0, arena);
    // The next test may take this body's place.
    std::atomic<bool> &said = ended;
    said = true;
    said.notify_all();
    return 1;
  };
  auto session = makeSession(makePassing(false, false), given, options);
  ASSERT_TRUE(session);
  LendingCalls calls({Given::Lent});
  EXPECT_THAT(session->overlapCalls(0, calls).message(),
              HasSubstr("left behind"));
  EXPECT_FALSE(session->usable());
  letGo = true;
  letGo.notify_all();
  ended.wait(false);
  EXPECT_EQ(calls.calls[0].argument, last.load());
}

TEST(LendOverlap, ThroughTheStepLibrary) {
  constexpr const char *manifest = R"({
    "format": "baechi-program", "version": 1,
    "devices": [{"name": "host0", "kind": "host", "entry": "entry0",
                 "arena_bytes": 16384, "memory": 16384, "operators": []}],
    "queues": [],
    "results": [{"device": 0, "offset": 8192, "bytes": 4096, "type": "i8",
                 "shape": [4096]}],
    "arguments": [{"device": 0, "offset": 0, "bytes": 4096, "type": "i8",
                   "shape": [4096], "lendable": true}]})";
  std::vector<const void *> seen;
  bodies[0] = [&](Context context, char *arena) {
    seen.push_back(baechi_argument(context, 0, arena));
    std::memcpy(arena + resultOffset, seen.back(), bytes);
    return 0;
  };
  baechi_symbol symbol{"entry0", reinterpret_cast<void (*)()>(callBody<0>)};
  char error[200];
  baechi_step *step =
      baechi_step_open(manifest, &symbol, 1, nullptr, error, sizeof(error));
  ASSERT_TRUE(step) << error;
  LendingCalls given({Given::Lent, Given::Copied, Given::Lent});
  const baechi_step_calls calls = {
      &given,
      [](void *user, int64_t call, auto arguments, auto results) {
        CallSource::Places places;
        auto next = static_cast<LendingCalls *>(user)->next(call, places);
        *arguments = places.arguments;
        *results = places.results;
        return int(next);
      },
      [](void *user, int64_t call) {
        static_cast<LendingCalls *>(user)->ended(call);
      }};
  auto lent = [](void *user, int64_t call) -> const unsigned char * {
    return &static_cast<LendingCalls *>(user)->calls[size_t(call)].lent;
  };
  int64_t failed = 0;
  EXPECT_EQ(0, baechi_step_overlap_lending(step, 0, &calls, lent, &failed));
  ASSERT_EQ(3u, seen.size());
  for (size_t i : {0, 2})
    EXPECT_EQ(given.calls[i].argument, seen[i]);
  EXPECT_NE(given.calls[1].argument, seen[1]);
  for (size_t i = 0; i < 3; ++i)
    EXPECT_EQ(char(i + 1), given.calls[i].got[0][9]);
  // Who does not say so lends nothing.
  LendingCalls others({Given::Lent});
  const baechi_step_calls again = {&others, calls.next, calls.ended};
  EXPECT_EQ(0, baechi_step_overlap(step, 0, &again, &failed));
  EXPECT_NE(others.calls[0].argument, seen.back());
  EXPECT_EQ(1, others.calls[0].got[0][9]);
  baechi_step_close(step);
}

struct LendOverlapRanks : testing::Test, RankThreads {};

TEST_F(LendOverlapRanks, IsCopiedToAnotherProcessAndReadByThisOne) {
  for (int32_t owner : {0, 1}) {
    build(2);
    program = makePassing(false, false);
    std::vector<Given> given(12, Given::Lent);
    if (owner == 1) {
      program.arguments[0].device = 1;
      std::swap(program.queues[0].from, program.queues[0].to);
    }
    std::vector<const void *> seen;
    std::vector<Body> passes = passing(false, {0, 100}, &seen);
    bodies[owner] = passes[0];
    bodies[1 - owner] = passes[1];
    LendingCalls calls(given);
    run([&](Session &session) {
      ASSERT_SUCCESS(session.overlapCalls(0, calls));
    });
    ASSERT_EQ(given.size(), seen.size());
    for (size_t i = 0; i < given.size(); ++i) {
      EXPECT_EQ(owner == 0 ? calls.calls[i].argument : nullptr, seen[i]);
      for (const auto &got : calls.calls[i].got)
        EXPECT_EQ(bytes, std::count(got.begin(), got.end(), char(i + 1))) << i;
    }
  }
}

} // namespace
