//===- FormatsTest.cpp - Graph, machine, placement files --------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestProblems.h"

#include "Baechi/Placement/Io/Files.h"

#include <gmock/gmock.h>

#include <fstream>

using namespace baechi::placement;
using namespace baechi::placement::test;
using testing::HasSubstr;

namespace {

std::string temporary(const std::string &name) {
  return testing::TempDir() + "baechi-formats-" + name;
}

std::string graphError(const std::string &text) {
  Graph graph;
  return parseGraph(text, "g.json", graph);
}
std::string machineError(const std::string &text) {
  Machine machine;
  return parseMachine(text, "m.json", machine);
}
std::string graphWith(const std::string &ops, const std::string &edges = "") {
  return R"({"format": "baechi-graph", "version": 1, "ops": [)" + ops +
         R"(], "edges": [)" + edges + "]}";
}
std::string machineWith(const std::string &rest) {
  return R"({"format": "baechi-machine", "version": 1, "devices": [
    {"name": "a", "kind": "gpu", "memory": 1},
    {"name": "b", "kind": "gpu", "memory": 2}], )" +
         rest + "}";
}

TEST(Formats, GraphIsReadInFull) {
  Graph graph;
  ASSERT_EQ(parseGraph(graphWith(R"(
    {"id": 0, "name": "x", "time_ns": {"cuda": 5, "host": 7},
     "outputs": [4, {"bytes": 8, "memory": 0}], "scratch": 1, "resident": 2,
     "group": "g", "pin": "d", "result": true},
    {"id": 1, "name": "y", "time_ns": 9, "backward": true, "forward": 0})",
                                 R"({"from": 0, "output": 1, "to": 1},
                                   {"from": 0, "to": 1})"),
                       "g.json", graph),
            "");
  const Operator &x = graph.ops[0], &y = graph.ops[1];
  EXPECT_EQ(x.timeNs, (std::vector<std::pair<std::string, int64_t>>{
                          {"cuda", 5}, {"host", 7}}));
  EXPECT_EQ(x.outputs[0].copy, 4);
  EXPECT_EQ(x.outputs[1].bytes, 8);
  EXPECT_EQ(x.outputs[1].memory, 0);
  EXPECT_EQ(x.outputs[1].copy, 8);
  EXPECT_EQ(x.scratch, 1);
  EXPECT_EQ(x.resident, 2);
  EXPECT_EQ(x.group, "g");
  EXPECT_EQ(x.pin, "d");
  EXPECT_TRUE(x.result);
  EXPECT_EQ(y.timeNs.front().first, "");
  EXPECT_TRUE(y.backward);
  EXPECT_EQ(y.forward, 0);
  ASSERT_EQ(graph.edges.size(), 2u);
  EXPECT_EQ(graph.edges[0].output, 1);
  EXPECT_EQ(graph.edges[1].output, -1);
}

TEST(Formats, GraphRoundTrip) {
  for (const char *name : {"graph.json", "graph.json.xz", "graph.json.gz"}) {
    Graph graph = randomProblem(7).graph, again;
    ASSERT_EQ(writeGraph(temporary(name), graph), "");
    ASSERT_EQ(readGraph(temporary(name), again), "");
    // The text of both is the same, so is everything that it says.
    std::string second = temporary(std::string("again-") + name);
    ASSERT_EQ(writeGraph(second, again), "");
    std::string a, b;
    ASSERT_EQ(readTextFile(temporary(name), a), "");
    ASSERT_EQ(readTextFile(second, b), "");
    EXPECT_EQ(a, b);
    EXPECT_EQ(again.ops.size(), graph.ops.size());
    EXPECT_EQ(again.edges.size(), graph.edges.size());
  }
}

TEST(Formats, MachineRoundTrip) {
  Machine machine = makeMachine(3, 100, {7, 11}, LinkModel::Duplex), again;
  machine.links[1] = Link{1, 2};
  ASSERT_EQ(writeMachine(temporary("machine.json"), machine), "");
  ASSERT_EQ(readMachine(temporary("machine.json"), again), "");
  EXPECT_EQ(again.linkModel, LinkModel::Duplex);
  ASSERT_EQ(again.devices.size(), 3u);
  EXPECT_EQ(again.devices[2].memory, 100);
  EXPECT_EQ(again.link(0, 1)->latencyNs, 1);
  EXPECT_EQ(again.link(1, 0)->bytesPerUs, 11);
  EXPECT_FALSE(again.link(1, 1));
}

