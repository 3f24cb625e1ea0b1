//===- CudaProducts.h - The fastest algorithms of products -------*- C++
//-*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_CUDAPRODUCTS_H
#define BAECHI_RUNTIME_CUDAPRODUCTS_H

#include "Baechi/Runtime/CudaAbi.h"
#include "Baechi/Runtime/Error.h"

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace baechi::runtime {

/// How long a product takes with one of cuBLASLt's algorithms.
struct ProductTime {
  std::array<int64_t, 8> algorithm{};
  int64_t workspaceBytes = 0;
  int64_t medianNs = 0;
  /// Half the distance between the quartiles.
  int64_t spreadNs = 0;
  int64_t samples = 0;
};

struct ProductSearchOptions {
  /// How many of the library's proposals are timed.
  int32_t mostAlgorithms = 8;
  /// Samples of each, in turn with the others.
  int32_t samples = 9;
};

/// Times on the first GPU, by events, the algorithms that cuBLASLt proposes for
/// each of `products` within its workspace; gives each one's fastest. What the
/// products name as their algorithm does not matter. `progress` is told how
/// many are done, on another thread.
Expected<std::vector<ProductTime>> searchCudaProducts(
    std::span<const baechi_cuda_product> products,
    const ProductSearchOptions &options = {},
    std::function<void(size_t)> progress = [](size_t) {});

} // namespace baechi::runtime

#endif // BAECHI_RUNTIME_CUDAPRODUCTS_H
