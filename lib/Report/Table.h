//===- Table.h - Aligned columns --------------------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_REPORT_TABLE_H
#define BAECHI_LIB_REPORT_TABLE_H

#include <string>
#include <vector>

namespace baechi::report {

/// A table of texts, each column as wide as it needs.
class Table {
public:
  enum Side { Right, Left };
  struct Column {
    std::string title;
    Side side = Right;
  };

  explicit Table(std::vector<Column> columns) : columns(std::move(columns)) {}
  /// One text a column.
  void add(std::vector<std::string> row) { rows.push_back(std::move(row)); }
  std::string text() const;

private:
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;
};

} // namespace baechi::report

#endif // BAECHI_LIB_REPORT_TABLE_H