TEST(Formats, PairsWithoutLinkStayWithout) {
  Machine machine = makeMachine(3), again;
  machine.links[1].reset();
  ASSERT_EQ(writeMachine(temporary("cut.json"), machine), "");
  ASSERT_EQ(readMachine(temporary("cut.json"), again), "");
  EXPECT_FALSE(again.link(0, 1));
  EXPECT_TRUE(again.link(1, 0));
}

TEST(Formats, PlacementRoundTrip) {
  Problem problem = diamond();
  PlaceResult result = place(problem, {});
  ASSERT_TRUE(result.placement) << result.error;
  ASSERT_EQ(writePlacement(temporary("p.json.xz"), problem, *result.placement,
                           {"msct", 12}),
            "");
  Placement again;
  PlacementInfo info;
  ASSERT_EQ(readPlacement(temporary("p.json.xz"), problem, again, &info), "");
  EXPECT_EQ(again.device, result.placement->device);
  EXPECT_EQ(again.startNs, result.placement->startNs);
  EXPECT_EQ(again.transfers.size(), result.placement->transfers.size());
  EXPECT_EQ(info.algorithm, "msct");
  EXPECT_EQ(info.lowerBoundNs, 12);
  EXPECT_TRUE(verify(problem, again).empty());
}

TEST(Formats, MembersComeInAnyOrder) {
  Graph graph;
  ASSERT_EQ(parseGraph(graphWith(R"({"result": true, "outputs": [4],)"
                                 R"( "group": null, "time_ns": 1, "pin": "a",)"
                                 R"( "scratch": 2, "name": "n", "id": 0})",
                                 R"({"to": 0, "output": null, "from": 0})"),
                       "text", graph),
            "");
  const Operator &op = graph.ops.front();
  EXPECT_EQ(op.name, "n");
  EXPECT_TRUE(op.result);
  EXPECT_EQ(op.scratch, 2);
  EXPECT_EQ(op.pin, "a");
  EXPECT_FALSE(op.group);
  EXPECT_EQ(op.outputs.size(), 1u);
  EXPECT_EQ(graph.edges.front().output, -1);
}

TEST(Formats, GraphErrorsNameThePlace) {
  EXPECT_THAT(graphError("{"), HasSubstr("g.json: not valid JSON"));
  EXPECT_THAT(graphError("[]"), HasSubstr("must be an object, not array"));
  EXPECT_THAT(graphError("{}"), HasSubstr("'format' is missing"));
  EXPECT_THAT(
      graphError(R"({"format": "baechi-machine", "version": 1})"),
      HasSubstr("is 'baechi-machine', but this must be a baechi-graph"));
  EXPECT_THAT(graphError(R"({"format": "baechi-graph", "version": 2})"),
              HasSubstr("only version 1 is known"));
  EXPECT_THAT(graphError(R"({"format": "baechi-graph", "version": 1})"),
              HasSubstr("'ops' is missing"));
  EXPECT_THAT(graphError(graphWith(R"({"id": 1, "name": "n", "time_ns": 1})")),
              HasSubstr("ops[0] 'n'.id: is 1, but must be its position 0"));
  EXPECT_THAT(
      graphError(graphWith(R"({"id": 0, "name": "n", "time_ns": 1.5})")),
      HasSubstr("ops[0] 'n'.time_ns: must be an integer, not 1.5"));
  EXPECT_THAT(
      graphError(graphWith(R"({"id": 0, "name": "n", "time_ns": 1e300})")),
      HasSubstr("must be an integer"));
  EXPECT_THAT(
      graphError(graphWith(
          R"({"id": 0, "name": "n", "time_ns": 18446744073709551615})")),
      HasSubstr("does not fit 64 bits"));
  EXPECT_THAT(graphError(graphWith(
                  R"({"id": 0, "name": "n", "time_ns": 1, "grup": "g"})")),
              HasSubstr("unknown member 'grup'"));
  for (const char *twice : {R"("pin": "a", "group": "g", "pin": "a")",
                            R"("pin": null, "pin": "a")"})
    EXPECT_THAT(graphError(graphWith(std::string(R"({"id": 0, "name": "n", )") +
                                     R"("time_ns": 1, )" + twice + "}")),
                HasSubstr("ops[0] 'n': two members are called 'pin'"));
  EXPECT_THAT(graphError(graphWith(R"({"id": 0, "name": 3, "time_ns": 1})")),
              HasSubstr("ops[0].name: must be a string, not number"));
  EXPECT_THAT(graphError(graphWith(
                  R"({"id": 0, "name": "n", "time_ns": 1, "result": 1})")),
              HasSubstr("result: must be true or false"));
  EXPECT_THAT(graphError(graphWith("", R"({"from": 0, "to": 99999999999})")),
              HasSubstr("edges[0].to: 99999999999 does not fit 32 bits"));
  EXPECT_THAT(
      graphError(graphWith("", R"({"from": 0, "to": 1, "output": -1})")),
      HasSubstr("leave it out for a control edge"));
}

