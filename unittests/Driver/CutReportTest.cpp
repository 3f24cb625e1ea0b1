//===- CutReportTest.cpp - What is said of a cut --------------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Driver/Report/CutReport.h"
#include "gtest/gtest.h"

using namespace baechi;

static CutReport reportInstead(bool ofWhole) {
  CutReport report;
  report.request.microBatches = 4;
  report.instead = {3'000'000, 2'000'000, ofWhole};
  return report;
}

TEST(CutReport, NamesTheWholeStepThatFitsToo) {
  CutReport report = reportInstead(/*ofWhole=*/true);
  EXPECT_EQ(report.lines().front(),
            "the step as it is does not fit; whole, it fits and takes 3.000 "
            "ms; cut, it is predicted to take 2.000 ms:");
  llvm::json::Object object = report.toJson();
  EXPECT_EQ(object.getInteger("whole_ns"), 3'000'000);
  EXPECT_EQ(object.get("other_pieces_ns"), nullptr);
}

TEST(CutReport, CallsNoPiecesWhole) {
  CutReport report = reportInstead(/*ofWhole=*/false);
  EXPECT_EQ(report.lines().front(),
            "the step as it is does not fit; in other pieces, it fits and "
            "takes 3.000 ms; cut, it is predicted to take 2.000 ms:");
  llvm::json::Object object = report.toJson();
  EXPECT_EQ(object.getInteger("other_pieces_ns"), 3'000'000);
  EXPECT_EQ(object.get("whole_ns"), nullptr);
  EXPECT_EQ(object.getInteger("pieces_ns"), 2'000'000);
}
