//===- SparseLdlSymbolic.cpp - Order, fronts and rows ---------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lp/SparseLdl.h"

#include <amd.h>

#include <algorithm>
#include <stdexcept>

using namespace baechi::placement::lp;

/// The matrix in the order of elimination, and its elimination tree (Liu, "The
/// Role of Elimination Trees in Sparse Factorization", SIAM J. Matrix Anal.
/// Appl. 11(1), 1990).
struct SparseLdl::Tree {
  std::vector<int32_t> firstUpper, upper; ///< per column the rows above
  std::vector<int32_t> parent;

  void fill(int32_t n, const std::vector<int32_t> &position,
            const std::vector<std::pair<int32_t, int32_t>> &entries) {
    firstUpper.assign(n + 1, 0);
    auto column = [&](const auto &entry) {
      return std::max(position[entry.first], position[entry.second]);
    };
    for (const auto &entry : entries)
      ++firstUpper[column(entry) + 1];
    for (int32_t j = 0; j < n; ++j)
      firstUpper[j + 1] += firstUpper[j];
    upper.resize(entries.size());
    std::vector<int32_t> next(firstUpper.begin(), firstUpper.end() - 1);
    for (const auto &entry : entries)
      upper[next[column(entry)]++] =
          std::min(position[entry.first], position[entry.second]);
  }
  void findParents(int32_t n) {
    parent.assign(n, -1);
    std::vector<int32_t> ancestor(n, -1);
    for (int32_t j = 0; j < n; ++j)
      for (int32_t k = firstUpper[j]; k < firstUpper[j + 1]; ++k)
        for (int32_t i = upper[k]; i >= 0 && i < j;) {
          int32_t next = ancestor[i];
          ancestor[i] = j;
          if (next < 0)
            parent[i] = j;
          i = next;
        }
  }
  std::vector<int32_t> postorder() const;
  std::vector<int32_t> columnCounts() const;
};

std::vector<int32_t> SparseLdl::Tree::postorder() const {
  auto n = static_cast<int32_t>(parent.size());
  std::vector<int32_t> firstChild(n, -1), sibling(n, -1), order, path;
  for (int32_t i = n; i-- > 0;)
    if (parent[i] >= 0) {
      sibling[i] = firstChild[parent[i]];
      firstChild[parent[i]] = i;
    }
  order.reserve(n);
  for (int32_t root = 0; root < n; ++root) {
    if (parent[root] >= 0)
      continue;
    path.push_back(root);
    while (!path.empty()) {
      int32_t i = path.back(), child = firstChild[i];
      if (child < 0) {
        order.push_back(i);
        path.pop_back();
      } else {
        firstChild[i] = sibling[child];
        path.push_back(child);
      }
    }
  }
  return order;
}

/// Entries of every column of L: the rows of column i are the j whose row
/// subtree contains i.
std::vector<int32_t> SparseLdl::Tree::columnCounts() const {
  auto n = static_cast<int32_t>(parent.size());
  std::vector<int32_t> count(n, 1), seen(n, -1);
  for (int32_t j = 0; j < n; ++j) {
    seen[j] = j;
    for (int32_t k = firstUpper[j]; k < firstUpper[j + 1]; ++k)
      for (int32_t i = upper[k]; seen[i] != j; i = parent[i]) {
        ++count[i];
        seen[i] = j;
      }
  }
  return count;
}

SparseLdl::SparseLdl(int32_t size, int32_t numPositive,
                     std::vector<std::pair<int32_t, int32_t>> entries)
    : size(size), numPositive(numPositive) {
  // Without duplicates, by rows.
  std::vector<int32_t> first(size + 1, 0), column(entries.size());
  for (const auto &[i, j] : entries)
    ++first[i + 1];
  for (int32_t i = 0; i < size; ++i)
    first[i + 1] += first[i];
  std::vector<int32_t> next(first.begin(), first.end() - 1);
  for (const auto &[i, j] : entries)
    column[next[i]++] = j;
  entries.clear();
  std::vector<int32_t> seen(size, -1);
  for (int32_t i = 0; i < size; ++i)
    for (int32_t k = first[i]; k < first[i + 1]; ++k)
      if (seen[column[k]] != i) {
        seen[column[k]] = i;
        entries.emplace_back(i, column[k]);
      }
  order(entries);
  Tree tree;
  tree.fill(size, position, entries);
  tree.findParents(size);
  std::vector<int32_t> post = tree.postorder(), previous = variable;
  for (int32_t p = 0; p < size; ++p) {
    variable[p] = previous[post[p]];
    position[variable[p]] = p;
  }
  tree.fill(size, position, entries);
  tree.findParents(size);
  findFronts(tree, tree.columnCounts());
  findRows(tree);
}

