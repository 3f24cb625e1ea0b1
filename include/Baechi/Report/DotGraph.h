//===- DotGraph.h - Graphs in Graphviz' language ----------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_REPORT_DOTGRAPH_H
#define BAECHI_REPORT_DOTGRAPH_H

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace baechi::report {

/// Writes a directed graph from above to below, of round boxes. Values of
/// attributes are quoted where that is needed; a line feed in a label begins a
/// line. Devices have colours of Graphviz' scheme set312.
class DotGraph {
public:
  using Attributes = std::vector<std::pair<std::string_view, std::string>>;

  /// \p attributes: the graph's own.
  DotGraph(std::string_view name, const Attributes &attributes);

  /// Of the device of that number; devices beyond the scheme's colours share.
  static std::string colourOf(size_t device);

  /// Nodes that follow are drawn in one frame.
  void beginCluster(int64_t id, const Attributes &attributes);
  void endCluster();
  void addNode(int64_t id, const Attributes &attributes);
  void addNode(std::string_view id, const Attributes &attributes);
  void addEdge(int64_t from, int64_t to, const Attributes &attributes);

  /// The text of the file; nothing can be added after it.
  std::string take();

private:
  void write(const Attributes &attributes);

  std::string text;
  bool isInCluster = false;
};

} // namespace baechi::report

#endif // BAECHI_REPORT_DOTGRAPH_H
