//===- ExpertTest.cpp - Placement by an expert's rules ----------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestProblems.h"

#include "Baechi/Placement/Io/Files.h"

#include <gmock/gmock.h>

using namespace baechi::placement;
using namespace baechi::placement::test;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

namespace {

std::string errorOf(const std::string &text) {
  std::vector<ExpertRule> rules;
  return parseExpert(text, "x.expert", makeMachine(2), rules);
}

TEST(ExpertFile, Rules) {
  std::vector<ExpertRule> rules;
  ASSERT_EQ(parseExpert("# layers\n\n  a/(b|c)=x =  d1  \r\n.* = d0",
                        "x.expert", makeMachine(2), rules),
            "");
  ASSERT_EQ(rules.size(), 2u);
  EXPECT_EQ(rules[0].pattern, "a/(b|c)=x");
  EXPECT_EQ(rules[0].device, "d1");
  EXPECT_EQ(rules[1].pattern, ".*");
  EXPECT_EQ(rules[1].device, "d0");
}

TEST(ExpertFile, ErrorsNameTheLineAndTheMend) {
  EXPECT_THAT(errorOf("a = d0\nb gpu0\n"),
              StartsWith("x.expert:2: there is no '=': a line is PATTERN = "
                         "DEVICE"));
  EXPECT_THAT(errorOf("\n# c\na = d7"),
              StartsWith("x.expert:3: unknown device 'd7': the devices are d0, "
                         "d1"));
  EXPECT_THAT(errorOf("a ="), StartsWith("x.expert:1: unknown device ''"));
  EXPECT_THAT(errorOf(" = d0"), StartsWith("x.expert:1: the pattern is empty"));
  EXPECT_THAT(errorOf("a(b = d0"),
              StartsWith("x.expert:1: 'a(b' is not a regular expression: "));
  EXPECT_THAT(errorOf("a{1000}{1000}{1000} = d0"),
              StartsWith("x.expert:1: counted repetitions '{...}' are not"));
  EXPECT_THAT(errorOf("(a*)*\\1 = d0"),
              StartsWith("x.expert:1: back-references such as '\\1' are not"));
  EXPECT_THAT(errorOf(std::string(1001, '(') + " = d0"),
              StartsWith("x.expert:1: the pattern has 1001 characters"));
  EXPECT_THAT(errorOf(std::string("a\0b = d0", 8)), HasSubstr("NUL"));
  EXPECT_THAT(errorOf("# nothing\n"), StartsWith("x.expert: there is no rule"));
  EXPECT_THAT(errorOf(""), StartsWith("x.expert: there is no rule"));
  EXPECT_EQ(errorOf("a\\{2 = d0\n[{]\\. = d1"), "");
}

TEST(ExpertFile, MissingFileIsNamed) {
  std::vector<ExpertRule> rules;
  EXPECT_THAT(readExpert("/no/such.expert", makeMachine(1), rules),
              StartsWith("/no/such.expert: cannot read: No such file"));
}

PlaceOptions byRules(const std::vector<ExpertRule> &rules) {
  PlaceOptions options;
  options.placer = "expert";
  options.budget = Budget::none();
  options.expert = rules;
  return options;
}

std::vector<int32_t> placedBy(const Problem &problem,
                              const std::vector<ExpertRule> &rules) {
  PlaceResult result = place(problem, byRules(rules));
  EXPECT_TRUE(result.placement) << result.error;
  if (!result.placement)
    return {};
  EXPECT_THAT(verify(problem, *result.placement), IsEmpty());
  return result.placement->device;
}

TEST(Expert, FirstMatchWins) {
  // a -> b, c -> d
  EXPECT_THAT(placedBy(diamond(), {{"b", "d1"}, {"[bcd]", "d0"}, {".", "d1"}}),
              ElementsAre(1, 1, 0, 0));
}

TEST(Expert, GroupsFollowTheirFirstMatch) {
  Problem problem = diamond();
  problem.graph.ops[1].group = problem.graph.ops[3].group = "g";
  EXPECT_THAT(placedBy(problem, {{"d", "d1"}, {"[ac]", "d0"}}),
              ElementsAre(0, 1, 0, 1));
  EXPECT_THAT(placedBy(problem, {{"d", "d1"}, {"b", "d0"}, {"[ac]", "d1"}}),
              ElementsAre(1, 0, 1, 0));
}

TEST(Expert, TheUnmatchedFollowTheirFirstOperand) {
  Problem problem = diamond();
  // d reads c before b.
  problem.graph.edges = {{0, 0, 1}, {0, 0, 2}, {2, 0, 3}, {1, 0, 3}};
  EXPECT_THAT(placedBy(problem, {{"c", "d1"}, {"b", "d0"}}),
              ElementsAre(0, 0, 1, 1))
      << "a has no operand: it follows its first user";
  EXPECT_THAT(placedBy(problem, {{"c", "d1"}}), ElementsAre(1, 1, 1, 1));
  EXPECT_THAT(placedBy(problem, {{"nothing", "d1"}}), ElementsAre(0, 0, 0, 0));
}

TEST(Expert, PinsAndKindsHold) {
  Problem problem = diamond();
  problem.machine.devices[1].kind = "cpu";
  problem.graph.ops[1].pin = "d0";
  problem.graph.ops[2].timeNs = {{"gpu", 5}};
  EXPECT_THAT(placedBy(problem, {{".", "d1"}}), ElementsAre(1, 0, 0, 1));
  PlaceResult result = place(problem, byRules({{".", "d1"}}));
  ASSERT_EQ(result.notes.size(), 1u);
  EXPECT_THAT(result.notes[0], StartsWith("expert: 2 operators cannot run on "
                                          "the device that their rule names"));
}

TEST(Expert, WithoutRulesItIsAnError) {
  EXPECT_THAT(place(diamond(), byRules({})).error,
              StartsWith("expert: there are no rules"));
  EXPECT_THAT(place(diamond(), byRules({{"a", "d9"}})).error,
              StartsWith("expert: a rule names the unknown device 'd9'"));
  EXPECT_THAT(place(diamond(), byRules({{"[a", "d0"}})).error,
              StartsWith("expert: '[a' is not a regular expression"));
}

TEST(Expert, HandPlacementsOfTheModels) {
  // Hand placements by layers take 166.0, 176.1 and 238.2 ms.
  struct Case {
    const char *graph, *rules;
    int64_t ns;
  };
  for (const Case &c :
       {Case{"gnmt40", "gnmt", 166000000}, Case{"gnmt50", "gnmt", 176100000},
        Case{"inception_v3", "inception_v3", 238200000}}) {
    const std::string folder = BAECHI_SOURCE_DIR "/data/graphs/";
    Problem problem;
    ASSERT_EQ(readGraph(folder + c.graph + ".json.xz", problem.graph), "");
    ASSERT_EQ(readMachine(folder + "machine_4x8GiB.json", problem.machine), "");
    PlaceOptions options = byRules({});
    ASSERT_EQ(readExpert(folder + c.rules + ".expert", problem.machine,
                         options.expert),
              "");
    PlaceResult result = place(problem, options);
    ASSERT_TRUE(result.placement) << result.error;
    EXPECT_NEAR(static_cast<double>(result.placement->makespanNs),
                static_cast<double>(c.ns), 0.005 * static_cast<double>(c.ns));
  }
}

} // namespace