void SparseLdl::order(const std::vector<std::pair<int32_t, int32_t>> &entries) {
  std::vector<int32_t> first(size + 1, 0), column;
  column.reserve(entries.size() + 1); // AMD takes no null pointer
  for (const auto &[i, j] : entries) {
    ++first[i + 1];
    column.push_back(j);
  }
  for (int32_t i = 0; i < size; ++i)
    first[i + 1] += first[i];
  variable.resize(size);
  position.resize(size);
  int status = amd_order(size, first.data(), column.data(), variable.data(),
                         nullptr, nullptr);
  if (status != AMD_OK && status != AMD_OK_BUT_JUMBLED)
    throw std::runtime_error("AMD cannot order the linear program's system");
  for (int32_t p = 0; p < size; ++p)
    position[variable[p]] = p;
}

/// Supernodes: chains of the tree whose columns share their rows, or nearly
/// (a few zeros cost less than a front of its own).
void SparseLdl::findFronts(const Tree &tree,
                           const std::vector<int32_t> &count) {
  std::vector<int32_t> children(size, 0);
  for (int32_t i = 0; i < size; ++i)
    if (tree.parent[i] >= 0)
      ++children[tree.parent[i]];
  struct Chain {
    int64_t begin, end;
    int64_t zeros; ///< stored in the front for nothing
  };
  std::vector<Chain> chains;
  auto join = [&](Chain &low, const Chain &high) {
    if (tree.parent[low.end - 1] != high.begin)
      return false;
    int64_t pivots = high.end - low.begin;
    int64_t below = count[high.end - 1] - 1;
    int64_t lowHeight = high.end - high.begin + below;
    int64_t zeros =
        low.zeros + high.zeros +
        (low.end - low.begin) * (lowHeight - (count[low.end - 1] - 1));
    int64_t area = pivots * (pivots + below);
    if (zeros != 0 && !(pivots <= 4 && zeros <= 8) &&
        !(pivots <= 16 && zeros * 5 <= area) && zeros * 12 > area)
      return false;
    low.end = high.end;
    low.zeros = zeros;
    return true;
  };
  for (int32_t i = 0; i < size;) {
    int32_t end = i + 1;
    while (end < size && tree.parent[end - 1] == end &&
           count[end - 1] == count[end] + 1 && children[end] == 1)
      ++end;
    chains.push_back({i, end, 0});
    i = end;
    while (chains.size() >= 2 && join(chains[chains.size() - 2], chains.back()))
      chains.pop_back();
  }
  numFronts = static_cast<int32_t>(chains.size());
  frontOf.resize(size);
  for (int32_t f = 0; f < numFronts; ++f) {
    firstPivot.push_back(static_cast<int32_t>(chains[f].begin));
    for (int64_t i = chains[f].begin; i < chains[f].end; ++i)
      frontOf[i] = f;
  }
  firstPivot.push_back(size);
}

