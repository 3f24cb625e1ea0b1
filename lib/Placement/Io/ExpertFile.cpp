//===- ExpertFile.cpp - Placements by name ----------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Io/Files.h"
#include "Baechi/Placement/Model/PlaceOptions.h"
#include "Io/Pattern.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

using namespace baechi::placement;
using namespace baechi::placement::io;

namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r";
  size_t begin = text.find_first_not_of(blanks);
  if (begin == std::string_view::npos)
    return "";
  return text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

/// Reads one line that is neither empty nor a comment; returns an error.
std::string readRule(std::string_view line, const Machine &machine,
                     ExpertRule &rule) {
  // The last one: a pattern may hold the character.
  size_t equals = line.rfind('=');
  if (equals == std::string_view::npos)
    return "there is no '=': a line is PATTERN = DEVICE";
  rule.pattern = trimmed(line.substr(0, equals));
  rule.device = trimmed(line.substr(equals + 1));
  if (std::string error = Pattern(rule.pattern).error(); !error.empty())
    return error;
  std::vector<std::string> names;
  for (const Device &device : machine.devices)
    names.push_back(device.name);
  if (std::find(names.begin(), names.end(), rule.device) == names.end())
    return fmt::format("unknown device '{}': the devices are {}", rule.device,
                       fmt::join(names, ", "));
  return "";
}

} // namespace

std::string baechi::placement::parseExpert(std::string_view text,
                                           const std::string &name,
                                           const Machine &machine,
                                           std::vector<ExpertRule> &rules) {
  rules.clear();
  int number = 0;
  while (!text.empty()) {
    ++number;
    size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line.front() == '#')
      continue;
    ExpertRule rule;
    if (std::string error = readRule(line, machine, rule); !error.empty())
      return fmt::format("{}:{}: {}", name, number, error);
    rules.push_back(std::move(rule));
  }
  if (rules.empty())
    return fmt::format("{}: there is no rule: write lines PATTERN = DEVICE",
                       name);
  return "";
}

std::string baechi::placement::readExpert(const std::string &path,
                                          const Machine &machine,
                                          std::vector<ExpertRule> &rules) {
  std::string text;
  if (std::string error = readTextFile(path, text); !error.empty())
    return error;
  return parseExpert(text, path, machine, rules);
}
