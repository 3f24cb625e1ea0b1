//===- OverlapTest.cpp - Steps that begin before others have ended --------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Session::steps: devices go on alone, and nothing that one step sends, lends
/// or receives is touched by the next before its time.
///
//===----------------------------------------------------------------------===//

#include "GivenCalls.h"
#include "MixingProgram.h"

#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <random>
#include <thread>

using namespace baechi::runtime;
using namespace baechi::runtime::test;
using testing::HasSubstr;

namespace {

constexpr int64_t bytes = 256;
constexpr int64_t count = 60;

void checkMixing(int32_t devices, Way way, bool awaits, bool pinned,
                 bool byCalls = false) {
  std::vector<Body> given;
  for (int32_t device = 0; device < devices; ++device)
    given.push_back(mixingBody(device, devices, way, awaits));
  SessionOptions options;
  options.pinThreads = pinned;
  auto session = makeSession(makeMixing(devices, way), given, options);
  ASSERT_TRUE(session);
  std::vector<std::vector<uint64_t>> inputs, outputs;
  for (int32_t device = 0; device < devices; ++device) {
    inputs.emplace_back();
    for (int64_t step = 0; step < count; ++step)
      inputs.back().push_back(uint64_t(step * 11 + device));
    outputs.emplace_back(size_t(count), 0);
    std::vector<char> first = stateOf({uint64_t(device) + 1, 7});
    ASSERT_SUCCESS(
        session->setArgument(size_t(2 * device), first.data(), first.size()));
  }
  std::vector<Feed> feeds;
  std::vector<Fetch> fetches;
  for (size_t device = 0; device < size_t(devices); ++device) {
    feeds.push_back({2 * device + 1,
                     reinterpret_cast<const char *>(inputs[device].data())});
    fetches.push_back(
        {device, reinterpret_cast<char *>(outputs[device].data())});
  }
  if (byCalls) {
    std::vector<std::vector<const void *>> arguments;
    std::vector<std::vector<void *>> results;
    for (size_t step = 0; step < size_t(count); ++step) {
      // States stay where they are.
      arguments.emplace_back(2 * size_t(devices), nullptr);
      results.emplace_back();
      for (size_t device = 0; device < size_t(devices); ++device) {
        arguments.back()[2 * device + 1] = &inputs[device][step];
        results.back().push_back(&outputs[device][step]);
      }
    }
    Calls calls(/*first=*/3, arguments, results);
    ASSERT_SUCCESS(session->overlapCalls(3, calls));
    EXPECT_EQ(calls.endedCalls, count);
  } else {
    ASSERT_SUCCESS(session->steps(count, feeds, fetches));
  }
  Mixing expected = mixAlone(devices, inputs);
  for (size_t device = 0; device < size_t(devices); ++device) {
    EXPECT_EQ(outputs[device], expected.results[device]) << device;
    std::vector<char> state(72);
    ASSERT_SUCCESS(session->getArgument(2 * device, state.data(), 72));
    EXPECT_EQ(state, stateOf(expected.states[device])) << device;
    if (byCalls)
      continue; // Nobody counts their bytes.
    EXPECT_EQ(session->timeline().devices[device].bytesSent, 8 * (devices - 1));
    EXPECT_EQ(session->timeline().devices[device].bytesLent,
              way == Way::Lent ? 8 * (devices - 1) : 0);
  }
  // A separate step goes on from there.
  ASSERT_SUCCESS(session->step());
}

TEST(Overlap, ResultsAreThoseOfSeparateSteps) {
  for (Way way : {Way::Copied, Way::Lent, Way::Network})
    for (bool awaits : {true, false})
      for (bool pinned : {true, false})
        for (int32_t devices : {2, 4})
          checkMixing(devices, way, awaits, pinned);
}

TEST(Overlap, CallsThatComeOneByOneDoTheSame) {
  for (Way way : {Way::Copied, Way::Lent, Way::Network})
    for (bool awaits : {true, false})
      for (int32_t devices : {2, 4})
        checkMixing(devices, way, awaits, /*pinned=*/true, /*byCalls=*/true);
}

/// Two rows of four bytes, two columns on either device.
void cutColumns(BufferInfo &buffer, int64_t offset) {
  buffer.shape = {2, 4};
  buffer.dim = 1;
  buffer.pieces = {{"left", 0, offset, 4, 0, 2}, {"right", 1, offset, 4, 2, 2}};
}

TEST(Overlap, WhatIsStoredInPiecesGoesToEachDevice) {
  Program program = makeProgram(2);
  addArgument(program, 0, 0, 8);
  cutColumns(program.arguments[0], 0);
  addResult(program, 0, 64, 8);
  cutColumns(program.results[0], 64);
  auto body = [](char plus) {
    return [=](Context, char *arena) {
      for (int i = 0; i < 4; ++i)
        arena[64 + i] = char(arena[i] + plus);
      return 0;
    };
  };
  auto session = makeSession(program, {body(1), body(2)});
  ASSERT_TRUE(session);
  std::vector<char> given(16), expected(16), got(16);
  for (char i = 0; i < 16; ++i) {
    given[size_t(i)] = char(3 * i);
    expected[size_t(i)] = char(3 * i + (i % 4 < 2 ? 1 : 2));
  }
  std::vector<Feed> feeds = {{0, given.data()}};
  std::vector<Fetch> fetches = {{0, got.data()}};
  ASSERT_SUCCESS(session->steps(2, feeds, fetches));
  EXPECT_EQ(got, expected);
  got.assign(16, 0);
  Calls calls(0, {{&given[0]}, {&given[8]}}, {{&got[0]}, {&got[8]}});
  ASSERT_SUCCESS(session->overlapCalls(0, calls));
  EXPECT_EQ(got, expected);
}

constexpr auto patience = std::chrono::seconds(30);

/// Waits until \p value is at least \p least; false if that takes too long.
bool reaches(const std::atomic<int64_t> &value, int64_t least) {
  auto start = std::chrono::steady_clock::now();
  while (value < least) {
    if (std::chrono::steady_clock::now() - start > patience)
      return false;
    std::this_thread::yield();
  }
  return true;
}

/// One message a step from the first device to the second.
Program makeChain() {
  Program program = makeProgram(2);
  addQueue(program, 0, 1, {bytes});
  return program;
}

TEST(Overlap, ADeviceIsOneStepAheadAndNoFurther) {
  std::atomic<int64_t> first = 0, last = 0;
  std::atomic<bool> ahead = false, tooFar = false;
  auto session =
      makeSession(makeChain(), {[&](Context context, char *arena) {
                                  tooFar = tooFar || first > last + 1;
                                  ++first;
                                  return baechi_send(context, 0, 0, arena);
                                },
                                [&](Context context, char *arena) {
                                  if (baechi_recv(context, 0, 0, arena) ||
                                      baechi_await_recv(context, 0, 0))
                                    return 1;
                                  // The other one is in its next step while
                                  // this one is in this.
                                  if (last < 20)
                                    ahead = reaches(first, last + 2) || ahead;
                                  ++last;
                                  return 0;
                                }});
  ASSERT_TRUE(session);
  ASSERT_SUCCESS(session->steps(21));
  EXPECT_TRUE(ahead);
  EXPECT_FALSE(tooFar);
  EXPECT_EQ(first, 21);
  EXPECT_EQ(last, 21);
}

TEST(Overlap, AFailureEndsAllStepsWithItsPlace) {
  std::atomic<int64_t> third = 0;
  auto session =
      makeSession(makeChain(), {[](Context context, char *arena) {
                                  return baechi_send(context, 0, 0, arena);
                                },
                                [&](Context context, char *arena) {
                                  if (baechi_recv(context, 0, 0, arena) ||
                                      baechi_await_recv(context, 0, 0))
                                    return 1;
                                  baechi_operator_begin(context, 1);
                                  if (++third == 3)
                                    return baechi_fail(context, "out of paper");
                                  baechi_operator_end(context, 1);
                                  return 0;
                                }});
  ASSERT_TRUE(session);
  std::string error = session->steps(1000).message();
  EXPECT_THAT(error, HasSubstr("device host1, in operator 1 'b' of step 3"));
  EXPECT_THAT(error, HasSubstr("out of paper"));
  EXPECT_TRUE(session->usable());
  ASSERT_SUCCESS(session->steps(7));
  EXPECT_EQ(third, 10);
  ASSERT_SUCCESS(session->step());
  // Calls have numbers of their own.
  third = 0;
  std::vector<std::vector<const void *>> arguments(50);
  std::vector<std::vector<void *>> results(50);
  Calls calls(/*first=*/20, arguments, results);
  int64_t failed = 0;
  error = session->overlapCalls(20, calls, &failed).message();
  EXPECT_THAT(error, HasSubstr("device host1, in operator 1 'b' of step 23"));
  EXPECT_EQ(failed, 22);
  EXPECT_EQ(calls.endedCalls, 2);
  Calls others(/*first=*/23, arguments, results);
  ASSERT_SUCCESS(session->overlapCalls(23, others, &failed));
  EXPECT_EQ(failed, -1);
  EXPECT_EQ(others.endedCalls, 50);
}

TEST(Overlap, ADeadlockIsFoundInAnyStep) {
  std::atomic<int64_t> first = 0;
  auto session = makeSession(
      makeChain(), {[&](Context context, char *arena) {
                      return ++first == 4 ? 0
                                          : baechi_send(context, 0, 0, arena);
                    },
                    [](Context context, char *arena) {
                      return int32_t(baechi_recv(context, 0, 0, arena) ||
                                     baechi_await_recv(context, 0, 0));
                    }});
  ASSERT_TRUE(session);
  EXPECT_THAT(session->steps(10).message(),
              HasSubstr("ended a step without offering a message: message 0 "
                        "'m0' of queue 0"));
  // Each awaits what the other would offer after it.
  Program both = makeProgram(2);
  addQueue(both, 0, 1, {bytes});
  addQueue(both, 1, 0, {bytes});
  auto body = [](int32_t mine, int32_t others) {
    auto step = std::make_shared<int64_t>(0);
    return [=](Context context, char *arena) -> int32_t {
      bool late = ++*step == 5;
      if (!late && baechi_send(context, mine, 0, arena))
        return 1;
      if (baechi_recv(context, others, 0, arena + bytes) ||
          baechi_await_recv(context, others, 0))
        return 1;
      return late ? baechi_send(context, mine, 0, arena) : 0;
    };
  };
  session = makeSession(both, {body(0, 1), body(1, 0)});
  ASSERT_TRUE(session);
  EXPECT_THAT(session->steps(10).message(), HasSubstr("deadlock"));
  ASSERT_SUCCESS(session->step());
}

TEST(Overlap, WhatCannotOverlapIsRefused) {
  Program program = makeChain();
  program.devices[1].kind = "null";
  auto session = makeSession(program, {[](Context context, char *arena) {
                               return baechi_send(context, 0, 0, arena);
                             }});
  ASSERT_TRUE(session);
  EXPECT_THAT(session->steps(2).message(),
              HasSubstr("steps with a device of kind 'null' ('host1') do not "
                        "overlap: run them one by one"));
  ASSERT_SUCCESS(session->step());
  EXPECT_EQ(session->whySeparate(), "with a device of kind 'null' ('host1')");
  Calls none(0, {}, {});
  EXPECT_THAT(session->overlapCalls(0, none).message(),
              HasSubstr("calls with a device of kind 'null' ('host1') do not "
                        "overlap: run them one by one"));
  EXPECT_THAT(session->overlapCalls(-1, none).message(),
              HasSubstr("is negative"));
  auto nothing = [](Context, char *) { return 0; };
  session = makeSession(makeProgram(2), {nothing, nothing});
  ASSERT_TRUE(session);
  session->setHostCalls(
      {[](void *, const char *, void *const *, char *, size_t) { return 0; },
       nullptr});
  EXPECT_THAT(session->steps(2).message(),
              HasSubstr("steps with functions of the host program"));
  session->setHostCalls({});
  EXPECT_THAT(session->steps(0).message(), HasSubstr("must be positive"));
  EXPECT_THAT(session->steps(1, std::vector<Feed>{{0, nullptr}}).message(),
              HasSubstr("argument 0 does not exist"));
  EXPECT_THAT(session->steps(1, {}, std::vector<Fetch>{{0, nullptr}}).message(),
              HasSubstr("result 0 does not exist"));
  ASSERT_SUCCESS(session->steps(3));
  EXPECT_EQ(session->whySeparate(), "");
  ASSERT_SUCCESS(session->overlapCalls(0, none));
}

} // namespace
