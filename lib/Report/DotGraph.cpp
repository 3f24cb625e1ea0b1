//===- DotGraph.cpp - Graphviz' language ------------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Report/DotGraph.h"

#include <algorithm>

using namespace baechi::report;

/// A word stays as it is; within quotes, `&` would begin an HTML entity.
static std::string inQuotes(std::string_view value) {
  auto isOfWords = [](unsigned char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z');
  };
  if (!value.empty() && std::all_of(value.begin(), value.end(), isOfWords))
    return std::string(value);
  std::string result = "\"";
  for (char c : value) {
    if (c == '"' || c == '\\')
      result += '\\';
    if (c == '&')
      result += "&amp;";
    else if (c == '\n')
      result += "\\n";
    else if (static_cast<unsigned char>(c) < ' ')
      result += ' ';
    else
      result += c;
  }
  return result + '"';
}

DotGraph::DotGraph(std::string_view name, const Attributes &attributes) {
  text = "digraph " + std::string(name) +
         " {\n"
         "  rankdir=TB\n"
         "  fontname=\"Helvetica\"\n"
         "  node [shape=box, style=\"rounded,filled\", fillcolor=white, "
         "fontname=\"Helvetica\"]\n"
         "  edge [fontname=\"Helvetica\", fontsize=10]\n";
  for (const auto &[key, value] : attributes)
    text += "  " + std::string(key) + "=" + inQuotes(value) + "\n";
}

std::string DotGraph::colourOf(size_t device) {
  constexpr size_t colours = 12;
  return "/set312/" + std::to_string(1 + device % colours);
}

void DotGraph::beginCluster(int64_t id, const Attributes &attributes) {
  isInCluster = true;
  text += "  subgraph cluster_" + std::to_string(id) + " {\n";
  for (const auto &[key, value] : attributes)
    text += "    " + std::string(key) + "=" + inQuotes(value) + "\n";
}

void DotGraph::endCluster() {
  isInCluster = false;
  text += "  }\n";
}

void DotGraph::addNode(int64_t id, const Attributes &attributes) {
  addNode("n" + std::to_string(id), attributes);
}

void DotGraph::addNode(std::string_view id, const Attributes &attributes) {
  text += (isInCluster ? "    " : "  ") + inQuotes(id);
  write(attributes);
}

void DotGraph::addEdge(int64_t from, int64_t to, const Attributes &attributes) {
  text += "  n" + std::to_string(from) + " -> n" + std::to_string(to);
  write(attributes);
}

void DotGraph::write(const Attributes &attributes) {
  const char *before = " [";
  for (const auto &[key, value] : attributes) {
    text += before + std::string(key) + "=" + inQuotes(value);
    before = ", ";
  }
  text += attributes.empty() ? "\n" : "]\n";
}

std::string DotGraph::take() {
  text += "}\n";
  return std::move(text);
}
