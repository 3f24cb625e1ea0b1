//===- CudaModules.h - GPU code of a program, loaded where it runs -*- C++
//-*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_DRIVERS_CUDA_CUDAMODULES_H
#define BAECHI_RUNTIME_DRIVERS_CUDA_CUDAMODULES_H

#include "drivers/cuda/CudaApi.h"

#include <unordered_map>
#include <utility>

namespace baechi::runtime::cuda {

/// The images that a device has loaded. An image is loaded when its first
/// kernel is asked for; images and kernels' names are constants of the program,
/// known by their addresses.
class Modules {
public:
  /// Finds a kernel; the context must be current.
  Problem find(const Api &api, const void *image, const char *kernel,
               Function &function);
  void unload(const Api &api);

private:
  struct Hash {
    size_t operator()(const std::pair<const void *, const void *> &key) const {
      return std::hash<const void *>()(key.first) * 31 +
             std::hash<const void *>()(key.second);
    }
  };
  std::unordered_map<const void *, Module> modules;
  std::unordered_map<std::pair<const void *, const void *>, Function, Hash>
      functions;
};

} // namespace baechi::runtime::cuda

#endif // BAECHI_RUNTIME_DRIVERS_CUDA_CUDAMODULES_H