/// The rows of every front: its pivots, its columns' entries below them, and
/// what its children leave over.
void SparseLdl::findRows(const Tree &tree) {
  std::vector<int32_t> firstLower(size + 1, 0), lower(tree.upper.size());
  for (int32_t i : tree.upper)
    ++firstLower[i + 1];
  for (int32_t i = 0; i < size; ++i)
    firstLower[i + 1] += firstLower[i];
  std::vector<int32_t> next(firstLower.begin(), firstLower.end() - 1);
  for (int32_t j = 0; j < size; ++j)
    for (int32_t k = tree.firstUpper[j]; k < tree.firstUpper[j + 1]; ++k)
      lower[next[tree.upper[k]]++] = j;

  parent.assign(numFronts, -1);
  numChildren.assign(numFronts, 0);
  std::vector<int32_t> firstChild(numFronts, -1), sibling(numFronts, -1);
  std::vector<int32_t> seen(size, -1);
  firstRow.push_back(0);
  panel.push_back(0);
  size_t waiting = 0;
  for (int32_t f = 0; f < numFronts; ++f) {
    int32_t begin = firstPivot[f], end = firstPivot[f + 1];
    auto add = [&](int32_t row) {
      if (row >= begin && seen[row] != f) {
        seen[row] = f;
        rows.push_back(row);
      }
    };
    for (int32_t i = begin; i < end; ++i)
      add(i);
    for (int32_t i = begin; i < end; ++i)
      for (int32_t k = firstLower[i]; k < firstLower[i + 1]; ++k)
        add(lower[k]);
    for (int32_t child = firstChild[f]; child >= 0; child = sibling[child])
      for (size_t k = firstRow[child] + pivots(child); k < firstRow[child + 1];
           ++k)
        add(rows[k]);
    std::sort(rows.begin() + static_cast<ptrdiff_t>(firstRow[f]), rows.end());
    firstRow.push_back(rows.size());
    size_t tall = rows.size() - firstRow[f], wide = end - begin;
    if (tall > wide) {
      int32_t p = parent[f] = frontOf[rows[firstRow[f] + wide]];
      ++numChildren[p];
      sibling[f] = firstChild[p];
      firstChild[p] = f;
    }
    for (size_t k = 0; k < wide; ++k)
      flops += static_cast<double>((tall - k) * (tall - k)) / 2;
    panel.push_back(panel[f] + tall * wide);
    // A front's update is written above its children's, then takes their place.
    size_t update = (tall - wide) * (tall - wide);
    stackSize = std::max(stackSize, waiting + update);
    for (int32_t child = firstChild[f]; child >= 0; child = sibling[child]) {
      size_t left = height(child) - pivots(child);
      waiting -= left * left;
    }
    waiting += update;
  }
  panelSize = panel[numFronts];
  inParent.assign(rows.size(), -1);
  for (int32_t f = 0; f < numFronts; ++f) {
    if (parent[f] < 0)
      continue;
    size_t k = firstRow[parent[f]], base = k;
    for (size_t row = firstRow[f] + pivots(f); row < firstRow[f + 1]; ++row) {
      while (rows[k] != rows[row])
        ++k;
      inParent[row] = static_cast<int32_t>(k - base);
    }
  }
  findEntries(firstLower, lower);
}

void SparseLdl::findEntries(const std::vector<int32_t> &firstLower,
                            const std::vector<int32_t> &lower) {
  firstEntry.push_back(0);
  for (int32_t f = 0; f < numFronts; ++f) {
    const int32_t *row = rows.data() + firstRow[f];
    int32_t tall = height(f);
    for (int32_t low = firstPivot[f]; low < firstPivot[f + 1]; ++low) {
      int32_t k = low - firstPivot[f], column = k * tall;
      entryHigh.push_back(low);
      entryTarget.push_back(column + k);
      for (int32_t e = firstLower[low]; e < firstLower[low + 1]; ++e) {
        while (row[k] != lower[e])
          ++k;
        entryHigh.push_back(lower[e]);
        entryTarget.push_back(column + k);
      }
      firstEntry.push_back(static_cast<int32_t>(entryHigh.size()));
    }
  }
}

int32_t SparseLdl::slot(int32_t i, int32_t j) const {
  int32_t low = std::min(position[i], position[j]);
  int32_t high = std::max(position[i], position[j]);
  return static_cast<int32_t>(
      std::lower_bound(entryHigh.begin() + firstEntry[low],
                       entryHigh.begin() + firstEntry[low + 1], high) -
      entryHigh.begin());
}
