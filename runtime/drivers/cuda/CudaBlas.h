//===- CudaBlas.h - Matrix products through cuBLASLt -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// cuBLASLt is loaded when a device multiplies first, like the driver. The
/// types are those of its stable binary interface (cublasLt.h).
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_DRIVERS_CUDA_CUDABLAS_H
#define BAECHI_RUNTIME_DRIVERS_CUDA_CUDABLAS_H

#include "drivers/cuda/CudaApi.h"

#include <array>
#include <map>

namespace baechi::runtime::cuda {

/// C = op(A) op(B) (+ C), row-major, single precision; see baechi_cuda_sgemm.
struct Product {
  int64_t transposeA, transposeB, m, n, k;
  int64_t lda, strideA, ldb, strideB, ldc, strideC, batch;
};

struct BlasApi;

/// The products of one device. Their descriptors are made once for each shape.
class Blas {
public:
  Blas() = default;
  Blas(const Blas &) = delete;
  ~Blas() { close(); }
  /// Before the context goes.
  void close();

  /// The device's context must be current.
  Problem multiply(const Product &product, const float *a, const float *b,
                   float *c, bool accumulate, Stream stream);

private:
  struct Plan {
    void *operation = nullptr;
    void *a = nullptr, *b = nullptr, *c = nullptr;
  };
  Problem makePlan(const Product &product, Plan &plan);
  void release(Plan &plan);

  const BlasApi *api = nullptr;
  void *handle = nullptr;
  std::map<std::array<int64_t, 12>, Plan> plans;
};

} // namespace baechi::runtime::cuda

#endif // BAECHI_RUNTIME_DRIVERS_CUDA_CUDABLAS_H
