//===- SparseLdl.h - Multifrontal factors of symmetric systems --*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// L D L^T factors of sparse symmetric quasi-definite matrices without
/// pivoting: any symmetric order works (Vanderbei, "Symmetric Quasidefinite
/// Matrices", SIAM J. Optim. 5(1), 1995), so the order is chosen once, for
/// little fill (approximate minimum degree, from SuiteSparse's AMD). The
/// numeric part is multifrontal (Duff & Reid, ACM TOMS 9(3), 1983).
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_LP_SPARSELDL_H
#define BAECHI_LIB_PLACEMENT_LP_SPARSELDL_H

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace baechi::placement::lp {

class SparseLdl {
public:
  /// \p entries: positions (i, j) with i < j of what is not zero off the
  /// diagonal; may repeat. The first \p numPositive pivots (in the caller's
  /// numbering) are positive, the others negative.
  SparseLdl(int32_t size, int32_t numPositive,
            std::vector<std::pair<int32_t, int32_t>> entries);

  /// Multiplications of one factorisation; of one solution.
  double factorWork() const { return flops; }
  double solveWork() const { return 2.0 * static_cast<double>(panelSize); }

  /// Makes room for the numbers; before, only the work is known.
  void allocate();

  /// Where the entry (i, j) of the matrix is added in `values()`. Constant
  /// over all factorisations.
  int32_t slot(int32_t i, int32_t j) const;
  /// A slot that is no entry's.
  int32_t noSlot() const { return static_cast<int32_t>(entryHigh.size()); }
  /// The matrix. Its entries alone: the panels are many times as large, and
  /// each is filled when its front's turn comes.
  std::vector<double> &values() { return matrix; }

  /// Factors the matrix. A pivot of the wrong sign or none, a sign of lost
  /// digits, becomes infinite, which takes its variable out. Returns how many.
  /// Solves for \p right half-way, while the panels are at hand.
  int32_t factor(std::span<const double> right);
  /// The other half.
  void finish(std::span<double> x);
  /// Solves for a right-hand side in the caller's numbering, in place.
  void solve(std::span<double> x);

private:
  struct Tree;
  void order(const std::vector<std::pair<int32_t, int32_t>> &entries);
  void findFronts(const Tree &tree, const std::vector<int32_t> &count);
  void findRows(const Tree &tree);
  void findEntries(const std::vector<int32_t> &firstLower,
                   const std::vector<int32_t> &lower);
  void fill(int32_t front);
  int32_t eliminate(int32_t front, double *update);
  void forward(int32_t front);
  void backward(int32_t front);
  int32_t pivots(int32_t front) const {
    return firstPivot[front + 1] - firstPivot[front];
  }
  int32_t height(int32_t front) const {
    return static_cast<int32_t>(firstRow[front + 1] - firstRow[front]);
  }

  int32_t size;
  int32_t numPositive;
  std::vector<int32_t> position; ///< variable -> place in the order
  std::vector<int32_t> variable; ///< the inverse
  // Fronts (supernodes), children before parents: consecutive pivots that
  // share their rows. A front's panel is height x pivots, by columns.
  int32_t numFronts = 0;
  std::vector<int32_t> firstPivot; ///< per front, and the end
  std::vector<int32_t> frontOf;    ///< per place
  std::vector<int32_t> parent;     ///< per front; -1: a root
  std::vector<int32_t> numChildren;
  std::vector<size_t> firstRow;  ///< per front, into `rows`
  std::vector<int32_t> rows;     ///< places, the front's pivots first
  std::vector<int32_t> inParent; ///< per row below the pivots: its row there
  std::vector<size_t> panel;     ///< per front, into `panels`
  size_t panelSize = 0;
  size_t stackSize = 0; ///< of updates that wait for their parents
  double flops = 0;
  // Entries of the matrix by columns, the diagonal's first.
  std::vector<int32_t> firstEntry;  ///< per place, and the end
  std::vector<int32_t> entryHigh;   ///< per entry: the place of its row
  std::vector<int32_t> entryTarget; ///< per entry: where it is in the panel
  std::vector<double> matrix;       ///< per entry, and one for `noSlot`
  std::vector<double> panels;
  std::vector<double> diagonal; ///< D, per place
  std::vector<double> stack;
  std::vector<double> scratch;
  std::vector<double> permuted, gathered; ///< of a solution
};

} // namespace baechi::placement::lp

#endif // BAECHI_LIB_PLACEMENT_LP_SPARSELDL_H
