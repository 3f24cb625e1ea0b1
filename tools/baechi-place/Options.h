//===- Options.h - Command line of baechi-place -----------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_TOOLS_BAECHI_PLACE_OPTIONS_H
#define BAECHI_TOOLS_BAECHI_PLACE_OPTIONS_H

#include "Baechi/Placement/Place.h"

#include <string>
#include <vector>

namespace CLI {
class App;
}

/// What was asked for, as it was written.
struct Settings {
  std::string graph, machine, placer = "msct", grouping = "all";
  std::string objective = "makespan", solver = "best", budget = "auto";
  double solverLimit = 40;
  std::string expert; ///< name patterns -> devices
  std::string given;  ///< a placement to judge and draw instead of finding one
  std::string output, report, timeline, dot;
  std::vector<std::string> explain; ///< names, numbers or patterns
  bool compare = false;
  std::vector<std::string> placers; ///< to compare; empty: all
};

void defineOptions(CLI::App &app, Settings &settings);

/// Turns the settings into options; returns an error, empty if none.
std::string toPlaceOptions(const Settings &settings,
                           baechi::placement::PlaceOptions &options);

/// An error when a file that is asked for cannot be written where it should
/// be: better said before a long search than after it.
std::string checkOutputs(const Settings &settings);

#endif // BAECHI_TOOLS_BAECHI_PLACE_OPTIONS_H
