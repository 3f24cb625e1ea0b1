//===- CudaReplay.cpp - Runs of commands as graphs -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "drivers/cuda/CudaReplay.h"
#include "drivers/cuda/CudaDevice.h"

#include <algorithm>
#include <cstdio>

using namespace baechi::runtime;
using namespace baechi::runtime::cuda;

/// A graph of one command takes as long to launch as the command.
static constexpr size_t fewestCommands = 2;

void Replay::begin() { enter(0); }

void Replay::enter(size_t run) {
  if (run == runs.size())
    runs.emplace_back();
  current = run;
  asked = 0;
  follows = !runs[run].words.empty();
}

Problem Replay::add(std::span<const uint64_t> command) {
  Run &run = runs[current];
  if (follows) {
    if (command.size() <= run.words.size() - asked &&
        std::equal(command.begin(), command.end(),
                   run.words.begin() + ptrdiff_t(asked))) {
      asked += command.size();
      return {};
    }
    if (Problem problem = diverge(run))
      return problem;
  }
  // Noted only once it has run: what has not may load code, or allocate.
  if (Problem problem = perform(device, command))
    return problem;
  run.words.insert(run.words.end(), command.begin(), command.end());
  ++run.commands;
  asked += command.size();
  return {};
}

Problem Replay::diverge(Run &run) {
  follows = false;
  forget(run);
  run.words.resize(asked);
  run.eager = false;
  run.commands = 0;
  for (size_t at = 0; at < asked; at += uint32_t(run.words[at]))
    ++run.commands;
  return perform(device, run.words);
}

Problem Replay::flush() {
  if (asked == 0)
    return {};
  Run &run = runs[current];
  Problem problem;
  if (follows && asked < run.words.size()) {
    problem = diverge(run);
  } else if (follows) {
    if (!run.graph && !run.eager && run.commands >= fewestCommands)
      capture(run);
    problem = run.graph ? device.check(device.api().graphLaunch(
                                           run.graph, device.computeStream()),
                                       "a graph of kernels cannot be launched")
                        : perform(device, run.words);
  }
  enter(current + 1);
  return problem;
}

/// Gives the run a graph, or lets it go without.
void Replay::capture(Run &run) {
  const Api &api = device.api();
  const char *what = "a stream cannot be captured";
  Graph graph = nullptr;
  Problem problem = api.problem(
      api.beginCapture(device.computeStream(), captureThreadLocal), what);
  if (!problem) {
    problem = branches && api.captureInfo && api.setDependencies
                  ? tellBranches(run.words)
                  : perform(device, run.words, /*capturing=*/true);
    // Ends in any case.
    Problem ended =
        api.problem(api.endCapture(device.computeStream(), &graph), what);
    if (!problem)
      problem = ended;
  }
  if (!problem)
    problem = api.problem(api.graphInstantiate(&run.graph, graph, 0),
                          "a graph cannot be instantiated");
  if (graph)
    api.graphDestroy(graph);
  if (!problem) {
    hasNews = true;
    return;
  }
  run.graph = nullptr;
  run.eager = true;
  if (!noted)
    std::fprintf(stderr,
                 "baechi: device %s launches kernels one by one, not all as "
                 "CUDA graphs: %s: %s\n",
                 name.c_str(), problem.reason, problem.detail);
  noted = true;
}

Problem Replay::tellBranches(std::span<const uint64_t> words) {
  const Api &api = device.api();
  Stream stream = device.computeStream();
  const char *what = "a captured command cannot be ordered";
  Conflicts conflicts;
  Accesses accesses;
  // Of each command: what comes after it follows these.
  std::vector<std::vector<Node>> ends;
  while (!words.empty()) {
    std::span<const uint64_t> command = firstOf(words);
    std::vector<Node> after;
    for (size_t earlier : findAccesses(command, accesses)
                              ? conflicts.add(accesses)
                              : conflicts.addUnknown())
      after.insert(after.end(), ends[earlier].begin(), ends[earlier].end());
    // A command that has added no node ends with what it came after.
    std::sort(after.begin(), after.end());
    after.erase(std::unique(after.begin(), after.end()), after.end());
    if (Problem problem = api.problem(
            api.setDependencies(stream, after.empty() ? nullptr : after.data(),
                                nullptr, after.size(), setCaptureDependencies),
            what))
      return problem;
    if (Problem problem = perform(device, command, /*capturing=*/true))
      return problem;
    int status = 0;
    const Node *nodes = nullptr;
    const EdgeData *edges = nullptr;
    size_t count = 0;
    if (Problem problem =
            api.problem(api.captureInfo(stream, &status, nullptr, nullptr,
                                        &nodes, &edges, &count),
                        what))
      return problem;
    ends.emplace_back(nodes, nodes + count);
    words = words.subspan(command.size());
  }
  return {};
}

void Replay::forget(Run &run) {
  if (run.graph)
    device.api().graphExecDestroy(run.graph);
  run.graph = nullptr;
}

void Replay::close() {
  for (Run &run : runs)
    forget(run);
  runs.clear();
}
