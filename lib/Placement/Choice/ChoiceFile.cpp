//===- ChoiceFile.cpp - Reads the contest's instances -----------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The format of github.com/google/iopddl:
///
///   {"problem": {"name": "...", "usage_limit": 50,
///     "nodes": {"intervals": [[30, 70], ...], "costs": [[15], ...],
///               "usages": [[10], ...]},
///     "edges": {"nodes": [[0, 1], ...], "costs": [[30, 40], ...]}}}
///
/// Files have tens of megabytes of numbers, so they are read as they pass.
///
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Choice/SolveChoice.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <limits>

using namespace baechi::placement;

namespace {

using Lists = std::vector<std::vector<int64_t>>;

/// The lists of a file, as their paths name them.
struct Content {
  std::string name;
  std::optional<int64_t> limit;
  Lists intervals, costs, usages, ends, edgeCosts;
};

/// Takes what nlohmann's parser meets: objects up to the lists, lists of lists
/// of integers below them.
class Receiver : public nlohmann::json_sax<nlohmann::json> {
public:
  explicit Receiver(Content &content) : content(content) {}

  std::string error;

  bool null() override { return fail("null is of no use here"); }
  bool boolean(bool) override { return fail("a boolean is of no use here"); }
  bool number_integer(int64_t value) override { return number(value); }
  bool number_unsigned(uint64_t value) override {
    if (value > uint64_t(std::numeric_limits<int64_t>::max()))
      return fail(fmt::format("{} does not fit 64 bits", value));
    return number(static_cast<int64_t>(value));
  }
  bool number_float(double, const std::string &token) override {
    return fail(fmt::format("must be an integer, not {}", token));
  }
  bool string(std::string &value) override {
    if (path() != "problem.name")
      return fail("a string is of no use here");
    content.name = value;
    return true;
  }
  bool binary(nlohmann::json::binary_t &) override { return false; }
  bool key(std::string &value) override {
    keys.back() = value;
    std::string at = path();
    static const char *const known[] = {
        "problem",
        "problem.name",
        "problem.usage_limit",
        "problem.nodes",
        "problem.nodes.intervals",
        "problem.nodes.costs",
        "problem.nodes.usages",
        "problem.edges",
        "problem.edges.nodes",
        "problem.edges.costs",
    };
    if (std::find(std::begin(known), std::end(known), at) == std::end(known))
      return fail("unknown member");
    if (std::find(seen.begin(), seen.end(), at) != seen.end())
      return fail("stands twice: keep one");
    seen.push_back(std::move(at));
    return true;
  }
  bool start_object(size_t) override {
    bool mayBe = keys.empty() || path() == "problem" ||
                 path() == "problem.nodes" || path() == "problem.edges";
    if (depth > 0 || !mayBe)
      return fail("an object is of no use here");
    keys.emplace_back();
    return true;
  }
  bool end_object() override {
    keys.pop_back();
    return true;
  }
  bool start_array(size_t) override {
    if (depth == 0 && !(lists = listsHere()))
      return fail("a list is of no use here");
    if (++depth > 2)
      return fail("lists are nested too deeply");
    if (depth == 2)
      lists->emplace_back();
    return true;
  }
  bool end_array() override {
    --depth;
    return true;
  }
  bool parse_error(size_t, const std::string &,
                   const nlohmann::json::exception &e) override {
    error = fmt::format("not valid JSON: {}", e.what());
    return false;
  }

private:
  std::string path() const { return fmt::format("{}", fmt::join(keys, ".")); }
  Lists *listsHere() {
    std::string at = path();
    return at == "problem.nodes.intervals" ? &content.intervals
           : at == "problem.nodes.costs"   ? &content.costs
           : at == "problem.nodes.usages"  ? &content.usages
           : at == "problem.edges.nodes"   ? &content.ends
           : at == "problem.edges.costs"   ? &content.edgeCosts
                                           : nullptr;
  }
  bool number(int64_t value) {
    if (depth == 2) {
      lists->back().push_back(value);
      return true;
    }
    if (depth != 0 || path() != "problem.usage_limit")
      return fail("a number is of no use here");
    content.limit = value;
    return true;
  }
  bool fail(const std::string &what) {
    error = path();
    if (depth > 0 && lists && !lists->empty())
      error += fmt::format("[{}]", lists->size() - 1);
    error += (error.empty() ? "" : ": ") + what;
    return false;
  }

