//===- StepRowsTest.cpp - Rows that other processes' steps fill -----------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Costs/Measure/StepRows.h"
#include "Helpers.h"
#include "gmock/gmock.h"

using namespace baechi;
using namespace baechi::test;

namespace {
ProfileRow row(const std::string &hash, const std::string &implementation,
               int64_t medianNs, int64_t stepNs = -1) {
  ProfileRow row;
  row.kernel = "kernel_" + hash;
  row.hash = hash;
  row.implementation = implementation;
  row.kind = "host";
  row.medianNs = medianNs;
  row.stepNs = stepNs;
  return row;
}

TEST(StepRows, AreThoseOfTheCodeThatRuns) {
  Recorder recorder;
  DriverOptions options = optionsOf("mlp_tiny.mlir", "host:2");
  options.splits = "none";
  auto compilation = compileModel(options, recorder);
  ASSERT_TRUE(compilation);
  Profile asked = stepRows(compilation->module(), "host", Profile());
  EXPECT_EQ(asked.rows.size(), compilation->compiler().kernels());
  for (const ProfileRow &row : asked.rows) {
    EXPECT_EQ(row.implementation, "generated");
    EXPECT_TRUE(compilation->module().lookupSymbol(row.kernel)) << row.kernel;
    EXPECT_TRUE(row.disturbed) << row.kernel;
  }

  Profile known;
  known.rows = {asked.rows.front()};
  known.rows.front().kernel = "as_another_model_calls_it";
  known.rows.front().medianNs = 77;
  known.rows.front().disturbed = false;
  Profile again = stepRows(compilation->module(), "host", known);
  ASSERT_EQ(again.rows.size(), asked.rows.size());
  EXPECT_EQ(again.rows.front().kernel, asked.rows.front().kernel);
  EXPECT_EQ(again.rows.front().medianNs, 77);
  EXPECT_FALSE(again.rows.front().disturbed);
}

TEST(StepRows, DecideWhichCodeIsPlanned) {
  Profile profile;
  profile.rows = {row("a", "generated", 200), row("a", "onednn", 100),
                  row("b", "generated", 50)};
  Profile steps;
  steps.rows = {row("a", "generated", 200, 210), row("c", "generated", 9, 9)};
  takeStepRows(profile, steps);
  ASSERT_EQ(profile.rows.size(), 3u);
  EXPECT_EQ(profile.find("a", "host", "onednn"), nullptr);
  EXPECT_EQ(profile.find("a", "host", "generated")->stepNs, 210);
  EXPECT_EQ(profile.find("b", "host", "generated")->stepNs, -1);
  EXPECT_EQ(profile.find("c", "host", "generated")->stepNs, 9);
}

TEST(StepRows, UndisturbedTimesStay) {
  Profile profile;
  profile.rows = {row("a", "generated", 200, 220), row("b", "generated", 300),
                  row("c", "generated", 400, 440)};
  profile.rows[1].disturbed = true;
  profile.rows[2].stepDisturbed = true;
  Profile steps;
  for (const char *hash : {"a", "b", "c"})
    steps.rows.push_back(row(hash, "generated", 1, 2));
  takeStepRows(profile, steps);
  EXPECT_EQ(profile.rows[0].medianNs, 200);
  EXPECT_EQ(profile.rows[0].stepNs, 220);
  EXPECT_EQ(profile.rows[1].medianNs, 1);
  EXPECT_EQ(profile.rows[1].stepNs, 2);
  EXPECT_FALSE(profile.rows[1].disturbed);
  EXPECT_EQ(profile.rows[2].medianNs, 400);
  EXPECT_EQ(profile.rows[2].stepNs, 2);
  EXPECT_FALSE(profile.rows[2].stepDisturbed);
}
} // namespace
