//===- StepLibraryTest.cpp - Headers, sources of step libraries -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Target/StepLibrary.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace baechi;
using testing::HasSubstr;
using testing::Not;

namespace {
/// A program whose names try to leave their comments and strings.
runtime::Program hostile() {
  runtime::Program program;
  program.function = "step */ #error";
  program.devices.resize(1);
  program.devices[0].name = "a\n*/";
  program.devices[0].entry = "entry";
  program.arguments.resize(3);
  program.arguments[0].name = "w*/ int x; /*";
  program.arguments[0].shape = {2, 3};
  program.arguments[0].bytes = 24;
  program.arguments[1].name = "w/x";
  program.arguments[2].name = "w.x";
  program.results.resize(1);
  program.results[0].name = "\xff\\";
  return program;
}
} // namespace

TEST(StepLibrary, Identifiers) {
  EXPECT_EQ(cIdentifier("params/0/w", true), "PARAMS_0_W");
  EXPECT_EQ(cIdentifier("my-Model", false), "my_Model");
  EXPECT_EQ(cIdentifier("2x", false), "_2x");
  EXPECT_EQ(cIdentifier("", false), "_");
}

TEST(StepLibrary, NamesStayInTheirComments) {
  std::string header = stepLibraryHeader("step", hostile());
  EXPECT_THAT(header, HasSubstr("STEP_ARGUMENT_W___INT_X____ = 0, /* w_/ int "
                                "x; /_: f32[2, 3], 24 bytes */\n"));
  // Equal identifiers get their positions.
  EXPECT_THAT(header, HasSubstr("STEP_ARGUMENT_W_X = 1,"));
  EXPECT_THAT(header, HasSubstr("STEP_ARGUMENT_W_X_2 = 2,"));
  EXPECT_THAT(header, HasSubstr("STEP_RESULT___ = 0, /* __: f32[]"));
  EXPECT_THAT(header, HasSubstr("/* step.h - step _/ #error on a__/,"));
}

TEST(StepLibrary, TheManifestIsAnyText) {
  std::string source = stepLibrarySource("step",
                                         "\"\\ ?\?/ \n\x01"
                                         "9",
                                         hostile(), false);
  EXPECT_THAT(source, HasSubstr("\"\\042\\134 \\077\\077/ \\012\\0019\"\n"));
  EXPECT_THAT(source, HasSubstr("{\"entry\", entry},"));
  EXPECT_THAT(source, Not(HasSubstr("openblas")));
  EXPECT_THAT(stepLibrarySource("step", "", hostile(), true),
              HasSubstr("openblas_set_num_threads(1)"));
}
