//===- CudaBlasApi.cpp - cuBLASLt's functions -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "drivers/cuda/CudaBlasApi.h"

#include <dlfcn.h>

#include <cstdlib>
#include <mutex>
#include <type_traits>

using namespace baechi::runtime::cuda;

static bool load(BlasApi &api) {
  const char *given = std::getenv("BAECHI_CUBLASLT_LIBRARY");
  void *library = nullptr;
  for (const char *name : {given, "libcublasLt.so.13", "libcublasLt.so.12"})
    if (!library && name && *name)
      library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return false;
  auto find = [&](auto &function, const char *name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(
        dlsym(library, name));
    return function != nullptr;
  };
  bool all = find(api.statusName, "cublasLtGetStatusName") &&
             find(api.version, "cublasLtGetVersion");
#define F(member, symbol, parameters) all = all && find(api.member, symbol);
  BAECHI_CUBLASLT_FUNCTIONS(F)
#undef F
  return all;
}

const BlasApi *baechi::runtime::cuda::loadBlasApi() {
  static std::mutex mutex;
  static BlasApi api;
  static bool loaded = false;
  std::lock_guard<std::mutex> guard(mutex);
  loaded = loaded || load(api);
  return loaded ? &api : nullptr;
}
