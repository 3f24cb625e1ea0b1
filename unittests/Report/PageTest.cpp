//===- PageTest.cpp - The data of a placement's page ------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestProblems.h"

#include "Baechi/Report/Page.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

using namespace baechi::placement;
using namespace baechi::report;
using namespace baechi::placement::test;
using nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

namespace {

/// a and b of `diamond()` on d0, c and d on d1.
Placement split() {
  Placement placement;
  placement.device = {0, 0, 1, 1};
  placement.startNs = {0, 10, 30, 1030};
  placement.transfers = {{0, 0, 0, 1, 10, 30}, {1, 0, 0, 1, 1010, 1030}};
  placement.makespanNs = 1040;
  return placement;
}

/// The text of the page's data element.
std::string dataText(const std::string &page) {
  const std::string begin = "<script type=\"application/json\" id=\"data\">";
  size_t from = page.find(begin);
  EXPECT_NE(from, std::string::npos);
  from += begin.size();
  return page.substr(from, page.find("</script>", from) - from);
}

json dataOf(const std::string &page) { return json::parse(dataText(page)); }

TEST(Page, HoldsThePlacement) {
  Problem problem = diamond();
  Placement placement = split();
  ASSERT_THAT(verify(problem, placement), IsEmpty());
  PageSummary summary;
  summary.model = "diamond";
  summary.placer = "metf";
  summary.winner = "search";
  summary.lowerBoundNs = 520;
  json data = dataOf(formatPage(problem, placement, summary));
  EXPECT_EQ(data["format"], "baechi-page");
  EXPECT_EQ(data["version"], 1);
  EXPECT_EQ(data["summary"]["winner"], "search");
  EXPECT_EQ(data["summary"]["makespan_ns"], 1040);
  EXPECT_DOUBLE_EQ(data["summary"]["gap"], 1.0);
  EXPECT_EQ(data["summary"]["single_device_ns"], nullptr);
  EXPECT_EQ(data["measured"], nullptr);
  EXPECT_EQ(data["operators"]["name"], json({"a", "b", "c", "d"}));
  EXPECT_EQ(data["operators"]["device"], json(placement.device));
  EXPECT_EQ(data["operators"]["start_ns"], json(placement.startNs));
  EXPECT_EQ(data["edges"]["to"].size(), problem.graph.edges.size());
  EXPECT_EQ(data["transfers"]["start_ns"], json({10, 1010}));
  EXPECT_EQ(data["transfers"]["bytes"][1],
            problem.graph.ops[1].outputs[0].bytes);
  EXPECT_EQ(data["transfers"]["critical"].size(), 1u);
  // Reasons, the longest operator first.
  ASSERT_EQ(data["reasons"].size(), 4u);
  for (const json &reason : data["reasons"])
    EXPECT_FALSE(reason["why"].get<std::string>().empty());

  std::vector<DeviceUsage> uses = usage(problem, placement);
  for (size_t d = 0; d < uses.size(); ++d) {
    EXPECT_EQ(data["devices"][d]["busy_ns"], uses[d].busyNs);
    auto levels = data["memory"][d][1].get<std::vector<int64_t>>();
    EXPECT_EQ(*std::max_element(levels.begin(), levels.end()),
              uses[d].peakBytes);
  }
}

TEST(Page, HoldsWhatWasMeasured) {
  PageMeasurement measured;
  measured.steps = 3;
  measured.stepNs = 1100.5;
  measured.shownStepNs = 1090;
  measured.operators = {{0, 12}, {12, 1020}, {40, 1041}, {}};
  measured.transfers = {{12, 33}, {1020, 1044}};
  measured.busyNs = {1020, 1001};
  measured.arenaBytes = {64, 128};
  json data = dataOf(formatPage(diamond(), split(), {}, &measured));
  EXPECT_EQ(data["measured"]["steps"], 3);
  EXPECT_EQ(data["measured"]["operators"]["start_ns"], json({0, 12, 40, -1}));
  EXPECT_EQ(data["measured"]["transfers"]["end_ns"], json({33, 1044}));
  EXPECT_EQ(data["measured"]["single_device_ns"], nullptr);
  EXPECT_EQ(data["devices"][1]["arena_bytes"], 128);
  // The first device lets go of b's output when its copy has come.
  json planned = data["memory"][0], happened = data["measured"]["memory"][0];
  EXPECT_EQ(planned[1], happened[1]);
  EXPECT_EQ(planned[0].back(), 1030);
  EXPECT_EQ(happened[0].back(), 1044);
}

TEST(Page, IsAFunctionOfItsInput) {
  EXPECT_EQ(formatPage(diamond(), split(), {}),
            formatPage(diamond(), split(), {}));
}

TEST(Page, NothingInANameIsMarkup) {
  Problem problem = diamond();
  problem.graph.ops[0].name = "</script><img src=x onerror=alert(1)>";
  problem.graph.ops[1].name = "<!--<script>";
  problem.graph.ops[2].name = "w\xc3\xa4rme \xff \"q\" \\ @DATA@";
  PageSummary summary;
  summary.model = "</title><script>alert(1)</script>";
  std::string page = formatPage(problem, split(), summary);
  EXPECT_THAT(page, Not(HasSubstr("<img")));
  EXPECT_THAT(page, Not(HasSubstr("alert(1)</")));
  std::string text = dataText(page);
  EXPECT_THAT(text, Not(HasSubstr("<")));
  json names = json::parse(text)["operators"]["name"];
  EXPECT_EQ(names[0], problem.graph.ops[0].name);
  EXPECT_EQ(names[1], problem.graph.ops[1].name);
  EXPECT_EQ(names[2], "w\xc3\xa4rme \xef\xbf\xbd \"q\" \\ @DATA@");
}

TEST(Page, NeedsNothingFromElsewhere) {
  std::string page = formatPage(diamond(), split(), {});
  for (const char *text : {"http://", "https://", " src=", "@import", "@STYLE@",
                           "@SCRIPT@", "@DATA@"})
    EXPECT_THAT(page, Not(HasSubstr(text)));
}

TEST(Page, ExplainsThePlanOfAStepAsItRuns) {
  // d runs before its operands are there, as no plan would have it.
  Placement run = split();
  run.startNs[3] = 0;
  PageSummary summary;
  summary.lowerBoundNs = 520;
  summary.plannedNs = 1040;
  json data = dataOf(formatPage(diamond(), run, summary));
  EXPECT_EQ(data["operators"]["start_ns"], json(run.startNs));
  EXPECT_EQ(data["reasons"].size(), 4u);
  EXPECT_FALSE(data["operators"]["critical"].empty());
  EXPECT_EQ(data["transfers"]["critical"].size(), 1u);
  EXPECT_DOUBLE_EQ(data["summary"]["gap"], 1.0);
  EXPECT_THAT(data["summary"]["notes"][0].get<std::string>(),
              HasSubstr("placers' plan"));
}

TEST(Page, OfAnEmptyGraphAndOfAnInvalidPlacement) {
  Problem empty;
  empty.machine = makeMachine(2);
  json data = dataOf(formatPage(empty, {}, {}));
  EXPECT_THAT(data["operators"]["name"], IsEmpty());
  Problem full = diamond();
  for (Device &device : full.machine.devices)
    device.memory = 1;
  data = dataOf(formatPage(full, split(), {}));
  EXPECT_THAT(data["reasons"], IsEmpty());
  EXPECT_THAT(data["operators"]["critical"], IsEmpty());
  EXPECT_THAT(data["summary"]["notes"][0].get<std::string>(),
              HasSubstr("no reasons"));
}

} // namespace
