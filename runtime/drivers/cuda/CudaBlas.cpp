//===- CudaBlas.cpp - Matrix products through cuBLASLt -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "drivers/cuda/CudaBlas.h"

#include <dlfcn.h>

#include <cstdlib>
#include <mutex>

using namespace baechi::runtime;
using namespace baechi::runtime::cuda;

// Numbers of cublasLt.h; CudaApiTest.cpp compares them.
static constexpr int real32 = 0, compute32 = 68;
static constexpr int transposeA = 3, transposeB = 4;
static constexpr int batchCount = 5, batchOffset = 6;

namespace baechi::runtime::cuda {
struct BlasApi {
  int (*create)(void **handle) = nullptr;
  int (*destroy)(void *handle) = nullptr;
  const char *(*statusName)(int status) = nullptr;
  int (*operationCreate)(void **operation, int compute, int scale) = nullptr;
  int (*operationDestroy)(void *operation) = nullptr;
  int (*operationSet)(void *operation, int attribute, const void *value,
                      size_t bytes) = nullptr;
  int (*layoutCreate)(void **layout, int type, uint64_t rows, uint64_t columns,
                      int64_t ld) = nullptr;
  int (*layoutDestroy)(void *layout) = nullptr;
  int (*layoutSet)(void *layout, int attribute, const void *value,
                   size_t bytes) = nullptr;
  int (*multiply)(void *handle, void *operation, const void *alpha,
                  const void *a, void *layoutA, const void *b, void *layoutB,
                  const void *beta, const void *c, void *layoutC, void *d,
                  void *layoutD, const void *algorithm, void *workspace,
                  size_t workspaceBytes, Stream stream) = nullptr;
};
} // namespace baechi::runtime::cuda

static bool load(BlasApi &api) {
  const char *given = std::getenv("BAECHI_CUBLASLT_LIBRARY");
  void *library = nullptr;
  for (const char *name : {given, "libcublasLt.so.13", "libcublasLt.so.12"})
    if (!library && name && *name)
      library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return false;
  auto find = [&](auto &function, const char *name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(
        dlsym(library, name));
    return function != nullptr;
  };
  return find(api.create, "cublasLtCreate") &&
         find(api.destroy, "cublasLtDestroy") &&
         find(api.statusName, "cublasLtGetStatusName") &&
         find(api.operationCreate, "cublasLtMatmulDescCreate") &&
         find(api.operationDestroy, "cublasLtMatmulDescDestroy") &&
         find(api.operationSet, "cublasLtMatmulDescSetAttribute") &&
         find(api.layoutCreate, "cublasLtMatrixLayoutCreate") &&
         find(api.layoutDestroy, "cublasLtMatrixLayoutDestroy") &&
         find(api.layoutSet, "cublasLtMatrixLayoutSetAttribute") &&
         find(api.multiply, "cublasLtMatmul");
}

/// Null when there is none.
static const BlasApi *loadBlas() {
  static std::mutex mutex;
  static BlasApi api;
  static bool loaded = false;
  std::lock_guard<std::mutex> guard(mutex);
  loaded = loaded || load(api);
  return loaded ? &api : nullptr;
}

void Blas::close() {
  for (auto &[shape, plan] : plans)
    release(plan);
  plans.clear();
  if (handle)
    api->destroy(handle);
  handle = nullptr;
}

void Blas::release(Plan &plan) {
  if (plan.operation)
    api->operationDestroy(plan.operation);
  for (void *layout : {plan.a, plan.b, plan.c})
    if (layout)
      api->layoutDestroy(layout);
  plan = {};
}

/// cuBLAS stores columns: a row-major matrix is the transposed one there, so
/// C^T = op(B)^T op(A)^T is asked for, with the operands exchanged.
Problem Blas::makePlan(const Product &p, Plan &plan) {
  int status = api->operationCreate(&plan.operation, compute32, real32);
  auto set = [&](auto function, void *object, int attribute, auto value) {
    if (status == 0)
      status = function(object, attribute, &value, sizeof(value));
  };
  auto layout = [&](void *&object, int64_t rows, int64_t columns, int64_t ld,
                    int64_t stride) {
    if (status == 0)
      status = api->layoutCreate(&object, real32, uint64_t(columns),
                                 uint64_t(rows), ld);
    set(api->layoutSet, object, batchCount, int32_t(p.batch));
    set(api->layoutSet, object, batchOffset, stride);
  };
  set(api->operationSet, plan.operation, transposeA, int32_t(p.transposeB));
  set(api->operationSet, plan.operation, transposeB, int32_t(p.transposeA));
  layout(plan.a, p.transposeA ? p.k : p.m, p.transposeA ? p.m : p.k, p.lda,
         p.strideA);
  layout(plan.b, p.transposeB ? p.n : p.k, p.transposeB ? p.k : p.n, p.ldb,
         p.strideB);
  layout(plan.c, p.m, p.n, p.ldc, p.strideC);
  if (status == 0)
    return {};
  release(plan);
  return {"a matrix product cannot be described", api->statusName(status)};
}

Problem Blas::multiply(const Product &p, const float *a, const float *b,
                       float *c, bool accumulate, Stream stream) {
  if (!api) {
    api = loadBlas();
    if (!api)
      return {"matrix products need cuBLASLt, and libcublasLt.so.13 or .12 "
              "cannot be loaded",
              "install CUDA's libraries"};
  }
  if (!handle)
    if (int status = api->create(&handle))
      return {"cuBLASLt cannot be started", api->statusName(status)};
  std::array<int64_t, 12> shape = {
      p.transposeA, p.transposeB, p.m,       p.n,   p.k,       p.lda,
      p.strideA,    p.ldb,        p.strideB, p.ldc, p.strideC, p.batch};
  auto [entry, isNew] = plans.try_emplace(shape);
  if (isNew)
    if (Problem problem = makePlan(p, entry->second)) {
      plans.erase(entry);
      return problem;
    }
  const Plan &plan = entry->second;
  float alpha = 1, beta = accumulate ? 1.0F : 0.0F;
  // No algorithm: the library chooses, and remembers its choices itself.
  int status =
      api->multiply(handle, plan.operation, &alpha, b, plan.b, a, plan.a, &beta,
                    c, plan.c, c, plan.c, nullptr, nullptr, 0, stream);
  if (status == 0)
    return {};
  return {"a matrix product cannot be started", api->statusName(status)};
}
