//===- DrawTest.cpp - Timelines and graphs of placements --------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestProblems.h"

#include "Baechi/Placement/Study/Judge.h"
#include "Baechi/Report/Draw.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <map>

using namespace baechi::placement;
using namespace baechi::report;
using namespace baechi::placement::test;
using nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;

namespace {

/// a and b of `diamond()` on d0, c and d on d1.
Placement split(const Problem &problem) {
  Placement placement;
  placement.device = {0, 0, 1, 1};
  placement.startNs = {0, 10, 30, 1030};
  placement.transfers = {{0, 0, 0, 1, 10, 30}, {1, 0, 0, 1, 1010, 1030}};
  placement.makespanNs = 1040;
  EXPECT_THAT(verify(problem, placement), IsEmpty());
  return placement;
}

std::vector<json> events(const std::string &text, const std::string &phase) {
  std::vector<json> found;
  json trace = json::parse(text);
  for (const json &event : trace.at("traceEvents"))
    if (event.at("ph") == phase)
      found.push_back(event);
  return found;
}

TEST(Memory, OverTimePeaksWhereUsageSays) {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    Problem problem = randomProblem(seed);
    PlaceOptions options;
    options.budget = Budget::none();
    PlaceResult result = place(problem, options);
    if (!result.placement)
      continue;
    auto levels = memoryOverTime(problem, *result.placement);
    ASSERT_EQ(levels.size(), problem.machine.devices.size());
    for (size_t d = 0; d < levels.size(); ++d) {
      ASSERT_FALSE(levels[d].empty());
      EXPECT_EQ(levels[d].front().atNs, 0);
      MemoryLevel peak = levels[d].front();
      for (size_t k = 1; k < levels[d].size(); ++k) {
        EXPECT_LT(levels[d][k - 1].atNs, levels[d][k].atNs);
        if (levels[d][k].bytes > peak.bytes)
          peak = levels[d][k];
      }
      EXPECT_EQ(peak.bytes, result.usage[d].peakBytes) << "seed " << seed;
      EXPECT_EQ(levels[d].back().bytes >= result.usage[d].residentBytes, true);
    }
  }
}

TEST(Memory, OverTimeOfAWrongShapeIsEmpty) {
  EXPECT_THAT(memoryOverTime(diamond(), Placement{}), IsEmpty());
}

TEST(Timeline, EverySpanOnce) {
  for (uint32_t seed = 0; seed < 40; ++seed) {
    Problem problem = randomProblem(seed);
    PlaceOptions options;
    options.budget = Budget::none();
    PlaceResult result = place(problem, options);
    if (!result.placement)
      continue;
    auto spans = events(formatTimeline(problem, *result.placement), "X");
    EXPECT_EQ(spans.size(), problem.graph.ops.size() +
                                2 * result.placement->transfers.size());
    // Nothing overlaps in a row.
    std::map<std::pair<int, int>, std::vector<std::pair<int64_t, int64_t>>>
        rows;
    for (const json &span : spans) {
      auto start = std::llround(span.at("ts").get<double>() * 1e3);
      auto length = std::llround(span.at("dur").get<double>() * 1e3);
      if (length > 0)
        rows[{span.at("pid"), span.at("tid")}].emplace_back(start,
                                                            start + length);
    }
    for (auto &[row, list] : rows) {
      std::sort(list.begin(), list.end());
      for (size_t k = 1; k < list.size(); ++k)
        EXPECT_LE(list[k - 1].second, list[k].first) << "seed " << seed;
    }
  }
}

TEST(Timeline, DevicesTransfersArrowsAndMemory) {
  Problem problem = diamond();
  Placement placement = split(problem);
  std::string text = formatTimeline(problem, placement);
  std::map<int, std::string> names;
  std::vector<std::string> rows;
  for (const json &event : events(text, "M")) {
    if (event.at("name") == "process_name")
      names[event.at("pid")] = event.at("args").at("name");
    if (event.at("name") == "thread_name")
      rows.push_back(event.at("args").at("name"));
  }
  EXPECT_EQ(names, (std::map<int, std::string>{{1, "d0"}, {2, "d1"}}));
  EXPECT_THAT(rows, testing::ElementsAre("compute", "out", "compute", "in"));
  ASSERT_EQ(events(text, "s").size(), 2u);
  ASSERT_EQ(events(text, "f").size(), 2u);
  const Transfer &moved = placement.transfers.front();
  json from = events(text, "s").front(), to = events(text, "f").front();
  EXPECT_EQ(from.at("pid"), moved.from + 1);
  EXPECT_EQ(to.at("pid"), moved.to + 1);
  EXPECT_EQ(from.at("id"), to.at("id"));
  int64_t peak = 0;
  for (const json &event : events(text, "C"))
    peak = std::max(peak, event.at("args").at("bytes").get<int64_t>());
  int64_t expected = 0;
  for (const DeviceUsage &device : usage(problem, placement))
    expected = std::max(expected, device.peakBytes);
  EXPECT_EQ(peak, expected);
  // a, its transfer at both ends, c and d; b ends before c does, but its
  // transfer takes as long as that is.
  std::vector<std::string> critical;
  for (const json &span : events(text, "X"))
    if (span.at("cat") == "critical")
      critical.push_back(span.at("name"));
  EXPECT_THAT(critical,
              testing::AnyOf(
                  testing::UnorderedElementsAre("a", "a:0", "a:0", "c", "d"),
                  testing::UnorderedElementsAre("a", "b", "b:0", "b:0", "d")));
}