  Content &content;
  std::vector<std::string> keys; ///< of the objects around
  std::vector<std::string> seen;
  Lists *lists = nullptr;
  int depth = 0; ///< of lists
};

std::string expectPairs(const Lists &lists, const char *what) {
  for (size_t i = 0; i < lists.size(); ++i)
    if (lists[i].size() != 2)
      return fmt::format("{}[{}] has {} numbers: it needs two", what, i,
                         lists[i].size());
  return "";
}

std::string expectCount(size_t actual, size_t expected, const char *what,
                        const char *other) {
  return actual == expected ? ""
                            : fmt::format("{} has {} lists, and {} has {}",
                                          what, actual, other, expected);
}

std::string toNodes(const Content &content, ChoiceProgram &program) {
  std::string error =
      expectCount(content.costs.size(), content.intervals.size(),
                  "problem.nodes.costs", "problem.nodes.intervals");
  if (error.empty())
    error = expectCount(content.usages.size(), content.intervals.size(),
                        "problem.nodes.usages", "problem.nodes.intervals");
  if (error.empty())
    error = expectPairs(content.intervals, "problem.nodes.intervals");
  if (!error.empty())
    return error;
  program.nodes.resize(content.intervals.size());
  for (size_t i = 0; i < program.nodes.size(); ++i) {
    ChoiceNode &node = program.nodes[i];
    node.begin = content.intervals[i][0];
    node.end = content.intervals[i][1];
    const std::vector<int64_t> &costs = content.costs[i];
    const std::vector<int64_t> &usages = content.usages[i];
    if (costs.size() != usages.size())
      return fmt::format("node {} has {} costs and {} usages: give it as many "
                         "of both",
                         i, costs.size(), usages.size());
    node.strategies.resize(costs.size());
    for (size_t s = 0; s < costs.size(); ++s)
      node.strategies[s] = {costs[s], usages[s]};
  }
  return "";
}

std::string toEdges(Content &content, ChoiceProgram &program) {
  std::string error = expectCount(content.edgeCosts.size(), content.ends.size(),
                                  "problem.edges.costs", "problem.edges.nodes");
  if (error.empty())
    error = expectPairs(content.ends, "problem.edges.nodes");
  if (!error.empty())
    return error;
  program.edges.resize(content.ends.size());
  for (size_t e = 0; e < program.edges.size(); ++e) {
    for (int64_t end : content.ends[e])
      if (end < 0 || end >= static_cast<int64_t>(program.nodes.size()))
        return fmt::format("edge {} names node {}, but there are {} nodes", e,
                           end, program.nodes.size());
    program.edges[e].first = static_cast<int32_t>(content.ends[e][0]);
    program.edges[e].second = static_cast<int32_t>(content.ends[e][1]);
    program.edges[e].costs = std::move(content.edgeCosts[e]);
  }
  return "";
}

} // namespace

std::string baechi::placement::parseChoiceProgram(std::string_view text,
                                                  const std::string &name,
                                                  ChoiceProgram &program) {
  Content content;
  Receiver receiver(content);
  program = {};
  std::string error;
  if (size_t at = text.find('\0'); at != text.npos)
    error = fmt::format("byte {} is zero, which no text has", at);
  else if (!nlohmann::json::sax_parse(text.begin(), text.end(), &receiver))
    error = receiver.error;
  else
    error = toNodes(content, program);
  program.name = content.name;
  program.usageLimit = content.limit;
  if (error.empty())
    error = toEdges(content, program);
  if (error.empty())
    error = checkChoiceProgram(program);
  return error.empty() ? "" : fmt::format("{}: {}", name, error);
}
