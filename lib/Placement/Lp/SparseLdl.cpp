//===- SparseLdl.cpp - Multifrontal factors of symmetric systems ----------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lp/SparseLdl.h"
#include "Lp/DenseKernels.h"

#include <algorithm>
#include <cmath>

using namespace baechi::placement::lp;

namespace {

/// How far before they are used panels are fetched, which the processor does
/// not do by itself where it is to go backwards.
constexpr int32_t ahead = 768;

void fetch(const double *from, int32_t count) {
  for (int32_t i = 0; i < count; i += 8)
    __builtin_prefetch(from + i);
}

} // namespace

void SparseLdl::allocate() {
  matrix.assign(entryHigh.size() + 1, 0);
  panels.assign(panelSize + tileRows, 0);
  diagonal.assign(size, 0);
  stack.assign(stackSize, 0);
  int32_t widest = 0, tallest = 0;
  for (int32_t f = 0; f < numFronts; ++f) {
    widest = std::max(widest, pivots(f));
    tallest = std::max(tallest, height(f));
  }
  scratch.assign(static_cast<size_t>(widest + 16) * tileColumns, 0);
  permuted.assign(size, 0);
  gathered.assign(tallest, 0);
}

/// The columns of a front that is complete; its update of the parent is added
/// to \p below.
int32_t SparseLdl::eliminate(int32_t front, double *below) {
  constexpr int32_t block = 16;
  int32_t wide = pivots(front), tall = height(front), bad = 0;
  double *columns = panels.data() + panel[front];
  double *d = diagonal.data() + firstPivot[front];
  for (int32_t begin = 0; begin < wide; begin += block) {
    int32_t end = std::min(wide, begin + block);
    if (begin > 0)
      subtractProduct(columns + static_cast<size_t>(begin) * tall + begin, tall,
                      columns + begin, tall, tall - begin, end - begin, begin,
                      d, scratch.data());
    for (int32_t k = begin; k < end; ++k) {
      double *column = columns + static_cast<size_t>(k) * tall;
      for (int32_t j = begin; j < k; ++j)
        scratch[j - begin] = columns[static_cast<size_t>(j) * tall + k] * d[j];
      subtractColumns(column + k,
                      columns + static_cast<size_t>(begin) * tall + k, tall,
                      scratch.data(), k - begin, tall - k);
      bool positive = variable[firstPivot[front] + k] < numPositive;
      double pivot = column[k], inverse = 1 / pivot;
      if (!(positive ? pivot > 1e-300 : pivot < -1e-300)) {
        ++bad;
        pivot = positive ? 1e300 : -1e300;
        inverse = 0;
      }
      d[k] = pivot;
      column[k] = 1;
      for (int32_t i = k + 1; i < tall; ++i)
        column[i] *= inverse;
    }
  }
  if (int32_t left = tall - wide; left > 0)
    subtractProduct(below, left, columns + wide, tall, left, left, wide, d,
                    scratch.data());
  return bad;
}

/// The matrix's entries in the columns of a front.
void SparseLdl::fill(int32_t front) {
  double *columns = panels.data() + panel[front];
  int32_t wide = pivots(front), tall = height(front);
  for (int32_t k = 0; k < wide; ++k)
    std::fill(columns + static_cast<size_t>(k) * tall + k,
              columns + static_cast<size_t>(k + 1) * tall, 0.0);
  for (int32_t k = firstEntry[firstPivot[front]],
               end = firstEntry[firstPivot[front + 1]];
       k < end; ++k)
    columns[entryTarget[k]] = matrix[k];
}

