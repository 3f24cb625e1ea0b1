//===- EnvironmentTest.cpp - What programs are started with ---------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Io/Environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

using baechi::placement::environment;
using testing::Contains;
using testing::Not;

TEST(Environment, IsAsItIsNow) {
  ASSERT_EQ(::setenv("BAECHI_OF_A_TEST", "some words", /*overwrite=*/1), 0);
  EXPECT_THAT(environment(), Contains("BAECHI_OF_A_TEST=some words"));
  ASSERT_EQ(::unsetenv("BAECHI_OF_A_TEST"), 0);
  EXPECT_THAT(environment(), Not(Contains("BAECHI_OF_A_TEST=some words")));
}
