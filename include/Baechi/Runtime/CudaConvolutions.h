//===- CudaConvolutions.h - Convolutions' fastest code -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_CUDACONVOLUTIONS_H
#define BAECHI_RUNTIME_CUDACONVOLUTIONS_H

#include "Baechi/Runtime/CudaAbi.h"
#include "Baechi/Runtime/CudaProducts.h"

namespace baechi::runtime {

/// A kernel that is a convolution, and its code in both ways.
struct ConvolutionCandidate {
  std::string name;
  /// What the library's code asks for.
  baechi_cuda_convolution convolution;
  std::vector<int64_t> argumentBytes;
  int64_t resultBytes = 0;
  /// The more of both ways.
  int64_t scratchBytes = 0;
  /// Which arguments A and B lie in.
  size_t a = 0, b = 0;
  /// Put the work on the current stream; given the addresses of the arguments,
  /// the result and the scratch.
  std::function<void(void **pointers)> generated, library;
};

struct CodeTime {
  int64_t medianNs = 0;
  /// Half the distance between the quartiles.
  int64_t spreadNs = 0;
  /// 0: there is no such code.
  int64_t samples = 0;
};

struct ConvolutionTimes {
  CodeTime generated;
  /// Of the fastest engine, and all that the library's code does beside.
  CodeTime library;
  std::array<int64_t, BAECHI_CUDA_ENGINE_WORDS> engine{};
  int64_t workspaceBytes = 0;
};

/// What the library's results may be away from those of generated code, as a
/// part of the largest of these.
double toleranceOf(const baechi_cuda_convolution &convolution);

/// Times on the first GPU, by events, the generated code of each convolution
/// and the engines that cuDNN proposes for it within its workspace, whose
/// results are as near to those of generated code as the math allows.
/// `progress` is told how many are done, on another thread.
Expected<std::vector<ConvolutionTimes>> searchCudaConvolutions(
    std::span<const ConvolutionCandidate> convolutions,
    const ProductSearchOptions &options = {},
    std::function<void(size_t)> progress = [](size_t) {});

/// cuDNN's version; or why there is none.
Expected<int64_t> cudnnVersion();

} // namespace baechi::runtime

#endif // BAECHI_RUNTIME_CUDACONVOLUTIONS_H
