//===- OptionsTest.cpp - Options that make no sense are refused -----------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Driver/Input/Options.h"
#include "Helpers.h"
#include "gmock/gmock.h"
#include <limits>

using namespace baechi;
using namespace baechi::test;
using testing::HasSubstr;

namespace {
template <typename Options>
std::string wrong(void (*change)(Options &options)) {
  Options options;
  change(options);
  return messageOf(checkOptions(options));
}

TEST(DriverOptions, DefaultsPass) {
  EXPECT_EQ(messageOf(checkOptions(DriverOptions())), "");
  EXPECT_EQ(messageOf(checkOptions(StepOptions())), "");
  EXPECT_EQ(messageOf(checkOptions(OutputOptions())), "");
}

TEST(CompileOptions, EveryOneIsSetByItsName) {
  CompileOptions options;
  for (const CompileOption &option : compileOptions()) {
    // Each is of one kind.
    EXPECT_EQ(!!option.text + !!option.list + !!option.number, 1)
        << option.name.str();
    std::string word = option.name.str() + "=7=b";
    std::string error = messageOf(setOption(options, word));
    if (option.text)
      EXPECT_EQ(options.*option.text, "7=b");
    else if (option.list)
      EXPECT_THAT(options.*option.list, testing::ElementsAre("7=b"));
    EXPECT_EQ(error, option.number ? "--" + option.name.str() +
                                         " needs a positive number, not '7=b'"
                                   : "");
  }
  EXPECT_EQ(messageOf(setOption(options, "replicas=99999999999")),
            "--replicas needs a smaller number, not '99999999999'");
  EXPECT_EQ(messageOf(setOption(options, "pin=c=host1")), "");
  EXPECT_THAT(options.pins, testing::ElementsAre("7=b", "c=host1"));
  EXPECT_EQ(messageOf(setOption(options, "compile-threads=3")), "");
  EXPECT_EQ(options.threads, 3u);
  EXPECT_THAT(messageOf(setOption(options, "place=msct")),
              HasSubstr("unknown option 'place'; known: machine, placer, "));
}

TEST(CompileOptions, ComparingSpendsNoLongBudget) {
  EXPECT_EQ(budgetOfComparing("30"), "auto");
  EXPECT_EQ(budgetOfComparing("2.5s"), "auto");
  // What is shorter than that, or no time.
  for (const char *budget : {"0.5s", "0", "auto", "5000e", "soon"})
    EXPECT_EQ(budgetOfComparing(budget), budget);
}

TEST(DriverOptions, WhatIsWrongIsNamed) {
  EXPECT_THAT(wrong<DriverOptions>([](auto &o) { o.placer = "mctt"; }),
              HasSubstr("unknown placer 'mctt'"));
  EXPECT_THAT(wrong<DriverOptions>([](auto &o) { o.costs = "guessed"; }),
              HasSubstr("unknown costs 'guessed'"));
  EXPECT_THAT(wrong<DriverOptions>([](auto &o) { o.cudaMath = "fp8"; }),
              HasSubstr("--cuda-math: "));
  EXPECT_THAT(wrong<DriverOptions>([](auto &o) { o.budget = "soon"; }),
              HasSubstr("--budget: unknown budget 'soon'"));
  EXPECT_THAT(wrong<DriverOptions>([](auto &o) { o.threads = 0; }),
              HasSubstr("--compile-threads needs"));
  EXPECT_THAT(wrong<DriverOptions>([](auto &o) {
                o.costs = "roofline";
                o.profile = "profile.json";
              }),
              HasSubstr("--profile would not be used"));
  EXPECT_THAT(wrong<DriverOptions>([](auto &o) {
                o.watchdog = std::numeric_limits<double>::infinity();
              }),
              HasSubstr("--watchdog needs a finite number"));
  EXPECT_THAT(wrong<DriverOptions>([](auto &o) { o.placement = "/no/file"; }),
              HasSubstr("/no/file: cannot be read: "));
  EXPECT_THAT(wrong<DriverOptions>([](auto &o) { o.profile = "/dev/null"; }),
              HasSubstr("/dev/null: cannot be used as a profile: it is no "));
  EXPECT_THAT(wrong<StepOptions>([](auto &o) { o.steps = 0; }),
              HasSubstr("--steps needs a positive number, not 0"));
  EXPECT_THAT(wrong<StepOptions>([](auto &o) {
                o.calibrates = true;
                o.check = false;
              }),
              HasSubstr("leave --check-single on"));
  EXPECT_THAT(wrong<OutputOptions>([](auto &o) { o.html = "/no/page.html"; }),
              HasSubstr("/no/page.html: cannot be written: "));
}
} // namespace