int32_t SparseLdl::factor(std::span<const double> right) {
  int32_t bad = 0;
  for (int32_t p = 0; p < size; ++p)
    permuted[p] = right[variable[p]];
  // The stack holds the updates of fronts whose parent is still to come.
  size_t top = 0;
  std::vector<int32_t> waiting;
  for (int32_t f = 0; f < numFronts; ++f) {
    int32_t wide = pivots(f), tall = height(f);
    size_t left = tall - wide;
    double *below = stack.data() + top;
    for (size_t j = 0; j < left; ++j)
      std::fill(below + j * left + j, below + (j + 1) * left, 0.0);
    double *columns = panels.data() + panel[f];
    fill(f);
    size_t bottom = top;
    for (int32_t n = numChildren[f]; n > 0; --n) {
      int32_t child = waiting.back();
      waiting.pop_back();
      size_t count = height(child) - pivots(child), apart = count - 1;
      const int32_t *target = inParent.data() + firstRow[child] + pivots(child);
      while (apart > 0 && target[apart - 1] + 1 == target[apart])
        --apart;
      bottom -= count * count;
      const double *given = stack.data() + bottom;
      for (size_t j = 0; j < count; ++j, given += count) {
        int32_t column = target[j];
        double *into = column < wide
                           ? columns + static_cast<size_t>(column) * tall
                           : below + (column - wide) * left - wide;
        size_t i = j;
        for (; i < apart; ++i)
          into[target[i]] += given[i];
        // The last rows mostly follow each other there, too.
        for (double *next = into + target[count - 1] + 1 - count; i < count;
             ++i)
          next[i] += given[i];
      }
    }
    bad += eliminate(f, below);
    forward(f);
    if (left > 0) {
      if (bottom != top)
        for (size_t j = 0; j < left; ++j)
          std::copy(below + j * left + j, below + (j + 1) * left,
                    stack.data() + bottom + j * left + j);
      waiting.push_back(f);
      bottom += left * left;
    }
    top = bottom;
  }
  return bad;
}

/// Of a solution: the columns of a front, in the order in which they lie in
/// memory.
void SparseLdl::forward(int32_t front) {
  int32_t wide = pivots(front), tall = height(front);
  const double *columns = panels.data() + panel[front];
  const int32_t *row = rows.data() + firstRow[front];
  double *own = permuted.data() + firstPivot[front], *t = gathered.data();
  std::fill(t + wide, t + tall, 0.0);
  for (int32_t begin = 0; begin < wide; begin += 4) {
    int32_t end = std::min(wide, begin + 4);
    const double *first = columns + static_cast<size_t>(begin) * tall;
    for (int32_t k = begin; k < end; ++k) {
      const double *column = columns + static_cast<size_t>(k) * tall;
      fetch(column + ahead, tall);
      for (int32_t i = k + 1; i < wide; ++i)
        own[i] -= column[i] * own[k];
    }
    subtractColumns(t + wide, first + wide, tall, own + begin, end - begin,
                    tall - wide);
  }
  for (int32_t i = wide; i < tall; ++i)
    permuted[row[i]] += t[i];
}

void SparseLdl::backward(int32_t front) {
  int32_t wide = pivots(front), tall = height(front);
  const double *columns = panels.data() + panel[front];
  const int32_t *row = rows.data() + firstRow[front];
  double *t = gathered.data();
  for (int32_t i = 0; i < tall; ++i)
    t[i] = permuted[row[i]];
  for (int32_t k = wide; k-- > 0;) {
    const double *column = columns + static_cast<size_t>(k) * tall;
    fetch(column - ahead, tall);
    t[k] -= dot(column + k + 1, t + k + 1, tall - k - 1);
  }
  std::copy(t, t + wide, permuted.data() + firstPivot[front]);
}

void SparseLdl::solve(std::span<double> x) {
  for (int32_t p = 0; p < size; ++p)
    permuted[p] = x[variable[p]];
  for (int32_t f = 0; f < numFronts; ++f)
    forward(f);
  finish(x);
}

void SparseLdl::finish(std::span<double> x) {
  for (int32_t p = 0; p < size; ++p)
    permuted[p] /= diagonal[p];
  for (int32_t f = numFronts; f-- > 0;)
    backward(f);
  for (int32_t p = 0; p < size; ++p)
    x[variable[p]] = permuted[p];
}
