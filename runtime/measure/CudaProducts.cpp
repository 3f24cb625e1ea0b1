//===- CudaProducts.cpp - The fastest algorithms of products --------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Runtime/CudaProducts.h"
#include "Baechi/Runtime/Abi.h"
#include "core/Exchange.h"
#include "drivers/cuda/CudaStopwatch.h"
#include "measure/SearchTools.h"

#include <algorithm>

using namespace baechi::runtime;
using namespace baechi::runtime::cuda;

// What is timed is a program of one device, whose operator i searches for
// product i in the device's arena.

namespace {
/// Where A, B, C, the bias and the workspace of a product lie.
struct Places {
  explicit Places(const Product &p) {
    auto bytes = [&](int64_t rows, int64_t columns, int64_t ld, int64_t stride,
                     int64_t type) {
      int64_t last = (p.batch - 1) * stride + (rows - 1) * ld + columns;
      return alignForSearch(last * (type == BAECHI_CUDA_F32 ? 4 : 2));
    };
    b = p.transpose_a ? bytes(p.k, p.m, p.ld_a, p.stride_a, p.factor_type)
                      : bytes(p.m, p.k, p.ld_a, p.stride_a, p.factor_type);
    c = b + (p.transpose_b
                 ? bytes(p.n, p.k, p.ld_b, p.stride_b, p.factor_type)
                 : bytes(p.k, p.n, p.ld_b, p.stride_b, p.factor_type));
    bias = c + bytes(p.m, p.n, p.ld_c, p.stride_c, p.result_type);
    workspace = bias + bytes(1, p.n, p.n, 0, p.result_type);
    end = workspace + alignForSearch(p.workspace_bytes);
  }
  int64_t b = 0, c = 0, bias = 0, workspace = 0, end = 0;
};

class Search {
public:
  Search(std::span<const Product> products, const ProductSearchOptions &options,
         std::function<void(size_t)> &progress)
      : products(products), options(options), progress(progress),
        found(products.size()) {}

  /// The program's only step.
  int32_t run(baechi_context *context, char *arena) {
    CudaDevice &device = *currentDevice;
    Stopwatch watch(device);
    Problem problem = watch.open();
    for (size_t i = 0; i < products.size() && !problem; ++i) {
      baechi_operator_begin(context, int32_t(i));
      problem = search(device, watch, products[i], arena, found[i]);
      if (!problem)
        baechi_operator_end(context, int32_t(i));
      progress(i + 1);
    }
    blas.close();
    watch.close();
    if (!problem)
      return 0;
    return context->exchange.fail(*context, {problem.reason, problem.detail});
  }

  const std::span<const Product> products;
  const ProductSearchOptions options;
  std::function<void(size_t)> &progress;
  std::vector<ProductTime> found;

private:
  Problem search(CudaDevice &device, Stopwatch &watch, Product product,
                 char *arena, ProductTime &best);

  Blas blas;
};
} // namespace

Problem Search::search(CudaDevice &device, Stopwatch &watch, Product product,
                       char *arena, ProductTime &best) {
  std::vector<HeuristicResult> proposals;
  Problem problem =
      blas.propose(product, size_t(options.mostAlgorithms), proposals);
  if (!problem)
    problem = fillNumbers(device, product.factor_type, arena,
                          Places(product).workspace);
  Places places(product);
  Factors factors{arena,
                  arena + places.b,
                  arena + places.c,
                  product.has_bias ? arena + places.bias : nullptr,
                  arena + places.workspace,
                  /*accumulate=*/0};
  auto use = [&](const HeuristicResult &proposal) {
    std::copy(proposal.algorithm.begin(), proposal.algorithm.end(),
              product.algorithm);
  };
  auto work = [&](bool) {
    return blas.multiply(product, factors, device.computeStream());
  };
  std::vector<Stopwatch::Repeats> repeats(proposals.size());
  for (size_t i = 0; i < proposals.size() && !problem; ++i) {
    use(proposals[i]);
    problem = watch.prepare(work, /*warmUps=*/2, repeats[i]);
  }
  // In turn, so that what else the machine does meets all.
  std::vector<std::vector<double>> samples(proposals.size());
  for (int32_t sample = 0; sample < options.samples; ++sample)
    for (size_t i = 0; i < proposals.size() && !problem; ++i) {
      use(proposals[i]);
      problem = watch.sample(work, repeats[i], samples[i].emplace_back());
    }
  for (Stopwatch::Repeats &each : repeats)
    watch.release(each);
  for (size_t i = 0; i < proposals.size() && !problem; ++i) {
    CodeTime time = summarize(samples[i]);
    // Of equals the library's favourite.
    if (i > 0 && time.medianNs >= best.medianNs)
      continue;
    best.medianNs = time.medianNs;
    best.spreadNs = time.spreadNs;
    best.samples = time.samples;
    best.workspaceBytes = int64_t(proposals[i].workspaceBytes);
    std::copy(proposals[i].algorithm.begin(), proposals[i].algorithm.end(),
              best.algorithm.begin());
  }
  return problem;
}

Expected<std::vector<ProductTime>> baechi::runtime::searchCudaProducts(
    std::span<const baechi_cuda_product> products,
    const ProductSearchOptions &options, std::function<void(size_t)> progress) {
  if (options.mostAlgorithms < 1 || options.samples < 1)
    return Error("products are timed with at least one algorithm and sample");
  Program program = searchProgram();
  DeviceInfo &device = program.devices.front();
  for (const Product &product : products) {
    device.operators.push_back({"product of " + std::to_string(product.m) +
                                    " x " + std::to_string(product.n) + " x " +
                                    std::to_string(product.k),
                                "", 0, 0});
    device.arenaBytes = std::max(device.arenaBytes, Places(product).end);
  }
  device.memory = device.arenaBytes;

  Search search(products, options, progress);
  if (Error error =
          runSearch(program, [&](baechi_context *context, char *arena) {
            return search.run(context, arena);
          }))
    return error;
  return std::move(search.found);
}
