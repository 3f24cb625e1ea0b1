//===- CudaNvtxTest.cpp - Ranges for profilers ---===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudaPrograms.h"

#include <gmock/gmock.h>

using namespace baechi::runtime;
using namespace baechi::runtime::test;
using testing::HasSubstr;

namespace {

const char *const ringRanges = "entry0\n"
                               " double_numbers0\n"
                               " add_numbers0\n"
                               " double_numbers1\n"
                               " add_numbers1\n";

class CudaNvtxTest : public testing::Test {
  Environment library{"BAECHI_NVTX_LIBRARY", fakecuda::path()};
};

TEST_F(CudaNvtxTest, RangesHaveTheNamesOfTheStepAndItsOperators) {
  Environment on("BAECHI_NVTX", "1");
  for (bool timeline : {true, false}) {
    SessionOptions options;
    options.timeline = timeline;
    Ring ring({"cuda", "host"}, /*forgets=*/false, /*rounds=*/2);
    auto session = makeSession(ring.program, ring.bodies(), options);
    ASSERT_TRUE(session);
    EXPECT_STREQ("", fakeNvtxRanges());
    for (int step = 0; step < 3; ++step) {
      ring.stepsRight(*session, step);
      EXPECT_STREQ(ringRanges, fakeNvtxRanges());
    }
  }
  // Kernels are launched inside their ranges.
  if (usesFakeCuda())
    EXPECT_EQ(0, fakeCudaGraphLaunches());
}

TEST_F(CudaNvtxTest, NoneUnlessAskedFor) {
  Ring ring({"cuda", "host"});
  auto session = makeSession(ring.program, ring.bodies());
  ASSERT_TRUE(session);
  ring.stepsRight(*session, 1);
  EXPECT_STREQ("", fakeNvtxRanges());
}

TEST_F(CudaNvtxTest, AFailureEndsItsRanges) {
  Environment on("BAECHI_NVTX", "1");
  Ring ring({"cuda", "host"}, /*forgets=*/false, /*rounds=*/2);
  std::vector<Body> bodies = ring.bodies();
  bool fails = false;
  bodies[0] = [&, right = bodies[0]](Context context, char *arena) {
    if (!fails)
      return right(context, arena);
    baechi_operator_begin(context, 1);
    return baechi_fail(context, "on purpose");
  };
  auto session = makeSession(ring.program, bodies);
  ASSERT_TRUE(session);
  fails = true;
  EXPECT_THAT(session->step().message(), HasSubstr("on purpose"));
  EXPECT_STREQ("entry0\n add_numbers0\n", fakeNvtxRanges());
  fails = false;
  ring.stepsRight(*session, 1);
  EXPECT_STREQ(ringRanges, fakeNvtxRanges());
}

TEST(CudaNvtx, ALibraryThatIsMissing) {
  Environment on("BAECHI_NVTX", "1");
  Environment library("BAECHI_NVTX_LIBRARY", "/no/such/nvtx.so");
  EXPECT_EQ("device cuda0: BAECHI_NVTX asks for ranges, but /no/such/nvtx.so "
            "has no NVTX functions; name one in BAECHI_NVTX_LIBRARY, or unset "
            "BAECHI_NVTX",
            creationError(Ring({"cuda", "host"})));
}

} // namespace