TEST(Formats, MachineErrorsNameThePlace) {
  EXPECT_THAT(machineError(machineWith(R"("link_model": "fast")")),
              HasSubstr("link_model: 'fast' is not one of"));
  EXPECT_THAT(machineError(machineWith(R"("links": [])")),
              HasSubstr("'link_model' is missing"));
  EXPECT_THAT(machineError(machineWith(
                  R"("links": [{"from": "a", "to": "x", "latency_ns": 1,
              "bytes_per_us": 1}], "link_model": "duplex")")),
              HasSubstr("links[0].to: 'x' is not a device of this machine"));
  EXPECT_THAT(machineError(machineWith(
                  R"("links": [{"from": "a", "to": "a", "latency_ns": 1,
              "bytes_per_us": 1}], "link_model": "duplex")")),
              HasSubstr("from a device to itself"));
}

TEST(Formats, MachinesKeepTheirRuntimeCosts) {
  auto withRuntime = [](const std::string &runtime) {
    return machineWith(R"("link_model": "duplex", "runtime": )" + runtime);
  };
  Machine machine, again;
  ASSERT_EQ(parseMachine(withRuntime(R"({"step_ns": 30000, "operator_ns": 50,
              "wake_ns": 20000, "shared_percent": 113})"),
                         "m.json", machine),
            "");
  std::string text;
  machine.meta = R"({"model": "a processor"})";
  ASSERT_EQ(formatMachine(machine, text), "");
  EXPECT_THAT(text, HasSubstr("a processor"));
  ASSERT_EQ(parseMachine(text, "m.json", again), "");
  ASSERT_TRUE(again.runtime);
  EXPECT_EQ(again.runtime->stepNs, 30000);
  EXPECT_EQ(again.runtime->operatorNs, 50);
  EXPECT_EQ(again.runtime->wakeNs, 20000);
  EXPECT_EQ(again.runtime->sharedPercent, 113);
  EXPECT_EQ(again.runtime->aloneNs, -1);
  EXPECT_EQ(again.runtime->startNs(/*several=*/false), 30000);
  again.runtime->aloneNs = 9000;
  ASSERT_EQ(formatMachine(again, text), "");
  ASSERT_EQ(parseMachine(text, "m.json", machine), "");
  EXPECT_EQ(machine.runtime->startNs(/*several=*/false), 9000);
  EXPECT_EQ(machine.runtime->startNs(/*several=*/true), 30000);
  EXPECT_EQ(machine.runtime->cores, 0);
  machine.runtime->cores = 2;
  ASSERT_EQ(formatMachine(machine, text), "");
  ASSERT_EQ(parseMachine(text, "m.json", again), "");
  EXPECT_EQ(again.runtime->cores, 2);
  EXPECT_THAT(machineError(withRuntime(R"({"step_ns": 1})")),
              HasSubstr("'operator_ns' is missing"));
  EXPECT_THAT(machineError(withRuntime(R"({"step_ns": -1, "operator_ns": 0,
              "wake_ns": 0, "shared_percent": 100})")),
              HasSubstr("runtime.step_ns: is not between 0 and a second"));
  EXPECT_THAT(machineError(withRuntime(R"({"step_ns": 1, "operator_ns": 0,
              "wake_ns": 0, "shared_percent": 0})")),
              HasSubstr("shared_percent: is not between 1 and 10000"));
  EXPECT_THAT(machineError(withRuntime(R"({"step_ns": 0, "operator_ns": 0,
              "wake_ns": 0, "shared_percent": 100, "cores": -1})")),
              HasSubstr("cores: is not between 0 and 65536"));
}

