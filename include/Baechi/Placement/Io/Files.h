//===- Files.h - Graph, machine and placement files -------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The files of docs/formats.md, JSON but for an expert's rules. A path that
/// ends in ".xz" or ".gz" is compressed.
///
/// Every function returns an error, empty on success, that names the file, the
/// place in it (a JSON path, with the operator's name where there is one) and
/// the mend. None throws. What a file means, beyond its form, is for `check`
/// and `verify` to judge.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_PLACEMENT_IO_FILES_H
#define BAECHI_PLACEMENT_IO_FILES_H

#include "Baechi/Placement/Model/Placement.h"

#include <string>
#include <string_view>
#include <vector>

namespace baechi::placement {

struct ExpertRule; // PlaceOptions.h

/// The alternative in which an operator of a graph file was placed.
struct NamedAlternative {
  int32_t op = 0;
  std::string alternative;
};

/// What a placement file says beside the placement itself.
struct PlacementInfo {
  std::string algorithm;
  int64_t lowerBoundNs = 0;
  /// Operators that were not placed as they are; ids of the placement are then
  /// those of the graph in pieces.
  std::vector<NamedAlternative> choices = {};
  /// The placement is of one of so many replicas, each of so many devices
  /// (Nodes/Replica.h); 0 devices: of the whole graph on the whole machine.
  int32_t replicas = 1, devices = 0;
};

/// Where a placement file puts one operator.
struct NamedDevice {
  std::string name, device;
};

/// Whether readTextFile decompresses it, by its name.
bool isCompressed(std::string_view path);
/// The text of a file, decompressed when its name ends in ".xz" or ".gz".
std::string readTextFile(const std::string &path, std::string &text);
/// Writes a file, compressed by its name as well, whole or not at all
/// (Store.h).
std::string writeTextFile(const std::string &path, std::string_view text);

std::string readGraph(const std::string &path, Graph &graph);
std::string readMachine(const std::string &path, Machine &machine);
/// Reads the machine that \p spec names: a short form `KIND:N[@SIZE]`
/// (`host:2`, `host:4@2GiB`, see parseBytes) or the path of a machine file.
/// Without a SIZE a device gets an equal share of this machine's memory. A
/// short form's links are assumed, not measured.
std::string readMachineSpec(const std::string &spec, Machine &machine);
/// Reads a placement of \p problem, whose devices it names.
std::string readPlacement(const std::string &path, const Problem &problem,
                          Placement &placement, PlacementInfo *info = nullptr);

/// Of what else a placement file says, only which replica it is of: what its
/// problem is follows from that.
std::string readReplicas(const std::string &path, PlacementInfo &info);

/// Reads where a placement puts operators by their names alone, for a program
/// that is not quite the one that was placed. A file without names is an error.
std::string readPlacementByName(const std::string &path,
                                std::vector<NamedDevice> &operators);

/// Reads an expert's rules for the devices of \p machine.
std::string readExpert(const std::string &path, const Machine &machine,
                       std::vector<ExpertRule> &rules);

/// The same from a text; \p name stands for the file in errors.
std::string parseGraph(std::string_view text, const std::string &name,
                       Graph &graph);
std::string parseMachine(std::string_view text, const std::string &name,
                         Machine &machine);
std::string parsePlacement(std::string_view text, const std::string &name,
                           const Problem &problem, Placement &placement,
                           PlacementInfo *info = nullptr);
std::string parsePlacementByName(std::string_view text, const std::string &name,
                                 std::vector<NamedDevice> &operators);

std::string parseExpert(std::string_view text, const std::string &name,
                        const Machine &machine, std::vector<ExpertRule> &rules);

std::string writeGraph(const std::string &path, const Graph &graph);
std::string writeMachine(const std::string &path, const Machine &machine);
std::string writePlacement(const std::string &path, const Problem &problem,
                           const Placement &placement,
                           const PlacementInfo &info);

/// The text of such a file.
std::string formatGraph(const Graph &graph, std::string &text);
std::string formatMachine(const Machine &machine, std::string &text);
std::string formatPlacement(const Problem &problem, const Placement &placement,
                            const PlacementInfo &info, std::string &text);

/// The file name of a link model ("sequential"), and back.
std::string_view linkModelName(LinkModel model);
std::optional<LinkModel> linkModelNamed(std::string_view name);

} // namespace baechi::placement

#endif // BAECHI_PLACEMENT_IO_FILES_H
