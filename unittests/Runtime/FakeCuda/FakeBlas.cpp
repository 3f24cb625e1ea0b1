//===- FakeBlas.cpp - cuBLASLt without a GPU -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Three algorithms, which give the same results but need different workspaces.
//
//===----------------------------------------------------------------------===//

#include "FakeCalls.h"
#include "PlainProduct.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <thread>

using namespace fakecuda;

namespace {
// Numbers of CUDA's.
constexpr int f32 = 0, f16 = 2, bf16 = 14;
constexpr int compute32 = 68, fast16 = 74, fastBf16 = 75, fastTf32 = 77;
constexpr int invalid = 7, noMatch = 8, notSupported = 15;
constexpr uint32_t epilogueDefault = 1, epilogueBias = 4;

struct Layout {
  int type;
  uint64_t rows, columns;
  int64_t ld;
  int32_t batch = 1;
  int64_t stride = 0;
};
struct Operation {
  int compute;
  int32_t transposeA = 0, transposeB = 0;
  uint32_t epilogue = epilogueDefault;
  const void *bias = nullptr;
};
struct Preference {
  uint64_t workspaceBytes = 0;
  std::array<uint32_t, 4> alignments = {256, 256, 256, 256};
};

struct Algorithm {
  static constexpr uint64_t magicNumber = 0x616c676f72697468ULL;
  uint64_t magic, number, workspaceBytes;
  uint32_t alignments[4]; ///< of A, B, C, D
  uint64_t unused[3];
};
constexpr uint64_t workspaceBytes[] = {0, 1024, 4096};

struct Heuristic {
  Algorithm algorithm;
  size_t workspaceBytes;
  int state;
  float waves;
  int reserved[4];
};

size_t sizeOf(int type) { return type == f32 ? 4 : 2; }

/// Element (row, column) of matrix i, columns stored one after the other.
int64_t at(const Layout &layout, int64_t i, int64_t row, int64_t column) {
  return i * layout.stride + column * layout.ld + row;
}

float rounded(float factor, int compute) {
  switch (compute) {
  case fast16:
    return fromF16(toF16(factor));
  case fastBf16:
    return shorten(factor, droppedByBf16);
  case fastTf32:
    return shorten(factor, droppedByTf32);
  default:
    return factor;
  }
}

void multiply(const Operation &op, const void *a, const Layout &la,
              const void *b, const Layout &lb, float beta, void *c,
              const Layout &lc) {
  auto factor = [&](const void *base, const Layout &layout, int64_t index) {
    return rounded(loadElement(base, layout.type, index), op.compute);
  };
  auto inner = int64_t(op.transposeA ? la.rows : la.columns);
  for (int64_t i = 0; i < lc.batch; ++i)
    for (int64_t row = 0; row < int64_t(lc.rows); ++row)
      for (int64_t column = 0; column < int64_t(lc.columns); ++column) {
        float sum = 0;
        for (int64_t k = 0; k < inner; ++k)
          sum += factor(a, la,
                        op.transposeA ? at(la, i, k, row) : at(la, i, row, k)) *
                 factor(b, lb,
                        op.transposeB ? at(lb, i, column, k)
                                      : at(lb, i, k, column));
        int64_t to = at(lc, i, row, column);
        if (beta != 0)
          sum += beta * loadElement(c, lc.type, to);
        if (op.bias)
          sum += loadElement(op.bias, lc.type, row);
        storeElement(c, lc.type, to, sum);
      }
}

/// A stream uses the matrices of a layout, and nothing between their columns.
void useMatrices(Engine &engine, FakeStream &on, const void *base,
                 const Layout &layout, bool writes) {
  bool isDense = layout.ld == int64_t(layout.rows);
  size_t bytes =
      layout.rows * (isDense ? layout.columns : 1) * sizeOf(layout.type);
  for (int64_t i = 0; i < layout.batch; ++i)
    for (int64_t column = 0; column < (isDense ? 1 : int64_t(layout.columns));
         ++column)
      engine.checker.use(on.timeline,
                         reinterpret_cast<uintptr_t>(base) +
                             size_t(at(layout, i, 0, column)) *
                                 sizeOf(layout.type),
                         bytes, writes, "a product");
}

/// What is wrong with these operands for the operation; 0 if nothing is.
int check(const Operation &op, const Layout &a, const Layout &b,
          const Layout &c) {
  auto innerA = op.transposeA ? a.rows : a.columns;
  auto innerB = op.transposeB ? b.columns : b.rows;
  auto rows = op.transposeA ? a.columns : a.rows;
  auto columns = op.transposeB ? b.rows : b.columns;
  if (innerA != innerB || rows != c.rows || columns != c.columns)
    return invalid;
  bool single = a.type == f32 && c.type == f32;
  if (a.type != b.type || (a.type == f32 && !single) ||
      (a.type != f32 && c.type != f32 && c.type != a.type) ||
      (op.compute != compute32 && !single))
    return notSupported;
  return 0;
}

bool isAligned(const void *address, uint32_t alignment) {
  return reinterpret_cast<uintptr_t>(address) % alignment == 0;
}

template <typename T> T *make(void **handle, T value) {
  return static_cast<T *>(*handle = new T(value));
}
template <typename T> int destroy(void *handle) {
  delete static_cast<T *>(handle);
  return 0;
}
/// Sets `to` from an attribute's value, if that has its size.
template <typename T> int assign(T &to, const void *value, size_t bytes) {
  if (bytes != sizeof(T))
    return invalid;
  std::memcpy(&to, value, bytes);
  return 0;
}
} // namespace

