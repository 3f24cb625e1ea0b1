//===- CudaNvtx.h - Names for profilers -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// With BAECHI_NVTX=1 a device's thread marks its step and each operator as
/// ranges of NVTX, which Nsight shows with the kernels that are launched in
/// them. The functions come from a library of CUDA's, since NVTX itself is a
/// header: libnvtx3interop.so.1 (CUDA 13), libnvToolsExt.so.1 (before), or
/// what BAECHI_NVTX_LIBRARY names.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_DRIVERS_CUDA_CUDANVTX_H
#define BAECHI_RUNTIME_DRIVERS_CUDA_CUDANVTX_H

#include "Baechi/Runtime/Error.h"
#include "Baechi/Runtime/Program.h"

#include <string>
#include <vector>

namespace baechi::runtime::cuda {

/// The ranges of one device, on its thread.
class Ranges {
public:
  explicit Ranges(const DeviceInfo &device);

  /// The error says which libraries were looked for.
  Error load();
  void beginStep();
  void begin(size_t op);
  void end();
  /// Also of operators that a failure left open.
  void endStep();

private:
  std::string step;
  std::vector<std::string> operators;
  int (*push)(const char *name) = nullptr;
  int (*pop)() = nullptr;
  int open = 0;
};

} // namespace baechi::runtime::cuda

#endif // BAECHI_RUNTIME_DRIVERS_CUDA_CUDANVTX_H
