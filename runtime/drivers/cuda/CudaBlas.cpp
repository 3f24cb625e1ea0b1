//===- CudaBlas.cpp - Matrix products through cuBLASLt -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "drivers/cuda/CudaBlas.h"

#include <algorithm>
#include <bit>

using namespace baechi::runtime;
using namespace baechi::runtime::cuda;

/// Of arguments (Baechi/Runtime/CudaAbi.h).
static constexpr uintptr_t biasAlignment = 64;

void Blas::close() {
  for (auto &[words, plan] : plans)
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

Problem Blas::problem(int status, const char *what) const {
  if (status == 0)
    return {};
  return {what, api->statusName(status)};
}

Problem Blas::open() {
  if (!api) {
    Expected<const BlasApi *> loaded = loadBlasApi();
    if (!loaded) {
      missing = loaded.error().message();
      return {"matrix products need cuBLASLt, which cannot be loaded",
              missing.c_str()};
    }
    api = *loaded;
  }
  return handle ? Problem()
                : problem(api->create(&handle), "cuBLASLt cannot be started");
}

static int computeType(const Product &product) {
  switch (product.math) {
  case BAECHI_CUDA_MATH_TF32:
    return blas::compute32FastTf32;
  case BAECHI_CUDA_MATH_BF16:
    return blas::compute32FastBf16;
  case BAECHI_CUDA_MATH_FP16:
    return blas::compute32Fast16;
  default:
    return blas::compute32;
  }
}

/// cuBLAS stores columns: a row-major matrix is the transposed one there, so
/// C^T = op(B)^T op(A)^T is asked for, with the operands exchanged. Its columns
/// are C's rows, to each of which the bias is added.
Problem Blas::describe(const Product &p, Plan &plan) {
  int status =
      api->operationCreate(&plan.operation, computeType(p), blas::real32);
  auto set = [&](auto function, void *object, int attribute, auto value) {
    if (status == 0)
      status = function(object, attribute, &value, sizeof(value));
  };
  auto layout = [&](void *&object, int64_t type, int64_t rows, int64_t columns,
                    int64_t ld, int64_t stride) {
    if (status == 0)
      status = api->layoutCreate(&object, int(type), uint64_t(columns),
                                 uint64_t(rows), ld);
    set(api->layoutSet, object, blas::batchCount, int32_t(p.batch));
    set(api->layoutSet, object, blas::batchOffset, stride);
  };
  set(api->operationSet, plan.operation, blas::transposeA,
      int32_t(p.transpose_b != 0));
  set(api->operationSet, plan.operation, blas::transposeB,
      int32_t(p.transpose_a != 0));
  if (p.has_bias) {
    set(api->operationSet, plan.operation, blas::epilogue,
        uint32_t(blas::epilogueBias));
    // Until it is known: one of its alignment.
    set(api->operationSet, plan.operation, blas::biasPointer,
        std::bit_cast<const void *>(biasAlignment));
  }
  layout(plan.a, p.factor_type, p.transpose_a ? p.k : p.m,
         p.transpose_a ? p.m : p.k, p.ld_a, p.stride_a);
  layout(plan.b, p.factor_type, p.transpose_b ? p.n : p.k,
         p.transpose_b ? p.k : p.n, p.ld_b, p.stride_b);
  layout(plan.c, p.result_type, p.m, p.n, p.ld_c, p.stride_c);
  return problem(status, "a matrix product cannot be described");
}

Problem Blas::propose(const Product &p, const Plan &plan, size_t most,
                      std::vector<HeuristicResult> &proposals) {
  void *preference = nullptr;
  int status = api->preferenceCreate(&preference);
  auto set = [&](int attribute, auto value) {
    if (status == 0)
      status = api->preferenceSet(preference, attribute, &value, sizeof(value));
  };
  set(blas::mostWorkspaceBytes, uint64_t(p.workspace_bytes));
  set(blas::alignmentA, uint32_t(p.align_b));
  set(blas::alignmentB, uint32_t(p.align_a));
  set(blas::alignmentC, uint32_t(p.align_c));
  set(blas::alignmentD, uint32_t(p.align_c));
  proposals.assign(most, {});
  int found = 0;
  if (status == 0)
    status =
        api->heuristic(handle, plan.operation, plan.b, plan.a, plan.c, plan.c,
                       preference, int(most), proposals.data(), &found);
  if (preference)
    api->preferenceDestroy(preference);
  proposals.resize(size_t(found));
  std::erase_if(proposals, [](const HeuristicResult &result) {
    return result.state != 0;
  });
  if (status == 0 && proposals.empty())
    status = blas::notSupported;
  return problem(status,
                 p.math == BAECHI_CUDA_MATH_FP32
                     ? "cuBLASLt has no algorithm for a matrix product"
                     : "cuBLASLt has no algorithm for a matrix product of this "
                       "math and these alignments on this GPU; compile with "
                       "--cuda-math=fp32");
}

Problem Blas::propose(const Product &product, size_t most,
                      std::vector<HeuristicResult> &proposals) {
  Plan plan;
  Problem problem = open();
  if (!problem)
    problem = describe(product, plan);
  if (!problem)
    problem = propose(product, plan, most, proposals);
  if (handle)
    release(plan);
  return problem;
}

Problem Blas::choose(const Product &p, Plan &plan) {
  std::copy_n(p.algorithm, plan.algorithm.size(), plan.algorithm.begin());
  if (plan.algorithm == Algorithm()) {
    std::vector<HeuristicResult> proposals;
    Problem problem = propose(p, plan, 1, proposals);
    if (!problem)
      plan.algorithm = proposals.front().algorithm;
    return problem;
  }
  const char *what = "the profile's algorithm for a matrix product cannot run "
                     "here; measure on this GPU with this cuBLASLt";
  HeuristicResult result;
  int status = api->check(handle, plan.operation, plan.b, plan.a, plan.c,
                          plan.c, &plan.algorithm, &result);
  if (status == 0)
    status = result.state;
  if (status == 0 && result.workspaceBytes > size_t(p.workspace_bytes))
    return {what, "its workspace is larger than planned"};
  return problem(status, what);
}

Problem Blas::prepare(const Product &product, const Factors &factors,
                      Stream stream) {
  return plans.count(std::bit_cast<Words>(product))
             ? Problem()
             : multiply(product, factors, stream);
}

Problem Blas::multiply(const Product &product, const Factors &factors,
                       Stream stream) {
  if (Problem problem = open())
    return problem;
  auto [entry, isNew] = plans.try_emplace(std::bit_cast<Words>(product));
  Plan &plan = entry->second;
  if (isNew) {
    Problem problem = describe(product, plan);
    if (!problem)
      problem = choose(product, plan);
    if (problem) {
      release(plan);
      plans.erase(entry);
      return problem;
    }
  }
  const char *what = "a matrix product cannot be started";
  // Descriptors are read when the call is made.
  if (product.has_bias)
    if (int status = api->operationSet(plan.operation, blas::biasPointer,
                                       &factors.bias, sizeof(factors.bias)))
      return problem(status, what);
  // cuBLASLt looks at where a workspace lies also when it has no bytes.
  void *workspace = product.workspace_bytes > 0 ? factors.workspace : nullptr;
  float alpha = 1, beta = factors.accumulate ? 1.0F : 0.0F;
  return problem(api->multiply(handle, plan.operation, &alpha, factors.b,
                               plan.b, factors.a, plan.a, &beta, factors.c,
                               plan.c, factors.c, plan.c, &plan.algorithm,
                               workspace, size_t(product.workspace_bytes),
                               stream),
                 what);
}
