//===- SentRows.cpp - Rows of a store as a message --------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Runtime/SentRows.h"
#include "Baechi/Runtime/ParameterStore.h"

#include <cstring>

using namespace baechi::store;

namespace {

template <typename T>
void write(std::string &text, const std::vector<T> &values) {
  text.append(reinterpret_cast<const char *>(values.data()),
              values.size() * sizeof(T));
}

template <typename T>
void read(std::string_view &text, std::vector<T> &values, size_t count) {
  values.resize(count);
  if (count > 0) // no address is needed for nothing
    std::memcpy(values.data(), text.data(), count * sizeof(T));
  text.remove_prefix(count * sizeof(T));
}

constexpr size_t bytesOfRow = 2 * sizeof(uint32_t) + sizeof(int64_t);

} // namespace

float *SentRows::append(uint32_t table, uint32_t row, size_t width) {
  tables.push_back(table);
  rows.push_back(row);
  clocks.push_back(0);
  numbers.resize(numbers.size() + width);
  return numbers.data() + (numbers.size() - width);
}

std::string SentRows::text() const {
  std::string text;
  text.reserve(sizeof(uint64_t) + rows.size() * bytesOfRow +
               numbers.size() * sizeof(float));
  write(text, std::vector<uint64_t>{rows.size()});
  write(text, tables);
  write(text, rows);
  write(text, clocks);
  write(text, numbers);
  return text;
}

SentRows SentRows::parse(std::string_view text) {
  SentRows made;
  std::vector<uint64_t> count;
  bool fits = text.size() >= sizeof(uint64_t);
  if (fits) {
    read(text, count, 1);
    fits = count[0] <= text.size() / bytesOfRow &&
           (text.size() - count[0] * bytesOfRow) % sizeof(float) == 0;
  }
  if (!fits)
    throw StoreError("a message of a store's rows is not as long as it says: "
                     "use the same version of Baechi in all processes");
  read(text, made.tables, count[0]);
  read(text, made.rows, count[0]);
  read(text, made.clocks, count[0]);
  read(text, made.numbers, text.size() / sizeof(float));
  return made;
}
