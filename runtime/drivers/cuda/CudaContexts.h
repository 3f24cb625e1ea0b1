//===- CudaContexts.h - One context a GPU, for the whole process -*- C++
//-*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The first use of a GPU retains its primary context, and the process keeps
/// it: making one takes a good part of a second, and what libraries hold in it
/// (cuBLASLt's kernels, other code's tensors) would go with it. Only a context
/// that an error has made useless is given up, when its last user ends, so that
/// the next one may get a new one.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_DRIVERS_CUDA_CUDACONTEXTS_H
#define BAECHI_RUNTIME_DRIVERS_CUDA_CUDACONTEXTS_H

#include "drivers/cuda/CudaApi.h"

#include <cstdint>

namespace baechi::runtime::cuda {

/// Whether no call of the context succeeds after that result.
bool isSticky(Result result);

/// One user's use of a GPU's context.
class ContextUse {
public:
  ContextUse() = default;
  ContextUse(const ContextUse &) = delete;
  ContextUse &operator=(const ContextUse &) = delete;
  ~ContextUse() { end(); }

  /// Begins the use; the context is not made current.
  Result begin(const Api &api, Device device);
  /// To be told what the context answered last.
  void note(Result result) { broken = broken || isSticky(result); }
  /// All that the user made in the context is gone.
  void end();

  Context get() const { return context; }

  /// The user has so many bytes of the GPU as an arena, until end().
  void holdArena(int64_t bytes);
  /// The bytes of all users' arenas on the GPU.
  int64_t arenas() const;

private:
  const Api *api = nullptr;
  Device device = 0;
  Context context = nullptr;
  int64_t arena = 0;
  bool broken = false;
};

/// Selects a context on the calling thread for a while: what the thread had
/// selected, by other code perhaps, is selected again.
class Selection {
public:
  Selection(const Api &api, Context context);
  Selection(const Selection &) = delete;
  Selection &operator=(const Selection &) = delete;
  ~Selection();
  Result result() const { return selected; }

private:
  const Api &api;
  Context before = nullptr;
  Result selected;
};

} // namespace baechi::runtime::cuda

#endif // BAECHI_RUNTIME_DRIVERS_CUDA_CUDACONTEXTS_H
