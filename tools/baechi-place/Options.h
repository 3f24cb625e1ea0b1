//===- Options.h - Command line of baechi-place -----------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_TOOLS_BAECHI_PLACE_OPTIONS_H
#define BAECHI_TOOLS_BAECHI_PLACE_OPTIONS_H

#include "Baechi/Placement/Study/FitSweep.h"

#include <string>
#include <vector>

namespace CLI {
class App;
} // namespace CLI

/// What was asked for, as it was written.
struct Settings {
  std::string graph, machine, placer = "msct", grouping = "all";
  std::string objective = "makespan", solver = "native", budget = "auto";
  uint64_t seed = 1;
  double solverLimit = 40;
  std::string expert; ///< name patterns -> devices
  std::string given;  ///< a placement to judge and draw instead of finding one
  std::string output, report, timeline, dot, html;
  std::vector<std::string> explain; ///< names, numbers or patterns
  /// Of operators, in the graph file: auto, none, or a placement file.
  std::string alternatives = "auto";
  /// WAY:STAGES:REPLICAS, of a machine of nodes; empty: planned.
  std::string grid;
  bool compare = false;
  std::vector<std::string> placers; ///< to compare; empty: all
  bool sweep = false;
  /// Lists of the sweep; empty: the default's.
  std::vector<int32_t> sweepDevices;
  std::vector<std::string> sweepMemory;
  std::vector<double> sweepLinks;
  bool noLeastMemory = false;
  /// Memories of the step over the memory, with commas; empty: not asked for.
  std::string sweepFit;
  std::vector<std::string> sums; ///< names, numbers or patterns
  /// Whether a graph that does not fit is rewritten: auto or never.
  std::string fitMemory = "never";
  std::string fittedGraph; ///< where it is written
};

void defineOptions(CLI::App &app, Settings &settings);

/// Turns the settings into options; returns an error, empty if none.
std::string toPlaceOptions(const Settings &settings,
                           baechi::placement::PlaceOptions &options);

/// The same for a sweep; \p place is how every machine is placed on.
std::string toSweepOptions(const Settings &settings,
                           const baechi::placement::PlaceOptions &place,
                           baechi::placement::SweepOptions &options);

/// The operators of \p graph that are named as sums.
std::string findSums(const Settings &settings,
                     const baechi::placement::Graph &graph,
                     std::vector<int32_t> &sums);

/// The same for the step of \p graph over the memory.
std::string toFitSweepOptions(const Settings &settings,
                              const baechi::placement::Graph &graph,
                              const baechi::placement::PlaceOptions &place,
                              baechi::placement::FitSweepOptions &options);

/// An error when a file that is asked for cannot be written where it should
/// be: better said before a long search than after it.
std::string checkOutputs(const Settings &settings);

#endif // BAECHI_TOOLS_BAECHI_PLACE_OPTIONS_H
