//===- CudaBlas.h - Matrix products through cuBLASLt -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_DRIVERS_CUDA_CUDABLAS_H
#define BAECHI_RUNTIME_DRIVERS_CUDA_CUDABLAS_H

#include "Baechi/Runtime/CudaAbi.h"
#include "drivers/cuda/CudaBlasApi.h"

#include <map>
#include <vector>

namespace baechi::runtime::cuda {

using Product = baechi_cuda_product;

/// What baechi_cuda_multiply is given beside the product.
struct Factors {
  const void *a, *b;
  void *c;
  const void *bias;
  void *workspace;
  int64_t accumulate;
};

/// The products of one device. Their descriptors are made, and their algorithms
/// chosen, once for each product. The device's context must be current.
class Blas {
public:
  Blas() = default;
  Blas(const Blas &) = delete;
  ~Blas() { close(); }
  /// Before the context goes.
  void close();

  Problem multiply(const Product &product, const Factors &factors,
                   Stream stream);

  /// Multiplies where the product is new: only that has the library load its
  /// own kernel.
  Problem prepare(const Product &product, const Factors &factors,
                  Stream stream);

  /// Up to `most` algorithms that the library proposes for the product within
  /// its workspace, best guess first; at least one.
  Problem propose(const Product &product, size_t most,
                  std::vector<HeuristicResult> &proposals);

private:
  struct Plan {
    void *operation = nullptr;
    void *a = nullptr, *b = nullptr, *c = nullptr;
    Algorithm algorithm{};
  };
  using Words = std::array<uint64_t, sizeof(Product) / sizeof(uint64_t)>;

  Problem open();
  Problem describe(const Product &product, Plan &plan);
  Problem propose(const Product &product, const Plan &plan, size_t most,
                  std::vector<HeuristicResult> &proposals);
  /// The product's own algorithm, or else the library's first proposal.
  Problem choose(const Product &product, Plan &plan);
  Problem problem(int status, const char *what) const;
  void release(Plan &plan);

  const BlasApi *api = nullptr;
  /// Why there is none.
  std::string missing;
  void *handle = nullptr;
  std::map<Words, Plan> plans;
};

} // namespace baechi::runtime::cuda

#endif // BAECHI_RUNTIME_DRIVERS_CUDA_CUDABLAS_H
