//===- AlternativesFile.h - Graph files with alternatives -------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// As in Files.h: every function returns an error with its place, empty on
/// success. The functions there refuse graphs that state alternatives.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_PLACEMENT_IO_ALTERNATIVESFILE_H
#define BAECHI_PLACEMENT_IO_ALTERNATIVESFILE_H

#include "Baechi/Placement/Io/Files.h"
#include "Baechi/Placement/Model/Alternatives.h"

namespace baechi::placement {

std::string readAlternatives(const std::string &path, Graph &graph,
                             Alternatives &alternatives);
std::string parseAlternatives(std::string_view text, const std::string &name,
                              Graph &graph, Alternatives &alternatives);
std::string formatAlternatives(const Graph &graph,
                               const Alternatives &alternatives,
                               std::string &text);

/// The ways that a placement file was made in.
std::string readWays(const std::string &path, const Graph &graph,
                     const Alternatives &alternatives, Ways &ways);
std::string parseWays(std::string_view text, const std::string &name,
                      const Graph &graph, const Alternatives &alternatives,
                      Ways &ways);

/// What a placement file says of these ways.
std::vector<NamedAlternative> namesOf(const Alternatives &alternatives,
                                      const Ways &ways);

} // namespace baechi::placement

#endif // BAECHI_PLACEMENT_IO_ALTERNATIVESFILE_H