TEST(Formats, PlacementErrorsNameThePlace) {
  Problem problem = diamond();
  auto error = [&](const std::string &ops) {
    Placement placement;
    return parsePlacement(
        R"({"format": "baechi-placement", "version": 1, "makespan_ns": 1,
            "ops": [)" +
            ops + "]}",
        "p.json", problem, placement);
  };
  EXPECT_THAT(error(R"({"id": 0, "device": "dx", "start_ns": 0})"),
              HasSubstr("ops[0].device: 'dx' is not a device"));
  EXPECT_THAT(error(R"({"id": 4, "device": "d0", "start_ns": 0})"),
              HasSubstr("is 4, but the graph has 4 operators"));
  EXPECT_THAT(error(R"({"id": 0, "device": "d0", "start_ns": 0},
                       {"id": 0, "device": "d0", "start_ns": 0})"),
              HasSubstr("operator 0 is placed twice"));
  EXPECT_THAT(error(R"({"id": 0, "device": "d0", "start_ns": 0})"),
              HasSubstr("operator 1 'b' is not placed"));
  EXPECT_THAT(
      error(R"({"id": 0, "name": "z", "device": "d0", "start_ns": 0})"),
      HasSubstr("ops[0] 'z'.name: operator 0 of the graph is called 'a'"));
}

TEST(Formats, FilesThatCannotBeRead) {
  Graph graph;
  EXPECT_THAT(readGraph(temporary("missing.json"), graph),
              HasSubstr("cannot read: No such file"));
  EXPECT_THAT(readGraph(testing::TempDir(), graph), HasSubstr("a directory"));
  EXPECT_THAT(writeGraph(testing::TempDir() + "no/such/folder.json", graph),
              HasSubstr("cannot write"));
}

TEST(Formats, CompressedFilesThatCannotBeRead) {
  for (auto [ending, form] :
       {std::pair(".xz", "xz"), std::pair(".gz", "gzip")}) {
    Graph graph;
    auto told = [&, ending = ending](std::string_view bytes) {
      std::string path = temporary(std::string("wrong.json") + ending);
      std::ofstream(path, std::ios::binary) << bytes;
      return readGraph(path, graph);
    };
    std::string none = std::string("it is not an ") + form + " file";
    if (form == std::string_view("gzip"))
      none = "it is not a gzip file";
    for (std::string_view text :
         {"", "{}", R"({"format": "baechi-graph", "version": 1, "ops": []})"})
      EXPECT_THAT(told(text), HasSubstr(none));
    std::string path = temporary(std::string("whole.json") + ending);
    ASSERT_EQ(writeGraph(path, diamond().graph), "");
    std::ifstream whole(path, std::ios::binary);
    std::string bytes((std::istreambuf_iterator<char>(whole)), {});
    EXPECT_THAT(told(bytes.substr(0, bytes.size() / 2)),
                HasSubstr("it ends too early"));
    std::string damaged = bytes;
    damaged[bytes.size() / 2] ^= 0x55;
    EXPECT_THAT(told(damaged), HasSubstr("cannot read: "));
    for (std::string rest : {std::string("junk"), bytes.substr(0, 1)})
      EXPECT_THAT(told(bytes + rest),
                  HasSubstr(std::string("what follows its end is no ") + form +
                            " data: keep what is before with 'head -c " +
                            std::to_string(bytes.size()) + "'"));
    // What xz pads its streams with.
    EXPECT_EQ(told(bytes + std::string(8, '\0')) == "",
              form == std::string_view("xz"));
    // Two compressed files in a row are one text.
    EXPECT_THAT(told(bytes + bytes), HasSubstr("wrong.json"));
    EXPECT_THAT(told(bytes + bytes), testing::Not(HasSubstr("cannot read")));
  }
}

} // namespace
