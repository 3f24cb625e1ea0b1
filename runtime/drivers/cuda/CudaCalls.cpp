//===- CudaCalls.cpp - What the host code of kernels calls -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Runtime/CudaAbi.h"
#include "core/Exchange.h"
#include "drivers/cuda/CudaDevice.h"

#include <algorithm>

using namespace baechi::runtime;
using namespace baechi::runtime::cuda;

/// Calls `call` with the calling thread's device; its problem ends the step.
template <typename Call> static void onDevice(Call call) {
  CudaDevice *device = currentDevice;
  if (!device || !thisDevice || thisDevice->exchange.aborted())
    return;
  if (Problem problem = call(*device))
    thisDevice->exchange.fail(*thisDevice, {problem.reason, problem.detail});
}

void baechi_cuda_launch(const void *image, size_t image_bytes,
                        const char *kernel, uint32_t gx, uint32_t gy,
                        uint32_t gz, uint32_t bx, uint32_t by, uint32_t bz,
                        uint32_t shared_bytes, void **parameters,
                        uint32_t parameter_count) {
  baechi_cuda_launch_accesses(image, image_bytes, kernel, gx, gy, gz, bx, by,
                              bz, shared_bytes, parameters, parameter_count,
                              /*accesses=*/nullptr);
}

void baechi_cuda_launch_accesses(const void *image, size_t, const char *kernel,
                                 uint32_t gx, uint32_t gy, uint32_t gz,
                                 uint32_t bx, uint32_t by, uint32_t bz,
                                 uint32_t shared_bytes, void **parameters,
                                 uint32_t parameter_count,
                                 const baechi_cuda_access *accesses) {
  onDevice([&](CudaDevice &device) {
    return device.command(KernelCommand{image, kernel, accesses, gx, gy, gz, bx,
                                        by, bz, shared_bytes, parameter_count},
                          parameters);
  });
}

void baechi_cuda_multiply(const baechi_cuda_product *product, const void *a,
                          const void *b, void *c, const void *bias,
                          void *workspace, int32_t accumulate) {
  onDevice([&](CudaDevice &device) {
    return device.command(ProductCommand{
        *product, {a, b, c, bias, workspace, int64_t(accumulate != 0)}});
  });
}

void baechi_cuda_convolve(const baechi_cuda_convolution *convolution,
                          const void *a, const void *b, void *c,
                          void *workspace) {
  onDevice([&](CudaDevice &device) {
    ConvolutionCommand command{*convolution, {a, b, c, workspace}};
    if (const Engine *engine = device.engine())
      std::copy(engine->begin(), engine->end(), command.convolution.engine);
    return device.command(command);
  });
}

void baechi_cuda_copy(void *target, const void *source, size_t bytes) {
  onDevice([&](CudaDevice &device) {
    return device.command(CopyCommand{target, source, bytes});
  });
}

void baechi_cuda_constant(void *place, const void *data, size_t bytes) {
  onDevice(
      [&](CudaDevice &device) { return device.constant(place, data, bytes); });
}
