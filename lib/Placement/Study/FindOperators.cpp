//===- FindOperators.cpp - Operators by name ----------------------------*- C++
//-*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Model/Text.h"
#include "Baechi/Placement/Study/Explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fnmatch.h>
#include <numeric>

using namespace baechi::placement;

namespace {

/// What the user may have meant.
std::string meant(const Graph &graph, const std::string &pattern) {
  if (graph.ops.empty())
    return "the graph is empty";
  std::string plain;
  std::copy_if(pattern.begin(), pattern.end(), std::back_inserter(plain),
               [](char c) { return c != '*' && c != '?'; });
  size_t count = 0;
  const std::string *first = nullptr, *closest = nullptr;
  for (const Operator &op : graph.ops)
    if (!plain.empty() && op.name.find(plain) != std::string::npos) {
      ++count;
      if (!first)
        first = &op.name;
    }
  if (count)
    return fmt::format("{} {} it, such as '{}': use '*{}*'", count,
                       count == 1 ? "name contains" : "names contain", *first,
                       plain);
  // Half of it right, at least: anything is near to a name of one letter.
  size_t least = plain.size() / 2 + 1;
  for (const Operator &op : graph.ops)
    if (size_t distance = editDistance(plain, op.name, least);
        distance < least) {
      least = distance;
      closest = &op.name;
    }
  if (!closest) {
    // The first ones are a program's arguments.
    constexpr size_t most = 8;
    size_t shown = std::min(most, graph.ops.size());
    std::string names;
    for (size_t i = 0; i < shown; ++i)
      names += fmt::format("{}'{}'", i ? ", " : "", graph.ops[i].name);
    if (shown < graph.ops.size())
      names += fmt::format(", … ({} in all)", graph.ops.size());
    return "no name is like it; there are " + names;
  }
  return fmt::format("did you mean '{}'?", *closest);
}

} // namespace

std::string baechi::placement::findOperators(const Graph &graph,
                                             const std::string &pattern,
                                             std::vector<int32_t> &ops) {
  ops.clear();
  auto collect = [&](auto matches) {
    for (size_t i = 0; i < graph.ops.size(); ++i)
      if (matches(graph.ops[i].name))
        ops.push_back(static_cast<int32_t>(i));
    return !ops.empty();
  };
  if (collect([&](const std::string &name) { return name == pattern; }))
    return "";
  int32_t id = 0;
  const char *end = pattern.data() + pattern.size();
  if (auto [last, error] = std::from_chars(pattern.data(), end, id);
      error == std::errc() && last == end) {
    if (id >= 0 && static_cast<size_t>(id) < graph.ops.size()) {
      ops.push_back(id);
      return "";
    }
    return fmt::format("there is no operator {}: the graph has {}", pattern,
                       graph.ops.size());
  }
  if (collect([&](const std::string &name) {
        return fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
      }))
    return "";
  return fmt::format("no operator is called '{}': {}", pattern,
                     meant(graph, pattern));
}