TEST(Timeline, EmptyGraphAndOddNames) {
  Problem problem;
  problem.machine = makeMachine(2);
  PlaceResult result = place(problem, {});
  ASSERT_TRUE(result.placement) << result.error;
  EXPECT_THAT(events(formatTimeline(problem, *result.placement), "X"),
              IsEmpty());
  problem.graph.ops = {makeOp("quote\" back\\ line\n \xff", 5)};
  result = place(problem, {});
  ASSERT_TRUE(result.placement) << result.error;
  EXPECT_EQ(events(formatTimeline(problem, *result.placement), "X").size(), 1u);
}

TEST(Dot, DevicesTransfersAndCriticalPath) {
  Problem problem = diamond();
  Placement placement = split(problem);
  std::string note = "old";
  std::string text = formatDot(problem, placement, {}, &note);
  EXPECT_EQ(note, "");
  EXPECT_THAT(text, HasSubstr("subgraph cluster_0"));
  EXPECT_THAT(text, HasSubstr("subgraph cluster_1"));
  EXPECT_THAT(text, HasSubstr("label=\"10 B\\n"));
  EXPECT_THAT(text, HasSubstr("color=red"));
  for (const char *box : {"n0 [", "n1 [", "n2 [", "n3 ["})
    EXPECT_THAT(text, HasSubstr(box));
  EXPECT_THAT(text, HasSubstr("n0 -> n1"));
}

TEST(Dot, ControlEdgesAreDotted) {
  Problem problem = diamond();
  problem.graph.edges[0].output = -1;
  Placement placement = place(problem, {}).placement.value();
  std::string text = formatDot(problem, placement);
  EXPECT_THAT(text, HasSubstr("n0 -> n1 [style=dotted"));
}

TEST(Dot, NamesAreEscaped) {
  Problem problem = diamond();
  problem.graph.ops[0].name = "a\"\\&\n";
  problem.machine.devices[0].name = "d\"0";
  std::string text = formatDot(problem, split(problem));
  EXPECT_THAT(text, HasSubstr("label=\"a\\\"\\\\&amp;\\n\\n"));
  EXPECT_THAT(text, HasSubstr("label=\"d\\\"0: "));
}

TEST(Dot, LargeGraphsAreDrawnByGroups) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    Problem problem = randomProblem(seed);
    auto n = static_cast<int32_t>(problem.graph.ops.size());
    DotOptions options;
    options.maxNodes = n - 1;
    PlaceOptions pure;
    pure.budget = Budget::none();
    PlaceResult result = place(problem, pure);
    if (!result.placement || n < 2)
      continue;
    std::string note;
    std::string text = formatDot(problem, *result.placement, options, &note);
    EXPECT_THAT(note, HasSubstr(std::to_string(n) + " operators are drawn as"));
    // However few boxes are allowed, a device has at most one more.
    options.maxNodes = 3;
    if (n > options.maxNodes) {
      text = formatDot(problem, *result.placement, options, &note);
      size_t boxes = 0;
      for (size_t at = 0; (at = text.find("\n    n", at)) != text.npos; ++at)
        ++boxes;
      EXPECT_LE(boxes, 3u + problem.machine.devices.size()) << text;
    }
  }
}

TEST(Judge, AcceptsWhatPlaceFound) {
  Problem problem = diamond();
  PlaceResult found = place(problem, {});
  ASSERT_TRUE(found.placement);
  PlaceResult judged = judge(problem, *found.placement);
  ASSERT_TRUE(judged.placement) << judged.error;
  EXPECT_EQ(judged.placement->makespanNs, found.placement->makespanNs);
  // That of `place` may be proven by search.
  EXPECT_GT(judged.lowerBoundNs, 0);
  EXPECT_LE(judged.lowerBoundNs, found.lowerBoundNs);
  EXPECT_EQ(judged.maxLoadNs, found.maxLoadNs);
  EXPECT_EQ(judged.singleDeviceNs, found.singleDeviceNs);
  EXPECT_EQ(judged.usage.size(), found.usage.size());
}

TEST(Judge, ListsViolations) {
  Problem problem = diamond();
  PlaceResult found = place(problem, {});
  ASSERT_TRUE(found.placement);
  Placement broken = *found.placement;
  broken.makespanNs += 1;
  broken.transfers.clear();
  PlaceResult judged = judge(problem, broken);
  EXPECT_FALSE(judged.placement);
  EXPECT_THAT(judged.error, HasSubstr("makespan: "));
  EXPECT_THAT(judged.error, HasSubstr("never moved: "));
}

TEST(Judge, ABoundEvenWhereNoDeviceIsLargeEnoughAlone) {
  Problem problem = diamond();
  for (Operator &op : problem.graph.ops)
    op.resident = 100;
  for (Device &device : problem.machine.devices)
    device.memory = 300;
  PlaceResult found = place(problem, {});
  ASSERT_TRUE(found.placement) << found.error;
  PlaceResult judged = judge(problem, *found.placement);
  ASSERT_TRUE(judged.placement) << judged.error;
  EXPECT_FALSE(judged.singleDeviceNs);
  EXPECT_LE(judged.lowerBoundNs, found.lowerBoundNs);
  EXPECT_GT(judged.lowerBoundNs, 0);
}

} // namespace
