//===- CudaBlasApi.cpp - cuBLASLt's functions -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "drivers/cuda/CudaBlasApi.h"
#include "core/FindLibrary.h"
#include "core/LoadOnce.h"

using namespace baechi::runtime;
using namespace baechi::runtime::cuda;

/// The newest library that the driver runs: it serves all older ones.
static std::vector<std::string> names() {
  std::vector<std::string> names{"libcublasLt.so.12"};
  Expected<const Api *> driver = loadApi();
  int version = 0;
  if (driver && (*driver)->driverVersion(&version) == success &&
      version >= 13000)
    names.insert(names.begin(), "libcublasLt.so.13");
  return names;
}

static Expected<BlasApi> load() {
  std::string why;
  void *library = findLibrary("BAECHI_CUBLASLT_LIBRARY", names(), why);
  if (!library)
    return Error(why + "; install it (pip install nvidia-cublas), or name its "
                       "file in BAECHI_CUBLASLT_LIBRARY");
  BlasApi api;
  FindFunctions find{library};
  find(api.statusName, "cublasLtGetStatusName");
  find(api.version, "cublasLtGetVersion");
#define F(member, symbol, parameters) find(api.member, symbol);
  BAECHI_CUBLASLT_FUNCTIONS(F)
#undef F
  if (find.missing)
    return Error(std::string("it has no function ") + find.missing +
                 "; name the file of cuBLASLt 12 or newer in "
                 "BAECHI_CUBLASLT_LIBRARY");
  return api;
}

Expected<const BlasApi *> baechi::runtime::cuda::loadBlasApi() {
  return loadOnce(load);
}
