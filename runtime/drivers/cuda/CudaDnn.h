//===- CudaDnn.h - Convolutions through cuDNN -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_DRIVERS_CUDA_CUDADNN_H
#define BAECHI_RUNTIME_DRIVERS_CUDA_CUDADNN_H

#include "Baechi/Runtime/CudaAbi.h"
#include "drivers/cuda/CudaDnnApi.h"

#include <array>
#include <map>
#include <memory>
#include <vector>

namespace baechi::runtime::cuda {

using Convolution = baechi_cuda_convolution;

/// What baechi_cuda_convolve is given beside the convolution.
struct ConvolutionOperands {
  const void *a, *b;
  void *c;
  void *workspace;
};

/// How cuDNN computes a convolution: baechi_cuda_convolution::engine.
using Engine = std::array<int64_t, BAECHI_CUDA_ENGINE_WORDS>;

struct EngineProposal {
  Engine engine{};
  int64_t workspaceBytes = 0;
};

/// The bytes from a tensor's first element to behind its last.
int64_t bytesOf(const baechi_cuda_space_tensor &tensor,
                const Convolution &convolution);
/// The tensors that are read, and the one that is written.
struct ConvolutionTensors {
  const baechi_cuda_space_tensor *a, *b, *c;
};
ConvolutionTensors tensorsOf(const Convolution &convolution);

/// The convolutions of one device. Their plans are made once for each. The
/// device's context must be current.
class Dnn {
public:
  Dnn();
  Dnn(const Dnn &) = delete;
  ~Dnn();
  /// Before the context goes.
  void close();

  Problem convolve(const Convolution &convolution,
                   const ConvolutionOperands &operands, Stream stream);
  /// Convolves where the convolution is new: only that has the library load
  /// its own kernels.
  Problem prepare(const Convolution &convolution,
                  const ConvolutionOperands &operands, Stream stream);

  /// Up to `most` engines that the library proposes for the convolution within
  /// its workspace, best guess first; at least one. All give the same result
  /// each time, add products up without a transform, and round as the math
  /// allows.
  Problem propose(const Convolution &convolution, size_t most,
                  std::vector<EngineProposal> &proposals);

  struct Plan;

private:
  using Words = std::array<uint64_t, sizeof(Convolution) / sizeof(uint64_t)>;

  Problem open();
  Problem find(const Convolution &convolution, Plan *&plan);

  const DnnApi *api = nullptr;
  /// Why there is none.
  std::string missing;
  void *handle = nullptr;
  /// What the handle works on.
  Stream current = nullptr;
  std::map<Words, std::unique_ptr<Plan>> plans;
};

} // namespace baechi::runtime::cuda

#endif // BAECHI_RUNTIME_DRIVERS_CUDA_CUDADNN_H
