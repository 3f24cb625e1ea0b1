//===- SentRows.h - Rows of a store as a message ----------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_SENTROWS_H
#define BAECHI_RUNTIME_SENTROWS_H

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace baechi::store {

/// Sums of updates that go between a process elsewhere and the server.
struct SentRows {
  std::vector<uint32_t> tables, rows;
  std::vector<int64_t> clocks; ///< of each row's first update
  std::vector<float> numbers;  ///< of the first row, then of the next

  size_t size() const { return rows.size(); }
  /// A row whose numbers are written to the pointer that is returned.
  float *append(uint32_t table, uint32_t row, size_t width);

  /// As a message between processes of machines of one byte order.
  std::string text() const;
  /// Throws StoreError where it is none.
  static SentRows parse(std::string_view text);
};

} // namespace baechi::store

#endif // BAECHI_RUNTIME_SENTROWS_H
