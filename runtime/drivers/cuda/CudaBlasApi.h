//===- CudaBlasApi.h - cuBLASLt's functions -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// cuBLASLt is loaded, like the driver, before the first CUDA device starts.
/// The types and numbers are those of its stable binary interface (cublasLt.h);
/// CudaApiTest.cpp compares them with the toolkit's header where there is one.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_DRIVERS_CUDA_CUDABLASAPI_H
#define BAECHI_RUNTIME_DRIVERS_CUDA_CUDABLASAPI_H

#include "drivers/cuda/CudaApi.h"

#include <array>

namespace baechi::runtime::cuda {

/// cublasLtMatmulAlgo_t.
using Algorithm = std::array<uint64_t, 8>;

/// cublasLtMatmulHeuristicResult_t.
struct HeuristicResult {
  Algorithm algorithm{};
  size_t workspaceBytes = 0;
  int state = 0;
  float waves = 0;
  int reserved[4] = {};
};

namespace blas {
constexpr int notSupported = 15;
constexpr int real32 = 0;
constexpr int compute32 = 68, compute32Fast16 = 74, compute32FastBf16 = 75,
              compute32FastTf32 = 77;
// Attributes of an operation.
constexpr int transposeA = 3, transposeB = 4, epilogue = 7, biasPointer = 8;
constexpr int epilogueBias = 4;
// Of a layout.
constexpr int batchCount = 5, batchOffset = 6;
// Of a preference.
constexpr int mostWorkspaceBytes = 1, alignmentA = 5, alignmentB = 6,
              alignmentC = 7, alignmentD = 8;
} // namespace blas

/// The functions that are used: member name, symbol, parameters.
#define BAECHI_CUBLASLT_FUNCTIONS(F)                                           \
  F(create, "cublasLtCreate", (void **handle))                                 \
  F(destroy, "cublasLtDestroy", (void *handle))                                \
  F(operationCreate, "cublasLtMatmulDescCreate",                               \
    (void **operation, int compute, int scale))                                \
  F(operationDestroy, "cublasLtMatmulDescDestroy", (void *operation))          \
  F(operationSet, "cublasLtMatmulDescSetAttribute",                            \
    (void *operation, int attribute, const void *value, size_t bytes))         \
  F(layoutCreate, "cublasLtMatrixLayoutCreate",                                \
    (void **layout, int type, uint64_t rows, uint64_t columns, int64_t ld))    \
  F(layoutDestroy, "cublasLtMatrixLayoutDestroy", (void *layout))              \
  F(layoutSet, "cublasLtMatrixLayoutSetAttribute",                             \
    (void *layout, int attribute, const void *value, size_t bytes))            \
  F(preferenceCreate, "cublasLtMatmulPreferenceCreate", (void **preference))   \
  F(preferenceDestroy, "cublasLtMatmulPreferenceDestroy", (void *preference))  \
  F(preferenceSet, "cublasLtMatmulPreferenceSetAttribute",                     \
    (void *preference, int attribute, const void *value, size_t bytes))        \
  F(heuristic, "cublasLtMatmulAlgoGetHeuristic",                               \
    (void *handle, void *operation, void *layoutA, void *layoutB,              \
     void *layoutC, void *layoutD, void *preference, int wanted,               \
     HeuristicResult *results, int *found))                                    \
  F(check, "cublasLtMatmulAlgoCheck",                                          \
    (void *handle, void *operation, void *layoutA, void *layoutB,              \
     void *layoutC, void *layoutD, const Algorithm *algorithm,                 \
     HeuristicResult *result))                                                 \
  F(multiply, "cublasLtMatmul",                                                \
    (void *handle, void *operation, const void *alpha, const void *a,          \
     void *layoutA, const void *b, void *layoutB, const void *beta,            \
     const void *c, void *layoutC, void *d, void *layoutD,                     \
     const Algorithm *algorithm, void *workspace, size_t workspaceBytes,       \
     Stream stream))

struct BlasApi {
#define F(member, symbol, parameters) int(*member) parameters = nullptr;
  BAECHI_CUBLASLT_FUNCTIONS(F)
#undef F
  const char *(*statusName)(int status) = nullptr;
  size_t (*version)() = nullptr;
};

/// Loads libcublasLt.so.13 or .12, or what the environment variable
/// BAECHI_CUBLASLT_LIBRARY says, once (core/FindLibrary.h says from where). The
/// error says what to install.
Expected<const BlasApi *> loadBlasApi();

} // namespace baechi::runtime::cuda

#endif // BAECHI_RUNTIME_DRIVERS_CUDA_CUDABLASAPI_H
