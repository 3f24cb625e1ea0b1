//===- DenseKernels.h - Inner loops of dense factors ------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Loops that add up in one order on every machine, whatever its vectors: the
/// results are the same to the last bit.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_LP_DENSEKERNELS_H
#define BAECHI_LIB_PLACEMENT_LP_DENSEKERNELS_H

#include <cstddef>
#include <cstdint>

namespace baechi::placement::lp {

/// Rows and columns of C that `subtractProduct` keeps in registers.
constexpr int32_t tileRows = 8, tileColumns = 4;

/// C -= A diag(d) A^T in the lower trapezoid: C is rows x columns with rows >=
/// columns, its column j belongs to A's row j; A is rows x depth. Both are
/// stored by columns. \p packed has room for tileColumns x depth numbers, and
/// tileRows - 1 numbers behind A may be read.
void subtractProduct(double *c, size_t strideC, const double *a, size_t strideA,
                     int32_t rows, int32_t columns, int32_t depth,
                     const double *d, double *packed);

/// c -= A f for the first \p rows of A, which is stored by columns.
void subtractColumns(double *c, const double *a, size_t strideA,
                     const double *f, int32_t depth, int32_t rows);

/// sum of a_i b_i
double dot(const double *a, const double *b, int32_t n);

} // namespace baechi::placement::lp

#endif // BAECHI_LIB_PLACEMENT_LP_DENSEKERNELS_H
