//===- Gpu.cpp - What a GPU offers ----------------------------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Runtime/Machine.h"
#include "drivers/cuda/CudaBlasApi.h"
#include "drivers/cuda/CudaContexts.h"
#include "drivers/cuda/CudaDnnApi.h"
#include "drivers/cuda/CudaRoutes.h"

#include <algorithm>

using namespace baechi::runtime;
using namespace baechi::runtime::cuda;

std::string GpuInfo::target() const {
  return name + ", sm_" + std::to_string(capability) + ", cuBLASLt " +
         std::to_string(libraryVersion) +
         (convolutionsVersion ? ", cuDNN " + std::to_string(convolutionsVersion)
                              : "");
}

/// What is free beside the context.
static Error queryMemory(const Api &api, Device device, GpuInfo &info) {
  ContextUse context;
  if (Error error =
          api.error(context.begin(api, device), "the GPU cannot be opened"))
    return error;
  size_t free = 0, total = 0;
  Selection selection(api, context.get());
  Result result = selection.result();
  if (result == success)
    result = api.memGetInfo(&free, &total);
  context.note(result);
  info.memoryBytes = std::max<int64_t>(0, int64_t(free) - gpuReserveBytes);
  return api.error(result, "the GPU does not tell its memory");
}

Expected<GpuInfo> baechi::runtime::queryGpu(int32_t ordinal, int32_t count) {
  Expected<const Api *> loaded = loadApi();
  if (!loaded)
    return loaded.takeError();
  const Api &api = **loaded;
  Expected<int> gpus = api.countGpus();
  if (!gpus)
    return gpus.takeError();
  if (*gpus < 1)
    return Error("CUDA finds no GPU on this machine");
  int number = gpuOf({ordinal, count, {}}, *gpus);
  Device device = 0;
  char name[128] = "";
  int major = 0, minor = 0, engines = 0;
  Result result = api.deviceGet(&device, number);
  if (result == success)
    result = api.deviceGetName(name, sizeof(name), device);
  for (auto [attribute, value] : {std::pair(computeMajor, &major),
                                  {computeMinor, &minor},
                                  {copyEngines, &engines}})
    if (result == success)
      result = api.deviceGetAttribute(value, attribute, device);
  if (Error error = api.error(result, "the GPU cannot be queried"))
    return error;
  GpuInfo info;
  info.number = number;
  info.name = name;
  info.capability = 10 * major + minor;
  info.copyEngines = engines;
  if (Expected<const BlasApi *> blas = loadBlasApi())
    info.libraryVersion = int64_t((*blas)->version());
  if (Expected<const DnnApi *> dnn = loadDnnApi())
    info.convolutionsVersion = int64_t((*dnn)->version());
  if (Error error = queryMemory(api, device, info))
    return error;
  return info;
}
