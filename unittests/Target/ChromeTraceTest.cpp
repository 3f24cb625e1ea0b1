//===- ChromeTraceTest.cpp - Timelines as trace events -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Target/ChromeTrace.h"
#include "gtest/gtest.h"
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

using namespace baechi;
using nlohmann::json;

namespace {
/// Two devices, an operator each, a message between them.
runtime::Program twoDevices() {
  runtime::Program program;
  program.devices.resize(2);
  program.devices[0].name = "a";
  program.devices[1].name = "b";
  program.devices[0].operators = {{"produce \"x\"", "kernel", 0, 1000}};
  program.devices[1].operators = {{"consume", "kernel", 3000, 500}};
  program.queues = {{0, 1, {{"x", 64, 1000, 3000}}}};
  return program;
}

runtime::Timeline measuredOf(const runtime::Program &) {
  runtime::Timeline timeline;
  timeline.devices.resize(2);
  timeline.devices[0].operators = {{0, 900}};
  timeline.devices[1].operators = {{2900, 3600}};
  runtime::CopyRecord copy;
  copy.beginNs = 950;
  copy.endNs = 2500;
  timeline.queues = {{copy}};
  return timeline;
}

std::vector<json> eventsOf(const std::string &text, const std::string &phase,
                           int process) {
  std::vector<json> found;
  json trace = json::parse(text);
  for (const json &event : trace["traceEvents"])
    if (event["ph"] == phase && event["pid"] == process)
      found.push_back(event);
  return found;
}

constexpr int predicted = 1, measured = 2;

/// Whether an end of an arrow lies in a slice of its row.
bool isBound(const std::string &text, const json &end) {
  for (const json &slice : eventsOf(text, "X", end["pid"])) {
    double from = slice["ts"], until = from + double(slice["dur"]);
    double at = end["ts"];
    if (slice["tid"] == end["tid"] && at >= from && (at < until || at == from))
      return true;
  }
  return false;
}
} // namespace

TEST(ChromeTrace, ASpanForEveryOperatorAndTransfer) {
  std::string text = chromeTrace(twoDevices(), nullptr);
  std::vector<json> spans = eventsOf(text, "X", predicted);
  ASSERT_EQ(spans.size(), 3u);
  EXPECT_EQ(spans[0]["name"], "produce \"x\"");
  EXPECT_EQ(spans[0]["tid"], 0);
  EXPECT_EQ(spans[1]["ts"], 3.0); // microseconds
  EXPECT_EQ(spans[1]["dur"], 0.5);
  EXPECT_EQ(spans[2]["tid"], 2);
  EXPECT_EQ(spans[2]["args"]["bytes"], 64);
  EXPECT_TRUE(eventsOf(text, "X", measured).empty());
}

TEST(ChromeTrace, RowsAreNamed) {
  std::map<int, std::string> names;
  for (const json &event :
       eventsOf(chromeTrace(twoDevices(), nullptr), "M", predicted))
    if (event["name"] == "thread_name")
      names[event["tid"]] = event["args"]["name"];
  EXPECT_EQ(names,
            (std::map<int, std::string>{{0, "a"}, {1, "b"}, {2, "a -> b"}}));
}

TEST(ChromeTrace, ArrowsComeInPairs) {
  runtime::Program program = twoDevices();
  runtime::Timeline timeline = measuredOf(program);
  std::string text = chromeTrace(program, &timeline);
  std::map<int, std::pair<int, int>> ends;
  for (int process : {predicted, measured}) {
    std::vector<json> starts = eventsOf(text, "s", process),
                      finishes = eventsOf(text, "f", process);
    ASSERT_EQ(starts.size(), 1u);
    ASSERT_EQ(finishes.size(), 1u);
    EXPECT_EQ(starts[0]["id"], finishes[0]["id"]);
    EXPECT_EQ(starts[0]["tid"], 0);
    EXPECT_EQ(finishes[0]["tid"], 1);
    EXPECT_LE(starts[0]["ts"], finishes[0]["ts"]);
  }
  EXPECT_NE(eventsOf(text, "s", predicted)[0]["id"],
            eventsOf(text, "s", measured)[0]["id"]);
}

TEST(ChromeTrace, ArrowsLeadFromTheProducerToTheNextOperator) {
  runtime::Program program = twoDevices();
  // Neither the sender's last operator before the copy nor the receiver's
  // first, and of a name that others have, too.
  program.devices[0].operators = {{"x", "kernel", 0, 500, 3},
                                  {"x", "kernel", 500, 500, 4}};
  program.queues[0].messages[0].producer = 3;
  program.devices[1].operators = {{"early", "kernel", 0, 100},
                                  {"consume", "kernel", 3000, 500},
                                  {"late", "kernel", 3500, 500}};
  runtime::Timeline timeline = measuredOf(program);
  timeline.devices[0].operators = {{0, 400}, {400, 900}};
  timeline.devices[1].operators = {{0, 90}, {2900, 3600}, {3600, 4000}};
  std::string text = chromeTrace(program, &timeline);
  for (auto [process, from, to] :
       {std::tuple(predicted, 0.499, 3.0), std::tuple(measured, 0.399, 2.9)}) {
    json start = eventsOf(text, "s", process).at(0),
         finish = eventsOf(text, "f", process).at(0);
    EXPECT_EQ(start["ts"], from);
    EXPECT_EQ(finish["ts"], to);
    EXPECT_EQ(finish["bp"], "e");
    EXPECT_TRUE(isBound(text, start));
    EXPECT_TRUE(isBound(text, finish));
  }
  // An argument's value, which no operator made.
  program.queues[0].messages[0].producer = 0;
  EXPECT_EQ(eventsOf(chromeTrace(program, nullptr), "s", predicted)[0]["ts"],
            0.999);
}

TEST(ChromeTrace, AnArrowWithoutAnOperatorIsTheCopys) {
  runtime::Program program = twoDevices();
  program.devices[0].operators[0].startNs = 5000; // after the copy
  program.devices[1].operators[0].startNs = 0;    // before it
  runtime::Timeline timeline = measuredOf(program);
  timeline.devices[0].operators = {{}};
  timeline.devices[1].operators = {{}};
  std::string text = chromeTrace(program, &timeline);
  for (int process : {predicted, measured})
    for (const char *phase : {"s", "f"}) {
      json end = eventsOf(text, phase, process).at(0);
      EXPECT_EQ(end["tid"], 2);
      EXPECT_TRUE(isBound(text, end)) << end;
    }
}

TEST(ChromeTrace, WhatDidNotHappenIsNotDrawn) {
  runtime::Program program = twoDevices();
  runtime::Timeline timeline = measuredOf(program);
  timeline.devices[1].operators[0] = {};
  timeline.queues[0][0] = {};
  std::string text = chromeTrace(program, &timeline);
  EXPECT_EQ(eventsOf(text, "X", measured).size(), 1u);
  EXPECT_TRUE(eventsOf(text, "s", measured).empty());
  EXPECT_TRUE(eventsOf(text, "f", measured).empty());
}
