//===- MakeGraph.cpp - Writes training graphs of any size -------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// make-graph FAMILY OPERATORS GRAPH: writes a generated graph, and a machine
/// for it, as files to time baechi-place with.
///
//===----------------------------------------------------------------------===//

#include "Generators.h"

#include "Baechi/Placement/Io/Files.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

using namespace baechi::placement;

namespace {

struct Settings {
  std::string family, graph, machine, linkModel = "sequential";
  int32_t operators = 0, devices = 8;
  int64_t memory = int64_t(1) << 50;
};

std::string write(const Settings &s) {
  Graph graph = benchmarks::generate(s.family, s.operators);
  if (std::string error = writeGraph(s.graph, graph); !error.empty())
    return error;
  fmt::print("{}: {} operators, {} edges\n", s.graph, graph.ops.size(),
             graph.edges.size());
  if (s.machine.empty())
    return "";
  auto model = linkModelNamed(s.linkModel);
  return model ? writeMachine(s.machine, benchmarks::uniformMachine(
                                             s.devices, s.memory, *model))
               : fmt::format("--link-model: unknown model '{}'", s.linkModel);
}

} // namespace

int main(int argc, char **argv) {
  CLI::App app("Writes a training graph of any size.", "make-graph");
  Settings s;
  app.add_option("FAMILY", s.family, "gnmt, transformer or random")
      ->required()
      ->check(CLI::IsMember(benchmarks::generatorNames()));
  app.add_option("OPERATORS", s.operators, "how many at least")
      ->required()
      ->check(CLI::Range(1, 20000000));
  app.add_option("GRAPH", s.graph, "graph file to write")->required();
  app.add_option("--machine", s.machine, "machine file to write");
  app.add_option("--devices", s.devices, "of the machine")
      ->capture_default_str()
      ->check(CLI::Range(1, 4096));
  app.add_option("--memory", s.memory, "bytes of each device")
      ->capture_default_str();
  app.add_option("--link-model", s.linkModel,
                 "unlimited, parallel, duplex or sequential")
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  std::string error = write(s);
  if (!error.empty())
    fmt::print(stderr, "make-graph: error: {}\n", error);
  return error.empty() ? 0 : 1;
}
