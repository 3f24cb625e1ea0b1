//===- StateRows.h - Arrays as rows of tables -------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_REPLICAS_STATEROWS_H
#define BAECHI_LIB_REPLICAS_STATEROWS_H

#include "Baechi/Replicas/ReplicaState.h"
#include "Baechi/Runtime/ParameterStore.h"

#include <algorithm>

namespace baechi::replicas {

/// Numbers of a row, which the store sends at once.
inline constexpr size_t widestRow = 1024;

inline size_t widthOf(const SharedArray &array) {
  return std::min(array.elements, widestRow);
}

inline size_t rowsOf(const SharedArray &array) {
  return (array.elements + widestRow - 1) / widestRow;
}

inline std::vector<store::TableShape>
tablesOf(const std::vector<SharedArray> &arrays) {
  std::vector<store::TableShape> tables;
  for (const SharedArray &array : arrays) {
    store::TableShape &table = tables.emplace_back(
        store::TableShape{array.name, rowsOf(array), widthOf(array)});
    if (array.revised) {
      table.rule = store::UpdateRule::AdaptiveRevision;
      table.step = *array.revised;
    }
  }
  return tables;
}

/// What is wrong, "" if nothing is.
template <typename Call> std::string guarded(Call &&call) {
  try {
    call();
    return "";
  } catch (const std::exception &error) {
    return error.what();
  }
}

/// Calls \p row with each row's number, where its elements are and how many;
/// the last row may have fewer.
template <typename Float, typename Row>
void forRows(const SharedArray &array, Float *values, Row &&row) {
  size_t width = widthOf(array), whole = array.elements / width;
  for (size_t i = 0; i < whole; ++i)
    row(i, values + i * width, width);
  if (size_t rest = array.elements - whole * width)
    row(whole, values + whole * width, rest);
}

/// Takes an array's values from whole rows that \p get gives.
template <typename Get>
void getRows(const SharedArray &array, std::vector<float> &values, Get &&get) {
  values.resize(array.elements);
  std::vector<float> whole(widthOf(array));
  forRows(array, values.data(), [&](size_t row, float *to, size_t count) {
    get(row, whole.data());
    std::copy_n(whole.begin(), count, to);
  });
}

/// Gives whole rows to \p set.
template <typename Set>
void setRows(const SharedArray &array, const std::vector<float> &values,
             Set &&set) {
  std::vector<float> whole(widthOf(array));
  forRows(
      array, values.data(), [&](size_t row, const float *from, size_t count) {
        std::fill(std::copy_n(from, count, whole.begin()), whole.end(), 0.0f);
        set(row, whole.data());
      });
}

/// What one of \p replicas changed.
inline std::vector<float> changeOf(const SharedArray &array,
                                   const std::vector<float> &before,
                                   const std::vector<float> &after,
                                   int replicas) {
  std::vector<float> change(after.size());
  // A step goes against its gradient.
  float share = float(array.revised ? -replicas : replicas);
  std::transform(after.begin(), after.end(), before.begin(), change.begin(),
                 [&](float next, float seen) { return (next - seen) / share; });
  return change;
}

} // namespace baechi::replicas

#endif // BAECHI_LIB_REPLICAS_STATEROWS_H
