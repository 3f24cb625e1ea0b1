//===- InstanceFile.cpp - Reads what baechi-choose is given -----*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "InstanceFile.h"
#include "Baechi/Placement/Io/Files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

using namespace baechi::placement;

std::string readInstance(const std::string &path, ChoiceProgram &program) {
  std::string text;
  if (std::string error = readTextFile(path, text); !error.empty())
    return error;
  return parseChoiceProgram(text, path, program);
}

std::string readChoice(const std::string &path, Choice &choice) {
  std::string text;
  if (std::string error = readTextFile(path, text); !error.empty())
    return error;
  nlohmann::json list = nlohmann::json::parse(text, nullptr, false);
  if (!list.is_array() || text.find('\0') != text.npos)
    return fmt::format("{}: it must be a list of integers", path);
  choice.clear();
  for (const nlohmann::json &value : list) {
    if (!value.is_number_integer() || value < 0 || value > 1'000'000)
      return fmt::format("{}: entry {} must be the number of a strategy, not "
                         "{}",
                         path, choice.size(), value.dump());
    choice.push_back(value.get<int32_t>());
  }
  return "";
}

std::string formatChoice(const Choice &choice) {
  return fmt::format("[{}]\n", fmt::join(choice, ", "));
}