extern "C" {
int cublasLtCreate(void **handle) { return make(handle, 0), 0; }
int cublasLtDestroy(void *handle) { return destroy<int>(handle); }
size_t cublasLtGetVersion() { return 130000; }
const char *cublasLtGetStatusName(int status) {
  return status == notSupported ? "CUBLAS_STATUS_NOT_SUPPORTED"
         : status == noMatch    ? "CUBLAS_STATUS_ARCH_MISMATCH"
                                : "CUBLAS_STATUS_INVALID_VALUE";
}

int cublasLtMatmulDescCreate(void **operation, int compute, int scale) {
  bool known = compute == compute32 || compute == fast16 ||
               compute == fastBf16 || compute == fastTf32;
  if (!known || scale != f32)
    return invalid;
  make(operation, Operation{compute});
  return 0;
}
int cublasLtMatmulDescDestroy(void *operation) {
  return destroy<Operation>(operation);
}
int cublasLtMatmulDescSetAttribute(void *operation, int attribute,
                                   const void *value, size_t bytes) {
  auto *op = static_cast<Operation *>(operation);
  switch (attribute) {
  case 3:
    return assign(op->transposeA, value, bytes);
  case 4:
    return assign(op->transposeB, value, bytes);
  case 7:
    return assign(op->epilogue, value, bytes);
  case 8:
    return assign(op->bias, value, bytes);
  default:
    return invalid;
  }
}

int cublasLtMatrixLayoutCreate(void **layout, int type, uint64_t rows,
                               uint64_t columns, int64_t ld) {
  if ((type != f32 && type != f16 && type != bf16) || ld < int64_t(rows))
    return invalid;
  make(layout, Layout{type, rows, columns, ld});
  return 0;
}
int cublasLtMatrixLayoutDestroy(void *layout) {
  return destroy<Layout>(layout);
}
int cublasLtMatrixLayoutSetAttribute(void *layout, int attribute,
                                     const void *value, size_t bytes) {
  auto *of = static_cast<Layout *>(layout);
  return attribute == 5   ? assign(of->batch, value, bytes)
         : attribute == 6 ? assign(of->stride, value, bytes)
                          : invalid;
}

int cublasLtMatmulPreferenceCreate(void **preference) {
  return make(preference, Preference()), 0;
}
int cublasLtMatmulPreferenceDestroy(void *preference) {
  return destroy<Preference>(preference);
}
int cublasLtMatmulPreferenceSetAttribute(void *preference, int attribute,
                                         const void *value, size_t bytes) {
  auto *of = static_cast<Preference *>(preference);
  if (attribute == 1)
    return assign(of->workspaceBytes, value, bytes);
  if (attribute < 5 || attribute > 8)
    return invalid;
  return assign(of->alignments[size_t(attribute - 5)], value, bytes);
}

int cublasLtMatmulAlgoGetHeuristic(void *, void *operation, void *layoutA,
                                   void *layoutB, void *layoutC, void *,
                                   void *preference, int wanted,
                                   Heuristic *results, int *found) {
  *found = 0;
  if (int wrong = check(
          *static_cast<Operation *>(operation), *static_cast<Layout *>(layoutA),
          *static_cast<Layout *>(layoutB), *static_cast<Layout *>(layoutC)))
    return wrong;
  if (static_cast<Operation *>(operation)->compute ==
      Engine::get().options.refusedCompute)
    return notSupported;
  const auto *prefers = static_cast<Preference *>(preference);
  for (uint64_t number = 0; number < std::size(workspaceBytes); ++number) {
    if (workspaceBytes[number] > prefers->workspaceBytes || *found == wanted)
      break;
    Heuristic &result = results[(*found)++];
    result = {};
    result.algorithm.magic = Algorithm::magicNumber;
    result.algorithm.number = number;
    result.algorithm.workspaceBytes = workspaceBytes[number];
    std::copy(prefers->alignments.begin(), prefers->alignments.end(),
              result.algorithm.alignments);
    result.workspaceBytes = workspaceBytes[number];
  }
  return 0;
}

int cublasLtMatmulAlgoCheck(void *, void *operation, void *layoutA,
                            void *layoutB, void *layoutC, void *,
                            const Algorithm *algorithm, Heuristic *result) {
  *result = {};
  if (algorithm->magic != Algorithm::magicNumber)
    return noMatch;
  result->algorithm = *algorithm;
  result->workspaceBytes = algorithm->workspaceBytes;
  return check(*static_cast<Operation *>(operation),
               *static_cast<Layout *>(layoutA), *static_cast<Layout *>(layoutB),
               *static_cast<Layout *>(layoutC));
}

int cublasLtMatmul(void *, void *operation, const void *alpha, const void *a,
                   void *layoutA, const void *b, void *layoutB,
                   const void *beta, const void *c, void *layoutC, void *d,
                   void *, const Algorithm *algorithm, void *workspace,
                   size_t givenBytes, FakeStream *stream) {
  auto op = *static_cast<Operation *>(operation);
  const auto *la = static_cast<Layout *>(layoutA);
  const auto *lb = static_cast<Layout *>(layoutB);
  const auto *lc = static_cast<Layout *>(layoutC);
  if (op.epilogue == epilogueDefault)
    op.bias = nullptr;
  if (c != d || *static_cast<const float *>(alpha) != 1 ||
      (op.epilogue == epilogueBias) != (op.bias != nullptr))
    return invalid;
  if (int wrong = check(op, *la, *lb, *lc))
    return wrong;
  if (!algorithm || algorithm->magic != Algorithm::magicNumber ||
      algorithm->workspaceBytes > givenBytes || !isAligned(workspace, 256) ||
      !isAligned(a, algorithm->alignments[0]) ||
      !isAligned(b, algorithm->alignments[1]) ||
      !isAligned(c, algorithm->alignments[2]))
    return invalid;
  Engine &engine = Engine::get();
  std::lock_guard<std::mutex> guard(engine.mutex);
  auto use = [&engine](FakeStream &on, const void *at, size_t bytes,
                       bool writes) {
    engine.checker.use(on.timeline, reinterpret_cast<uintptr_t>(at), bytes,
                       writes, "a product");
  };
  // What has a workspace is two kernels, the second of which reads it.
  size_t parts = algorithm->workspaceBytes;
  if (parts > 0)
    if (int code = engine.issue(*stream, [=, &engine](FakeStream &on) {
          beginStep(engine, on);
          use(on, workspace, parts, true);
          engine.enqueue(
              on, {nullptr, 0, [=] { std::memset(workspace, 0xAB, parts); }});
        }))
      return code;
  // Layouts are read when the call is made.
  return engine.issue(*stream, [=, &engine, la = *la, lb = *lb, lc = *lc,
                                beta = *static_cast<const float *>(beta),
                                algorithm = *algorithm](FakeStream &on) {
    beginStep(engine, on);
    useMatrices(engine, on, a, la, false);
    useMatrices(engine, on, b, lb, false);
    useMatrices(engine, on, c, lc, true);
    use(on, workspace, parts, false);
    if (op.bias)
      use(on, op.bias, lc.rows * sizeOf(lc.type), false);
    int fast = engine.options.fastAlgorithm;
    engine.enqueue(
        on,
        {nullptr, 0, [=, &engine] {
           if (fast >= 0 && algorithm.number != uint64_t(fast))
             std::this_thread::sleep_for(std::chrono::milliseconds(2));
           const auto *spoilt = static_cast<const unsigned char *>(workspace);
           if (std::any_of(spoilt, spoilt + parts,
                           [](unsigned char byte) { return byte != 0xAB; }))
             engine.checker.blame("a product's workspace is written meanwhile");
           multiply(op, a, la, b, lb, beta, d, lc);
         }});
  });
}
}
