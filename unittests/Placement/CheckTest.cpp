//===- CheckTest.cpp - Every input error ------------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestProblems.h"

#include <gmock/gmock.h>

#include <limits>

using namespace baechi::placement;
using namespace baechi::placement::test;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

namespace {

/// The one message that a change to a sound problem must cause.
template <typename Change> void expectError(const char *text, Change change) {
  Problem problem = diamond();
  change(problem);
  EXPECT_THAT(check(problem), ElementsAre(HasSubstr(text)));
}

TEST(Check, SoundProblem) { EXPECT_THAT(check(diamond()), IsEmpty()); }

TEST(Check, NoDevice) {
  expectError("no device", [](Problem &p) { p.machine = Machine(); });
}
TEST(Check, DeviceWithoutName) {
  expectError("device 1 has no name",
              [](Problem &p) { p.machine.devices[1].name = ""; });
}
TEST(Check, DuplicateDevice) {
  expectError("two devices are called 'd0'",
              [](Problem &p) { p.machine.devices[1].name = "d0"; });
}
TEST(Check, NegativeMemory) {
  expectError("memory of -1 bytes",
              [](Problem &p) { p.machine.devices[0].memory = -1; });
}
TEST(Check, LinkTableSize) {
  expectError("3 entries in its link table",
              [](Problem &p) { p.machine.links.resize(3); });
}
TEST(Check, NegativeLatency) {
  expectError("latency of -5 ns",
              [](Problem &p) { p.machine.links[1]->latencyNs = -5; });
}
TEST(Check, NoBandwidth) {
  expectError("moves 0 bytes per us",
              [](Problem &p) { p.machine.links[1]->bytesPerUs = 0; });
}
TEST(Check, DuplicateKind) {
  expectError("two times for the kind 'gpu'", [](Problem &p) {
    p.graph.ops[1].timeNs = {{"gpu", 1}, {"gpu", 2}};
  });
}
TEST(Check, NegativeTime) {
  expectError("operator 1 'b' has a time of -1 ns",
              [](Problem &p) { p.graph.ops[1].timeNs = {{"", -1}}; });
}
TEST(Check, NegativeOutput) {
  expectError("output 0 of operator 1 'b' has a negative size",
              [](Problem &p) { p.graph.ops[1].outputs[0].copy = -1; });
}
TEST(Check, NegativeScratch) {
  expectError("-1 scratch bytes",
              [](Problem &p) { p.graph.ops[1].scratch = -1; });
}
TEST(Check, NegativeResident) {
  expectError("-1 resident bytes",
              [](Problem &p) { p.graph.ops[1].resident = -1; });
}
TEST(Check, ForwardOperator) {
  expectError("names operator 9 as its forward operator",
              [](Problem &p) { p.graph.ops[1].forward = 9; });
  expectError("names operator 1 as its forward operator",
              [](Problem &p) { p.graph.ops[1].forward = 1; });
}
TEST(Check, UnknownPin) {
  expectError("pinned to 'd7', which the machine does not have: its devices "
              "are d0, d1",
              [](Problem &p) { p.graph.ops[1].pin = "d7"; });
}
TEST(Check, PinWithoutSupport) {
  expectError("no time for its kind 'cpu'", [](Problem &p) {
    p.machine.devices[1].kind = "cpu";
    p.graph.ops[1].timeNs = {{"gpu", 1}};
    p.graph.ops[1].pin = "d1";
  });
}
TEST(Check, NoSupport) {
  expectError("'b' has no time for any device",
              [](Problem &p) { p.graph.ops[1].timeNs = {{"tpu", 1}}; });
}
TEST(Check, EdgeToUnknownOperator) {
  expectError("from operator 0 to operator 4",
              [](Problem &p) { p.graph.edges.push_back({0, 0, 4}); });
  expectError("from operator -1 to operator 2",
              [](Problem &p) { p.graph.edges.push_back({-1, 0, 2}); });
}
TEST(Check, EdgeToItself) {
  expectError("to itself",
              [](Problem &p) { p.graph.edges.push_back({1, 0, 1}); });
}
TEST(Check, UnknownOutput) {
  expectError("uses output 1 of operator 0 'a', which has 1",
              [](Problem &p) { p.graph.edges.push_back({0, 1, 1}); });
  expectError("uses output -2",
              [](Problem &p) { p.graph.edges.push_back({0, -2, 1}); });
}
TEST(Check, Cycle) {
  expectError("cycle: operator 1 'b' -> operator 3 'd' -> operator 1 'b'",
              [](Problem &p) { p.graph.edges.push_back({3, 0, 1}); });
}
TEST(Check, ContradictoryPins) {
  expectError("group 'g' has operator 0 'a' pinned to 'd0' and operator 1 'b' "
              "pinned to 'd1'",
              [](Problem &p) {
                p.graph.ops[0].group = p.graph.ops[1].group = "g";
                p.graph.ops[0].pin = "d0";
                p.graph.ops[1].pin = "d1";
              });
}
TEST(Check, GroupWithoutDevice) {
  expectError("no device supports all of group 'g'", [](Problem &p) {
    p.machine.devices[1].kind = "cpu";
    p.graph.ops[0].group = p.graph.ops[1].group = "g";
    p.graph.ops[0].timeNs = {{"gpu", 1}};
    p.graph.ops[1].timeNs = {{"cpu", 1}};
  });
}
TEST(Check, MissingLink) {
  expectError("operator 0 'a' and its consumer operator 1 'b' must be on "
              "devices without a link",
              [](Problem &p) {
                p.machine.links.assign(4, std::nullopt);
                p.graph.ops[0].pin = "d0";
                p.graph.ops[1].pin = "d1";
              });
}
TEST(Check, SumsOverflow) {
  static constexpr int64_t huge = std::numeric_limits<int64_t>::max() / 2;
  expectError("the sizes of the graph add up",
              [](Problem &p) { p.graph.ops[0].resident = huge; });
  expectError("the times of operators and transfers add up",
              [](Problem &p) { p.graph.ops[0].timeNs = {{"", huge}}; });
  expectError("the times of operators and transfers add up",
              [](Problem &p) { p.machine.links[1]->latencyNs = huge; });
}
TEST(Check, SumsAreCountedExactlyAtTheLimit) {
  constexpr int64_t limit = std::numeric_limits<int64_t>::max() / 4;
  Problem problem = diamond();
  problem.graph.edges.clear();
  problem.graph.ops.resize(1);
  Operator &op = problem.graph.ops[0];
  op.timeNs = {{"", 0}};
  op.outputs = {Output{1, 0, 0}};
  int64_t devices = std::ssize(problem.machine.devices);
  for (std::optional<Link> &link : problem.machine.links)
    if (link)
      *link = {limit / devices - 1, 1000}; // 1 ns more for the byte
  EXPECT_THAT(check(problem), IsEmpty());
  for (std::optional<Link> &link : problem.machine.links)
    if (link)
      ++link->latencyNs;
  EXPECT_THAT(check(problem),
              ElementsAre(HasSubstr("times of operators and transfers")));
}
TEST(Check, SaysEverything) {
  Problem problem = diamond();
  problem.graph.ops[1].scratch = -1;
  problem.graph.ops[2].scratch = -1;
  problem.machine.devices[0].memory = -1;
  EXPECT_EQ(check(problem).size(), 3u);
}

} // namespace
