//===- FakeBlas.cpp - cuBLASLt without a GPU -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FakeCalls.h"

#include <array>
#include <cstring>

using namespace fakecuda;

namespace {
struct Layout {
  uint64_t rows, columns;
  int64_t ld;
  int32_t batch = 1;
  int64_t stride = 0;
};
struct Operation {
  int32_t transposeA = 0, transposeB = 0;
};

/// Element (row, column) of matrix i, columns stored one after the other.
float &element(float *base, const Layout &layout, int64_t i, int64_t row,
               int64_t column) {
  return base[i * layout.stride + column * layout.ld + row];
}

void multiply(const Operation &op, const float *a, const Layout &la,
              const float *b, const Layout &lb, float beta, float *c,
              const Layout &lc) {
  auto *readA = const_cast<float *>(a), *readB = const_cast<float *>(b);
  auto inner = int64_t(op.transposeA ? la.rows : la.columns);
  for (int64_t i = 0; i < lc.batch; ++i)
    for (int64_t row = 0; row < int64_t(lc.rows); ++row)
      for (int64_t column = 0; column < int64_t(lc.columns); ++column) {
        float sum = 0;
        for (int64_t k = 0; k < inner; ++k)
          sum += (op.transposeA ? element(readA, la, i, k, row)
                                : element(readA, la, i, row, k)) *
                 (op.transposeB ? element(readB, lb, i, column, k)
                                : element(readB, lb, i, k, column));
        float &to = element(c, lc, i, row, column);
        to = beta == 0 ? sum : beta * to + sum;
      }
}

size_t bytesOf(const Layout &layout) {
  int64_t last = (layout.batch - 1) * layout.stride +
                 (int64_t(layout.columns) - 1) * layout.ld +
                 int64_t(layout.rows);
  return size_t(last) * sizeof(float);
}

constexpr int invalid = 7; // CUBLAS_STATUS_INVALID_VALUE
} // namespace

extern "C" {
int cublasLtCreate(void **handle) {
  *handle = new int(0);
  return 0;
}
int cublasLtDestroy(void *handle) {
  delete static_cast<int *>(handle);
  return 0;
}
const char *cublasLtGetStatusName(int) { return "CUBLAS_STATUS_INVALID_VALUE"; }

int cublasLtMatmulDescCreate(void **operation, int compute, int scale) {
  if (compute != 68 || scale != 0)
    return invalid;
  *operation = new Operation;
  return 0;
}
int cublasLtMatmulDescDestroy(void *operation) {
  delete static_cast<Operation *>(operation);
  return 0;
}
int cublasLtMatmulDescSetAttribute(void *operation, int attribute,
                                   const void *value, size_t bytes) {
  auto *op = static_cast<Operation *>(operation);
  if (bytes != sizeof(int32_t) || attribute < 3 || attribute > 4)
    return invalid;
  std::memcpy(attribute == 3 ? &op->transposeA : &op->transposeB, value, bytes);
  return 0;
}

int cublasLtMatrixLayoutCreate(void **layout, int type, uint64_t rows,
                               uint64_t columns, int64_t ld) {
  if (type != 0 || ld < int64_t(rows))
    return invalid;
  *layout = new Layout{rows, columns, ld};
  return 0;
}
int cublasLtMatrixLayoutDestroy(void *layout) {
  delete static_cast<Layout *>(layout);
  return 0;
}
int cublasLtMatrixLayoutSetAttribute(void *layout, int attribute,
                                     const void *value, size_t bytes) {
  auto *of = static_cast<Layout *>(layout);
  if (attribute == 5 && bytes == sizeof(int32_t))
    std::memcpy(&of->batch, value, bytes);
  else if (attribute == 6 && bytes == sizeof(int64_t))
    std::memcpy(&of->stride, value, bytes);
  else
    return invalid;
  return 0;
}

int cublasLtMatmul(void *, void *operation, const void *alpha, const void *a,
                   void *layoutA, const void *b, void *layoutB,
                   const void *beta, const void *c, void *layoutC, void *d,
                   void *, const void *, void *, size_t, FakeStream *stream) {
  const auto *op = static_cast<Operation *>(operation);
  const auto *la = static_cast<Layout *>(layoutA);
  const auto *lb = static_cast<Layout *>(layoutB);
  const auto *lc = static_cast<Layout *>(layoutC);
  auto innerA = op->transposeA ? la->rows : la->columns;
  auto innerB = op->transposeB ? lb->columns : lb->rows;
  auto rows = op->transposeA ? la->columns : la->rows;
  auto columns = op->transposeB ? lb->rows : lb->columns;
  if (c != d || innerA != innerB || rows != lc->rows ||
      columns != lc->columns || *static_cast<const float *>(alpha) != 1)
    return invalid;
  Engine &engine = Engine::get();
  std::lock_guard<std::mutex> guard(engine.mutex);
  // Layouts are read when the call is made.
  return engine.issue(
      *stream, [=, &engine, op = *op, la = *la, lb = *lb, lc = *lc,
                beta = *static_cast<const float *>(beta)](FakeStream &on) {
        beginStep(engine, on);
        auto use = [&](const void *at, const Layout &layout, bool writes) {
          engine.checker.use(on.timeline, reinterpret_cast<uintptr_t>(at),
                             bytesOf(layout), writes, "a product");
        };
        use(a, la, false);
        use(b, lb, false);
        use(c, lc, true);
        engine.enqueue(on, {nullptr, 0, [=] {
                              multiply(op, static_cast<const float *>(a), la,
                                       static_cast<const float *>(b), lb, beta,
                                       static_cast<float *>(d), lc);
                            }});
      });
}
}
