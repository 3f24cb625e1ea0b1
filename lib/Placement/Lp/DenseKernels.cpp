//===- DenseKernels.cpp - Inner loops of dense factors --------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lp/DenseKernels.h"

#include <algorithm>

using namespace baechi::placement::lp;

namespace {

// The bodies, to be compiled for several instruction sets.

[[gnu::always_inline]] inline void columnsBody(double *__restrict c,
                                               const double *a, size_t strideA,
                                               const double *f, int32_t depth,
                                               int32_t rows) {
  int32_t k = 0;
  for (; k + 4 <= depth; k += 4) {
    const double *p = a + k * strideA, *q = p + strideA, *r = q + strideA,
                 *s = r + strideA;
    double x = f[k], y = f[k + 1], z = f[k + 2], w = f[k + 3];
    for (int32_t i = 0; i < rows; ++i)
      c[i] -= (x * p[i] + y * q[i]) + (z * r[i] + w * s[i]);
  }
  for (; k < depth; ++k) {
    const double *p = a + k * strideA;
    double x = f[k];
    for (int32_t i = 0; i < rows; ++i)
      c[i] -= x * p[i];
  }
}

[[gnu::always_inline]] inline double dotBody(const double *a, const double *b,
                                             int32_t n) {
  double sum[8] = {};
  int32_t i = 0;
  for (; i + 8 <= n; i += 8)
    for (int32_t q = 0; q < 8; ++q)
      sum[q] += a[i + q] * b[i + q];
  double rest = 0;
  for (; i < n; ++i)
    rest += a[i] * b[i];
  return rest + (((sum[0] + sum[1]) + (sum[2] + sum[3])) +
                 ((sum[4] + sum[5]) + (sum[6] + sum[7])));
}

[[gnu::always_inline]] inline void
subtractTiles(double *c, size_t strideC, const double *a, size_t strideA,
              int32_t rows, int32_t columns, int32_t depth, const double *d,
              double *packed) {
  for (int32_t j = 0; j < columns; j += tileColumns) {
    int32_t wide = std::min(tileColumns, columns - j);
    for (int32_t k = 0; k < depth; ++k)
      for (int32_t q = 0; q < tileColumns; ++q)
        packed[k * tileColumns + q] =
            q < wide ? a[k * strideA + j + q] * d[k] : 0.0;
    for (int32_t i = j; i < rows; i += tileRows) {
      double sum[tileColumns][tileRows] = {};
      const double *left = a + i;
      for (int32_t k = 0; k < depth; ++k, left += strideA)
        for (int32_t q = 0; q < tileColumns; ++q)
          for (int32_t r = 0; r < tileRows; ++r)
            sum[q][r] += left[r] * packed[k * tileColumns + q];
      // The last tile may be too tall: what is below is not C's.
      int32_t tall = std::min(tileRows, rows - i);
      for (int32_t q = 0; q < wide; ++q) {
        double *out = c + (j + q) * strideC + i;
        for (int32_t r = 0; r < tall; ++r)
          out[r] -= sum[q][r];
      }
    }
  }
}

struct Kernels {
  decltype(&subtractColumns) columns;
  decltype(&dot) product;
  decltype(&subtractProduct) tiles;
};

// WIDE: a set of instructions without fused multiplications, which would round
// differently.
#define KERNELS(NAME, WIDE)                                                    \
  WIDE void columns##NAME(double *c, const double *a, size_t strideA,          \
                          const double *f, int32_t depth, int32_t rows) {      \
    columnsBody(c, a, strideA, f, depth, rows);                                \
  }                                                                            \
  WIDE double dot##NAME(const double *a, const double *b, int32_t n) {         \
    return dotBody(a, b, n);                                                   \
  }                                                                            \
  WIDE void tiles##NAME(double *c, size_t strideC, const double *a,            \
                        size_t strideA, int32_t rows, int32_t columns,         \
                        int32_t depth, const double *d, double *packed) {      \
    subtractTiles(c, strideC, a, strideA, rows, columns, depth, d, packed);    \
  }                                                                            \
  const Kernels kernels##NAME = {columns##NAME, dot##NAME, tiles##NAME};

KERNELS(Anywhere, )
#if defined(__x86_64__)
KERNELS(Avx2, [[gnu::target("avx2")]])
const Kernels &best =
    __builtin_cpu_supports("avx2") ? kernelsAvx2 : kernelsAnywhere;
#else
const Kernels &best = kernelsAnywhere;
#endif
#undef KERNELS

} // namespace

void baechi::placement::lp::subtractProduct(double *c, size_t strideC,
                                            const double *a, size_t strideA,
                                            int32_t rows, int32_t columns,
                                            int32_t depth, const double *d,
                                            double *packed) {
  if (depth >= 8 && rows >= 16) {
    best.tiles(c, strideC, a, strideA, rows, columns, depth, d, packed);
    return;
  }
  // Short or shallow: packing does not pay.
  for (int32_t j = 0; j < columns; ++j) {
    for (int32_t k = 0; k < depth; ++k)
      packed[k] = a[k * strideA + j] * d[k];
    subtractColumns(c + j * strideC + j, a + j, strideA, packed, depth,
                    rows - j);
  }
}

void baechi::placement::lp::subtractColumns(double *c, const double *a,
                                            size_t strideA, const double *f,
                                            int32_t depth, int32_t rows) {
  // Short: what is inlined begins at once.
  if (rows < 16)
    columnsBody(c, a, strideA, f, depth, rows);
  else
    best.columns(c, a, strideA, f, depth, rows);
}

double baechi::placement::lp::dot(const double *a, const double *b, int32_t n) {
  return n < 16 ? dotBody(a, b, n) : best.product(a, b, n);
}
