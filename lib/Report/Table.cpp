//===- Table.cpp - Aligned columns ------------------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Table.h"

#include <fmt/format.h>

#include <algorithm>

using namespace baechi::report;

std::string Table::text() const {
  std::vector<size_t> width;
  for (size_t c = 0; c < columns.size(); ++c) {
    width.push_back(columns[c].title.size());
    for (const auto &row : rows)
      width.back() = std::max(width.back(), row[c].size());
  }
  std::string text;
  auto line = [&](auto cell) {
    std::string row;
    for (size_t c = 0; c < columns.size(); ++c)
      row += columns[c].side == Left
                 ? fmt::format("{:<{}}  ", cell(c), width[c])
                 : fmt::format("{:>{}}  ", cell(c), width[c]);
    row.erase(row.find_last_not_of(' ') + 1);
    text += row + "\n";
  };
  line([&](size_t c) -> const std::string & { return columns[c].title; });
  for (const auto &row : rows)
    line([&](size_t c) -> const std::string & { return row[c]; });
  return text;
}
