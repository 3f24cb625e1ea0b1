//===- AlternativesTest.cpp - Other ways to do operators --------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Model/Alternatives.h"
#include "Baechi/Placement/Io/AlternativesFile.h"

#include <gtest/gtest.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

using namespace baechi::placement;

namespace {

struct Case {
  Graph graph;
  Alternatives alternatives;
};

Case parsed(const std::string &ops, const std::string &edges) {
  Case made;
  std::string text = R"({"format":"baechi-graph","version":1,"ops":[)" + ops +
                     R"(],"edges":[)" + edges + "]}";
  EXPECT_EQ(parseAlternatives(text, "g", made.graph, made.alternatives), "");
  return made;
}

std::string parseError(const std::string &ops) {
  Case made;
  std::string text = R"({"format":"baechi-graph","version":1,"ops":[)" + ops +
                     R"(],"edges":[]})";
  return parseAlternatives(text, "g", made.graph, made.alternatives);
}

/// "a#0(10,6)" for each operator with its outputs' bytes.
std::vector<std::string> operators(const Expansion &expansion) {
  std::vector<std::string> found;
  for (const Operator &op : expansion.graph.ops) {
    std::vector<int64_t> bytes;
    for (const Output &output : op.outputs)
      bytes.push_back(output.bytes);
    found.push_back(fmt::format("{}({})", op.name, fmt::join(bytes, ",")));
  }
  return found;
}

std::vector<std::string> edges(const Expansion &expansion) {
  std::vector<std::string> found;
  for (const Edge &edge : expansion.graph.edges)
    found.push_back(fmt::format("{}.{} {}", expansion.graph.ops[edge.from].name,
                                edge.output,
                                expansion.graph.ops[edge.to].name));
  std::sort(found.begin(), found.end());
  return found;
}

using Texts = std::vector<std::string>;

/// Two operators in two pieces each; how the first's tensor of 4 x 4 is made
/// and read is the test's.
Case twoOperators(const std::string &made, const std::string &read,
                  const std::string &more = "") {
  return parsed(
      R"({"id":0,"name":"a","time_ns":10,"outputs":[{"bytes":16,"shape":[4,4]}],
          "alternatives":[{"name":"two","pieces":[{"time_ns":5},{"time_ns":6}],
                           "outputs":[{)" +
          made + "}]" + more + R"(}]},
         {"id":1,"name":"b","time_ns":10,"outputs":[],
          "alternatives":[{"name":"two","pieces":[{"time_ns":5},{"time_ns":6}],
                           "inputs":[{"from":0,"output":0)" +
          read + "}]}]}",
      R"({"from":0,"output":0,"to":1})");
}

Expansion expanded(const Case &of, const Ways &ways) {
  EXPECT_EQ(checkAlternatives(of.graph, of.alternatives), Texts());
  Expansion expansion;
  EXPECT_EQ(expand(of.graph, of.alternatives, ways, expansion), "");
  return expansion;
}

TEST(Expand, AsItIs) {
  Case of = twoOperators(R"("along":0)", R"(,"along":0)");
  Expansion found = expanded(of, {-1, -1});
  EXPECT_EQ(operators(found), Texts({"a(16)", "b()"}));
  EXPECT_EQ(edges(found), Texts({"a.0 b"}));
}

TEST(Expand, SameSlicesGoFromPieceToPiece) {
  Case of = twoOperators(R"("along":0)", R"(,"along":0)");
  Expansion found = expanded(of, {0, 0});
  EXPECT_EQ(operators(found), Texts({"a#0(8)", "a#1(8)", "b#0()", "b#1()"}));
  EXPECT_EQ(edges(found), Texts({"a#0.0 b#0", "a#1.0 b#1"}));
  EXPECT_EQ(found.graph.ops[1].timeNs.front().second, 6);
  EXPECT_EQ(found.origins[3].op, 1);
  EXPECT_EQ(found.origins[3].piece, 1);
}

TEST(Expand, UnevenSlicesMeetInTheirIntersections) {
  Case of =
      twoOperators(R"("along":0,"sizes":[3,1])", R"(,"along":0,"sizes":[1,3])");
  Expansion found = expanded(of, {0, 0});
  EXPECT_EQ(operators(found), Texts({"a#0(4,8)", "a#1(4)", "b#0()", "b#1()"}));
  EXPECT_EQ(edges(found), Texts({"a#0.0 b#0", "a#0.1 b#1", "a#1.0 b#1"}));
}

TEST(Expand, AnotherDimensionIsAnAllToAll) {
  Case of = twoOperators(R"("along":0)", R"(,"along":1)");
  Expansion found = expanded(of, {0, 0});
  EXPECT_EQ(operators(found),
            Texts({"a#0(4,4)", "a#1(4,4)", "b#0()", "b#1()"}));
  EXPECT_EQ(edges(found),
            Texts({"a#0.0 b#0", "a#0.1 b#1", "a#1.0 b#0", "a#1.1 b#1"}));
}

TEST(Expand, WholeReadersReadAllSlices) {
  Case of = twoOperators(R"("along":0)", R"(,"along":0)");
  Expansion found = expanded(of, {0, -1});
  EXPECT_EQ(edges(found), Texts({"a#0.0 b", "a#1.0 b"}));
  found = expanded(of, {-1, 0});
  EXPECT_EQ(operators(found), Texts({"a(8,8)", "b#0()", "b#1()"}));
  EXPECT_EQ(edges(found), Texts({"a.0 b#0", "a.1 b#1"}));
}

TEST(Expand, CopiesAreReadByTheirOwnLane) {
  Case of = twoOperators("", R"(,"along":0)");
  Expansion found = expanded(of, {0, 0});
  // Of each copy the half that is read, and the half that nobody reads.
  EXPECT_EQ(operators(found),
            Texts({"a#0(8,8)", "a#1(8,8)", "b#0()", "b#1()"}));
  EXPECT_EQ(edges(found), Texts({"a#0.0 b#0", "a#1.1 b#1"}));
}

TEST(Expand, SummandsAreAddedUpForEachRange) {
  Case of =
      twoOperators(R"("partial":true)", R"(,"along":0)", R"(,"sum_ns":8)");
  Expansion found = expanded(of, {0, 0});
  EXPECT_EQ(operators(found), Texts({"a#0(8,8)", "a#1(8,8)", "a+0.0(8)",
                                     "a+0.1(8)", "b#0()", "b#1()"}));
  EXPECT_EQ(edges(found), Texts({"a#0.0 a+0.0", "a#0.1 a+0.1", "a#1.0 a+0.0",
                                 "a#1.1 a+0.1", "a+0.0.0 b#0", "a+0.1.0 b#1"}));
  EXPECT_EQ(found.graph.ops[2].timeNs.front().second, 4);
  EXPECT_TRUE(found.origins[2].isHelper);
  found = expanded(of, {0, -1});
  EXPECT_EQ(operators(found),
            Texts({"a#0(16)", "a#1(16)", "a+0.0(16)", "b()"}));
}

TEST(Expand, ReplicasExchangeTheirUpdates) {
  Case of = twoOperators(R"("along":0)", R"(,"along":0)",
                         R"(,"replicas":2,"exchange":9)");
  Expansion found = expanded(of, {0, -1});
  EXPECT_EQ(operators(found),
            Texts({"a#0(8,4,5)", "a#1(8,4,5)", "a+exchange#0(4)",
                   "a+exchange#1(5)", "a+keep#0()", "a+keep#1()", "b()"}));
  EXPECT_EQ(edges(found),
            Texts({"a#0.0 b", "a#0.1 a+exchange#0", "a#0.2 a+exchange#1",
                   "a#1.0 b", "a#1.1 a+exchange#0", "a#1.2 a+exchange#1",
                   "a+exchange#0.0 a+keep#0", "a+exchange#0.0 a+keep#1",
                   "a+exchange#1.0 a+keep#0", "a+exchange#1.0 a+keep#1"}));
  EXPECT_EQ(found.graph.ops[2].group, found.graph.ops[0].group);
  EXPECT_EQ(found.graph.ops[4].group, found.graph.ops[0].group);
}

TEST(Expand, ExtraBytesTravelBesideAndAreNotKept) {
  Case of = twoOperators(R"("along":0,"extra":3)", R"(,"along":0,"extra":2)");
  Expansion found = expanded(of, {0, 0});
  EXPECT_EQ(operators(found),
            Texts({"a#0(8,3,2)", "a#1(8,3,2)", "b#0()", "b#1()"}));
  EXPECT_EQ(found.graph.ops[0].outputs[1].memory, 0);
  EXPECT_EQ(found.graph.ops[0].outputs[1].copy, 0);
}

TEST(Expand, GroupsPinsResultsAndForwardOperators) {
  Case of = parsed(
      R"({"id":0,"name":"a","time_ns":1,"outputs":[{"bytes":2,"shape":[2]}],
          "group":"g","pin":"d0","result":true,
          "alternatives":[{"name":"two","pieces":[{"time_ns":1},{"time_ns":1}],
                           "outputs":[{"along":0}]}]},
         {"id":1,"name":"b","time_ns":1,"outputs":[],"backward":true,
          "forward":0,
          "alternatives":[{"name":"two","pieces":[{"time_ns":1},
                                                  {"time_ns":1}]}]})",
      R"({"from":0,"to":1})");
  Expansion found = expanded(of, {0, 0});
  EXPECT_EQ(found.graph.ops[1].group, "g#1");
  EXPECT_EQ(found.graph.ops[1].pin, "d0");
  EXPECT_TRUE(found.graph.ops[1].result);
  EXPECT_EQ(found.graph.ops[3].forward, 1);
  EXPECT_EQ(edges(found),
            Texts({"a#0.-1 b#0", "a#0.-1 b#1", "a#1.-1 b#0", "a#1.-1 b#1"}));
}

TEST(Expand, SharesAddUp) {
  Case of = parsed(
      R"({"id":0,"name":"a","time_ns":1,
          "outputs":[{"bytes":1000,"memory":7,"copy":11,"shape":[7,3]}],
          "alternatives":[{"name":"x","pieces":[{"time_ns":1},{"time_ns":1},
                           {"time_ns":1}],"outputs":[{"along":0}]}]},
         {"id":1,"name":"b","time_ns":1,"outputs":[],
          "alternatives":[{"name":"y","pieces":[{"time_ns":1},{"time_ns":1}],
                       "inputs":[{"from":0,"output":0,"along":1}]}]})",
      R"({"from":0,"output":0,"to":1})");
  for (const Ways &ways : {Ways{0, 0}, Ways{0, -1}, Ways{-1, 0}}) {
    Output sum;
    for (const Operator &op : expanded(of, ways).graph.ops)
      for (const Output &output : op.outputs) {
        sum.bytes += output.bytes;
        sum.memory += output.memory;
        sum.copy += output.copy;
      }
    EXPECT_EQ(sum.bytes, 1000);
    EXPECT_EQ(sum.memory, 7);
    EXPECT_EQ(sum.copy, 11);
  }
}

TEST(Expand, SaysWhatIsTooMuch) {
  Case of = twoOperators(R"("along":0)", R"(,"along":0)");
  of.alternatives.of[0][0].pieces.resize(1'000'001, {{{"", 1}}, 0, 0});
  of.alternatives.of[0][0].outputs.clear();
  Expansion expansion;
  EXPECT_EQ(expand(of.graph, of.alternatives, {0, -1}, expansion),
            "in pieces the graph has more than a million operators: state "
            "fewer pieces");
}

TEST(AlternativesFile, ReadsWhatItWrites) {
  Case of = twoOperators(R"("along":0,"sizes":[1,3],"extra":4)",
                         R"(,"along":1,"extra":2)",
                         R"(,"sum_ns":3,"replicas":2,"exchange":5)");
  of.alternatives.of[0][0].pieces[1] = {{{"cuda", 3}, {"host", 4}}, 5, 6};
  of.alternatives.of[0][0].outputs[0].isPartial = true;
  std::string first, second;
  EXPECT_EQ(formatAlternatives(of.graph, of.alternatives, first), "");
  Case again;
  EXPECT_EQ(parseAlternatives(first, "g", again.graph, again.alternatives), "");
  EXPECT_EQ(formatAlternatives(again.graph, again.alternatives, second), "");
  EXPECT_EQ(first, second);
  EXPECT_NE(first.find(R"("resident":6)"), std::string::npos);
}

TEST(AlternativesFile, ErrorsNameThePlace) {
  std::string op = R"({"id":0,"name":"a","time_ns":1,"outputs":[],)";
  auto error = [&](const std::string &alternatives) {
    return parseError(op + R"("alternatives":)" + alternatives + "}");
  };
  EXPECT_EQ(error("3"), "g: ops[0] 'a'.alternatives: must be an array, not "
                        "number");
  EXPECT_EQ(error(R"([{"pieces":[]}])"),
            "g: ops[0] 'a'.alternatives[0]: the member 'name' is missing: add "
            "it");
  EXPECT_EQ(error(R"([{"name":"x","pieces":[{}]}])"),
            "g: ops[0] 'a'.alternatives[0] 'x'.pieces[0]: the member "
            "'time_ns' is missing: add it");
  EXPECT_EQ(error(R"([{"name":"x","pieces":[],"piecs":1}])"),
            "g: ops[0] 'a'.alternatives[0] 'x': unknown member 'piecs': the "
            "members are name, pieces, outputs, inputs, sum_ns, replicas, "
            "exchange");
  EXPECT_EQ(error(R"([{"name":"x","pieces":[],"sum_ns":-1}])"),
            "g: ops[0] 'a'.alternatives[0] 'x'.sum_ns: must not be negative, "
            "but is -1");
  EXPECT_EQ(
      error(R"([{"name":"x","pieces":[],"inputs":[{"from":0,"along":-1}]}])"),
      "g: ops[0] 'a'.alternatives[0] 'x'.inputs[0]: the member "
      "'output' is missing: add it");
  Graph graph;
  std::string text = R"({"format":"baechi-graph","version":1,"ops":[)" + op +
                     R"("alternatives":[]}],"edges":[]})";
  EXPECT_EQ(parseGraph(text, "g", graph),
            "g: ops[0] 'a'.alternatives: states other ways to do operators, "
            "which only baechi-place plans");
}

TEST(AlternativesCheck, NamesTheOperatorAndTheMend) {
  auto errorOf = [](auto change) {
    Case of = twoOperators(R"("along":0)", R"(,"along":0)");
    change(of.alternatives.of[0][0], of.alternatives.of[1][0], of);
    auto errors = checkAlternatives(of.graph, of.alternatives);
    return errors.empty() ? std::string() : errors.front();
  };
  std::string a = "operator 0 'a', alternative 'two': ",
              b = "operator 1 'b', alternative 'two': ";
  using A = Alternative;
  EXPECT_EQ(errorOf([](A &x, A &, Case &) { x.name.clear(); }),
            "operator 0 'a', alternative '': has no name: give it one");
  EXPECT_EQ(errorOf([](A &x, A &, Case &of) {
              A twin = x;
              of.alternatives.of[0].push_back(twin);
            }),
            a + "is not the only one of its name: give each its own");
  EXPECT_EQ(errorOf([](A &x, A &, Case &) { x.pieces.clear(); }),
            a + "has 0 pieces: 1 to 4096 can be");
  EXPECT_EQ(errorOf([](A &x, A &, Case &) { x.pieces[0].timeNs.clear(); }),
            a + "has a piece without a time: give it one per kind of device");
  EXPECT_EQ(
      errorOf([](A &x, A &, Case &) { x.pieces[0].timeNs[0].second = -5; }),
      a + "has a time of -5: it must be 0 or more, and 2^60 at most");
  EXPECT_EQ(errorOf([](A &x, A &, Case &) { x.replicas = 3; }),
            a + "has 2 pieces and 3 replicas: the pieces must be a multiple "
                "of the replicas");
  EXPECT_EQ(errorOf([](A &x, A &, Case &) { x.exchange = 3; }),
            a + "has an exchange, but one replica: say how many hold the same");
  EXPECT_EQ(errorOf([](A &x, A &, Case &) { x.outputs.emplace_back(); }),
            a + "says how 2 outputs are made, but the operator has 1");
  EXPECT_EQ(errorOf([](A &x, A &, Case &) { x.outputs[0].cut.along = 2; }),
            a + "output 0 is cut along dimension 2, which its shape does not "
                "have: state the output's 'shape'");
  EXPECT_EQ(errorOf([](A &x, A &, Case &) { x.outputs[0].isPartial = true; }),
            a + "output 0 is both partial and cut: a summand is of all of it");
  EXPECT_EQ(errorOf([](A &x, A &, Case &) { x.outputs[0].cut = {-1, {4}}; }),
            a + "output 0 has sizes, but no dimension 'along' which they lie");
  EXPECT_EQ(errorOf([](A &x, A &, Case &) { x.pieces.resize(5, x.pieces[0]); }),
            a + "output 0 has an extent of 4, too little for 5 pieces");
  EXPECT_EQ(
      errorOf([](A &x, A &, Case &) { x.outputs[0].cut.sizes = {1, 1, 2}; }),
      a + "output 0 has 3 slices for 2 pieces: the pieces must be a "
          "multiple of the slices");
  EXPECT_EQ(errorOf([](A &x, A &, Case &) { x.outputs[0].cut.sizes = {4, 0}; }),
            a + "output 0 has a slice of 0: it must be 1 or more");
  EXPECT_EQ(errorOf([](A &, A &x, Case &) { x.inputs[0].cut.sizes = {1, 2}; }),
            b + "input from operator 0, output 0, has slices of 3 in all, but "
                "the extent of dimension 0 is 4");
  EXPECT_EQ(errorOf([](A &, A &x, Case &) { x.inputs[0].output = 1; }),
            b + "input from operator 0, output 1, is none of the operator's: "
                "there is no such edge");
  EXPECT_EQ(errorOf([](A &, A &x, Case &) { x.inputs.push_back(x.inputs[0]); }),
            b + "input from operator 0, output 0, is there twice");
  EXPECT_EQ(errorOf([](A &, A &, Case &of) {
              of.alternatives.shapes[0][0] = {4, 0};
            }),
            "operator 0 'a': an output has an extent of 0: it must be 1 or "
            "more");
  EXPECT_EQ(errorOf([](A &, A &, Case &of) {
              of.alternatives.shapes[0][0].assign(17, 1);
            }),
            "operator 0 'a': an output has 17 dimensions: 16 at most");
  EXPECT_EQ(errorOf([](A &, A &, Case &of) {
              of.alternatives.shapes[0][0].assign(2, int64_t(1) << 40);
            }),
            "operator 0 'a': an output has more elements than 2^60");
}

TEST(PlacementWays, AreReadBackByTheirNames) {
  Case of = twoOperators(R"("along":0)", R"(,"along":0)");
  auto read = [&](const std::string &choices, Ways &ways) {
    return parseWays(R"({"format":"baechi-placement","version":1,"choices":)" +
                         choices + "}",
                     "p", of.graph, of.alternatives, ways);
  };
  Ways ways;
  EXPECT_EQ(read(R"([{"id":1,"alternative":"two"}])", ways), "");
  EXPECT_EQ(ways, Ways({-1, 0}));
  EXPECT_EQ(namesOf(of.alternatives, ways).front().alternative, "two");
  EXPECT_EQ(read(R"([{"id":2,"alternative":"two"}])", ways),
            "p: choices[0].id: is 2, but the graph has 2 operators");
  EXPECT_EQ(read(R"([{"id":1,"alternative":"three"}])", ways),
            "p: choices[0].alternative: operator 1 'b' has no alternative "
            "'three': the placement is of another graph");
}

} // namespace
