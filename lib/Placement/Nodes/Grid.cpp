//===- Grid.cpp - Plans that a person writes --------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Nodes/PlanNodes.h"

#include <fmt/format.h>

#include <charconv>

using namespace baechi::placement;

std::string baechi::placement::parseGrid(std::string_view text, Grid &grid) {
  auto wrong = [&] {
    return fmt::format("'{}' is no grid: write WAY:STAGES:REPLICAS, such as "
                       "tensor/8:4:2 or whole:8:1",
                       text);
  };
  size_t second = text.rfind(':');
  size_t first = second == std::string_view::npos || second == 0
                     ? std::string_view::npos
                     : text.rfind(':', second - 1);
  if (first == std::string_view::npos)
    return wrong();
  grid.way = text.substr(0, first);
  if (grid.way == "whole")
    grid.way.clear();
  auto number = [&](std::string_view word, int32_t &value) {
    auto [end, error] =
        std::from_chars(word.data(), word.data() + word.size(), value);
    return error == std::errc() && end == word.data() + word.size() &&
           value >= 1 && value <= 4096;
  };
  bool isGood =
      number(text.substr(first + 1, second - first - 1), grid.stages) &&
      number(text.substr(second + 1), grid.replicas);
  return isGood ? "" : wrong();
}
