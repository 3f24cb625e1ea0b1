//===- CudaAccesses.cpp - What commands read and write -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Needs nothing of a device: fuzz/accesses/Watch.cpp compares it with what
// kernels do.
//
//===----------------------------------------------------------------------===//

#include "drivers/cuda/CudaCommands.h"

#include <algorithm>

using namespace baechi::runtime;
using namespace baechi::runtime::cuda;

ConvolutionTensors cuda::tensorsOf(const Convolution &c) {
  return c.of_filters ? ConvolutionTensors{&c.images, &c.results, &c.filters}
                      : ConvolutionTensors{&c.images, &c.filters, &c.results};
}

int64_t cuda::bytesOf(const baechi_cuda_space_tensor &tensor,
                      const Convolution &convolution) {
  int64_t last = 0;
  for (int64_t dim = 0; dim < 2 + convolution.spaces; ++dim)
    last += (tensor.sizes[dim] - 1) * tensor.strides[dim];
  return (last + 1) * (convolution.type == BAECHI_CUDA_F32 ? 4 : 2);
}

/// Of one access. More are taken as one, with what lies between them.
static constexpr int64_t mostPieces = 2048;

/// `rows` pieces of so many bytes, `stride` apart.
static void addPieces(Accesses &accesses, uintptr_t begin, int64_t bytes,
                      int64_t rows, int64_t stride, bool writes) {
  if (rows <= 0 || bytes <= 0)
    return;
  if (stride <= bytes || rows > mostPieces) {
    bytes += (rows - 1) * stride;
    rows = 1;
  }
  for (int64_t row = 0; row < rows; ++row, begin += uintptr_t(stride))
    accesses.push_back({begin, begin + uintptr_t(bytes), writes});
}

bool cuda::findAccesses(const KernelCommand &command,
                        const uint64_t *parameters, Accesses &accesses) {
  if (!command.accesses)
    return false;
  for (uint32_t i = 0; i < command.parameters; ++i) {
    const baechi_cuda_access &access = command.accesses[i];
    if (access.bytes < 0)
      return false;
    for (int64_t use : {BAECHI_CUDA_READS, BAECHI_CUDA_WRITES})
      if (access.uses & use)
        addPieces(accesses, parameters[i] + uintptr_t(access.offset),
                  access.bytes, access.rows, access.stride,
                  use == BAECHI_CUDA_WRITES);
  }
  return true;
}

/// The matrices of a batch, whose elements are of `type`.
static void addMatrices(Accesses &accesses, const void *at, int64_t rows,
                        int64_t columns, int64_t ld, int64_t stride,
                        int64_t batch, int64_t type, bool writes) {
  const int64_t size = type == BAECHI_CUDA_F32 ? 4 : 2;
  auto begin = reinterpret_cast<uintptr_t>(at);
  if (stride == 0)
    batch = std::min<int64_t>(batch, 1);
  // Batches that lie one before the other, from their first.
  if (stride < 0) {
    begin -= uintptr_t((batch - 1) * -stride * size);
    stride = -stride;
  }
  if (ld == columns || rows == 1) {
    addPieces(accesses, begin, rows * columns * size, batch, stride * size,
              writes);
    return;
  }
  if (rows > mostPieces / std::max<int64_t>(1, batch)) {
    addPieces(accesses, begin,
              ((batch - 1) * stride + (rows - 1) * ld + columns) * size, 1, 0,
              writes);
    return;
  }
  for (int64_t i = 0; i < batch; ++i)
    addPieces(accesses, begin + uintptr_t(i * stride * size), columns * size,
              rows, ld * size, writes);
}

void cuda::findAccesses(const ProductCommand &command, Accesses &accesses) {
  const Product &p = command.product;
  const Factors &f = command.factors;
  addMatrices(accesses, f.a, p.transpose_a ? p.k : p.m,
              p.transpose_a ? p.m : p.k, p.ld_a, p.stride_a, p.batch,
              p.factor_type, /*writes=*/false);
  addMatrices(accesses, f.b, p.transpose_b ? p.n : p.k,
              p.transpose_b ? p.k : p.n, p.ld_b, p.stride_b, p.batch,
              p.factor_type, /*writes=*/false);
  if (p.has_bias)
    addMatrices(accesses, f.bias, 1, p.n, p.n, 0, 1, p.result_type,
                /*writes=*/false);
  // It is read, too, where the product is added to it.
  addMatrices(accesses, f.c, p.m, p.n, p.ld_c, p.stride_c, p.batch,
              p.result_type, /*writes=*/true);
  // What it holds in between is nobody else's, whether the algorithm uses it
  // or not.
  addPieces(accesses, reinterpret_cast<uintptr_t>(f.workspace),
            p.workspace_bytes, 1, 0, /*writes=*/true);
}

void cuda::findAccesses(const ConvolutionCommand &command, Accesses &accesses) {
  const Convolution &convolution = command.convolution;
  const ConvolutionOperands &operands = command.operands;
  auto add = [&](const void *at, int64_t bytes, bool writes) {
    addPieces(accesses, reinterpret_cast<uintptr_t>(at), bytes, 1, 0, writes);
  };
  ConvolutionTensors tensors = tensorsOf(convolution);
  add(operands.a, bytesOf(*tensors.a, convolution), /*writes=*/false);
  add(operands.b, bytesOf(*tensors.b, convolution), /*writes=*/false);
  add(operands.c, bytesOf(*tensors.c, convolution), /*writes=*/true);
  add(operands.workspace, convolution.workspace_bytes, /*writes=*/true);
}
