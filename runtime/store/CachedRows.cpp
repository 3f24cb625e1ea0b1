//===- CachedRows.cpp - A process's rows, and what it may send --*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "store/CachedRows.h"

#include <algorithm>
#include <cmath>

using namespace baechi::store;

size_t Round::bytes() const {
  size_t sum = 0;
  for (const Candidate &row : rows)
    sum += row.bytes;
  return sum;
}

void baechi::store::checkRow(const std::vector<TableShape> &tables,
                             size_t table, size_t row) {
  if (table >= tables.size())
    throw StoreError("there is no table " + std::to_string(table) + " of " +
                     std::to_string(tables.size()));
  if (row >= tables[table].rows)
    throw StoreError("table '" + tables[table].name + "' has " +
                     std::to_string(tables[table].rows) + " rows, no row " +
                     std::to_string(row));
}

void baechi::store::addUpdate(CacheStripe &stripe, size_t at,
                              const Update &update, const float *numbers) {
  const TableShape &shape = update.shape;
  bool isGradient = shape.rule == UpdateRule::AdaptiveRevision;
  std::vector<float> whole;
  if (update.checked || isGradient) {
    whole.assign(update.width, 0.0f);
    std::copy_n(numbers, shape.width, whole.begin());
    if (update.checked)
      whole[numbersOfRow(shape) + size_t(update.worker)] = 1;
    numbers = whole.data();
  }
  double importance;
  if (isGradient) {
    importance = stripe.values.weigh(at, numbers, update.order);
    // The gradients that its first one knew of.
    if (!stripe.log.waits(at))
      std::copy_n(stripe.values.row(at) + shape.width, shape.width,
                  whole.begin() + int64_t(shape.width));
  } else {
    importance = stripe.values.add(at, numbers, update.order);
  }
  if (!std::isfinite(importance))
    throw StoreError(
        "worker " + std::to_string(update.worker) + " at clock " +
        std::to_string(update.clock) +
        " adds a number that is not finite to row " +
        std::to_string(update.row) + " of table '" + shape.name +
        "': take smaller steps, less staleness or a larger budget");
  stripe.log.add(at, numbers, importance, update.clock);
}

std::string baechi::store::textOfMissing(int worker, int64_t clock, size_t row,
                                         const TableShape &table,
                                         const std::string &missing) {
  return "worker " + std::to_string(worker) + " at clock " +
         std::to_string(clock) + " read row " + std::to_string(row) +
         " of table '" + table.name + "' without " + missing +
         "; this is a defect of the store";
}
