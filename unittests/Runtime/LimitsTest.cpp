//===- LimitsTest.cpp - What a session refuses to start -------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Sanitized.h"
#include "TestPrograms.h"

#include "Baechi/Runtime/Machine.h"

#include <gmock/gmock.h>

#include <sys/resource.h>

#include <atomic>

using namespace baechi::runtime;
using namespace baechi::runtime::test;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

namespace {

TEST(Limits, ArenaAboveTheManifestsMemory) {
  Program program = makeProgram(2, 4096);
  program.devices[1].memory = 4095;
  EXPECT_EQ("device host1: the program needs 4096 bytes, the limit is 4095",
            creationError(program));
}

TEST(Limits, ArenaAboveTheGivenLimit) {
  SessionOptions options;
  options.memoryLimits = {{"host0", 1000}, {"host1", 5000}};
  EXPECT_EQ("device host0: the program needs 4096 bytes, the limit is 1000",
            creationError(makeProgram(2, 4096), options));
}

TEST(Limits, AGivenLimitReplacesTheManifests) {
  Program program = makeProgram(1, 4096);
  program.devices[0].memory = 1;
  SessionOptions options;
  options.memoryLimits = {{"host0", 4096}};
  auto session = makeSession(program, {doNothing}, options);
  ASSERT_TRUE(session);
  EXPECT_SUCCESS(session->step());
}

TEST(Limits, LimitForAnUnknownDevice) {
  SessionOptions options;
  options.memoryLimits = {{"host7", 4096}};
  EXPECT_EQ("a memory limit is given for device host7, which the program does "
            "not have",
            creationError(makeProgram(1), options));
}

TEST(Limits, MoreThanTheMachineHas) {
  // Each would fit alone; together they would not.
  int64_t bytes = queryHost().memoryBytes / 3 * 2;
  EXPECT_THAT(creationError(makeProgram(2, bytes)),
              AllOf(StartsWith("the arenas of the host devices need " +
                               std::to_string(2 * bytes) + " bytes together"),
                    HasSubstr("bytes of memory are free")));
}

TEST(Limits, AnotherProcessor) {
  Program program = makeProgram(1, 4096);
  std::vector<std::string> here = queryHost().extensions;
  if (here.empty())
    GTEST_SKIP() << "the system does not name the processor's extensions";
  program.processor = {here.front(), here.back()};
  ASSERT_TRUE(makeSession(program, {doNothing}));
  program.processor.push_back("avx9000");
  program.processor.push_back("sve9");
  EXPECT_EQ("the program's code was compiled for a processor with avx9000 "
            "sve9, which this one lacks: compile it here again",
            creationError(program));
  // Without host code it does not matter.
  program.devices[0].kind = "null";
  EXPECT_TRUE(makeSession(program, {doNothing}));
}

TEST(Limits, FewerProcessors) {
  int32_t here = queryHost().cores;
  Program program = makeProgram(size_t(here) + 1);
  for (DeviceInfo &device : program.devices)
    device.entry = "entry0";
  // More devices than processors were planned for here, too.
  program.cores = here;
  ASSERT_TRUE(makeSession(program, {}));
  program.cores = here + 3;
  EXPECT_EQ("the program was planned for " + std::to_string(here + 3) +
                " processors and has " + std::to_string(here + 1) +
                " host devices, but this process may keep " +
                std::to_string(here) + " processors busy: plan it here again",
            creationError(program));
  // One less keeps all devices on processors of their own.
  program.devices[0].kind = "null";
  EXPECT_TRUE(makeSession(program, {}));
}

TEST(Limits, SumsThatOverflow) {
  EXPECT_THAT(creationError(makeProgram(3, INT64_MAX / 2)),
              HasSubstr("the arenas of the host devices need"));
}

TEST(Limits, AllocationThatFails) {
  if (BAECHI_SANITIZED)
    GTEST_SKIP() << "sanitizers need more address space than the test leaves";
  // In a child, since an address space does not grow again.
  auto createInLittleSpace = [] {
    rlimit space = {rlim_t(256) << 20, rlim_t(256) << 20};
    if (setrlimit(RLIMIT_AS, &space) != 0)
      exit(2);
    Program program = makeProgram(2, 4096);
    program.devices[1].arenaBytes = program.devices[1].memory = 512 << 20;
    auto session = Session::create(program, resolveBody);
    if (session)
      exit(3);
    fprintf(stderr, "%s\n", session.error().message().c_str());
    exit(0);
  };
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(createInLittleSpace(), testing::ExitedWithCode(0),
              "device host1: cannot allocate an arena of 536870912 bytes");
}

TEST(Limits, MissingEntry) {
  Program program = makeProgram(2);
  program.devices[1].entry = "baechi_step_nowhere";
  EXPECT_EQ("device host1: the program has no symbol 'baechi_step_nowhere'",
            creationError(program));
}

TEST(Limits, UnknownKind) {
  Program program = makeProgram(1);
  program.devices[0].kind = "abacus";
  EXPECT_EQ("device host0: no driver for kind 'abacus' in this build, which "
            "has: host, cuda, pool, disk, null",
            creationError(program));
}

TEST(Limits, BrokenProgram) {
  Program program = makeProgram(1);
  addQueue(program, 0, 3, {4});
  EXPECT_EQ("queue 0: there is no device 3", creationError(program));
}

TEST(Limits, NothingRunsBeforeTheFirstStep) {
  std::atomic<int> runs{0};
  auto session = makeSession(makeProgram(1), {[&](Context, char *) {
                               ++runs;
                               return 0;
                             }});
  ASSERT_TRUE(session);
  session.reset();
  EXPECT_EQ(0, runs);
}

} // namespace
