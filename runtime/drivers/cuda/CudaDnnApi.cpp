//===- CudaDnnApi.cpp - cuDNN's graph interface -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "drivers/cuda/CudaDnnApi.h"
#include "core/FindLibrary.h"
#include "core/LoadOnce.h"

using namespace baechi::runtime;
using namespace baechi::runtime::cuda;

static Expected<DnnApi> load() {
  std::string why;
  void *library = findLibrary("BAECHI_CUDNN_LIBRARY", {"libcudnn.so.9"}, why);
  if (!library)
    return Error(why + "; install it (pip install nvidia-cudnn-cu13), name its "
                       "file in BAECHI_CUDNN_LIBRARY, or compile with "
                       "--cuda-convolutions=generated");
  DnnApi api;
  FindFunctions find{library};
  find(api.statusName, "cudnnGetErrorString");
  find(api.version, "cudnnGetVersion");
#define F(member, symbol, parameters) find(api.member, symbol);
  BAECHI_CUDNN_FUNCTIONS(F)
#undef F
  if (find.missing)
    return Error(std::string("it has no function ") + find.missing +
                 "; name the file of cuDNN 9 in BAECHI_CUDNN_LIBRARY");
  return api;
}

Expected<const DnnApi *> baechi::runtime::cuda::loadDnnApi() {
  return loadOnce(load);
}
