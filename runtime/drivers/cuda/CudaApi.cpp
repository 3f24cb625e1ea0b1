//===- CudaApi.cpp - The CUDA driver's functions -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "drivers/cuda/CudaApi.h"
#include "core/LoadOnce.h"

#include <dlfcn.h>

#include <cstdlib>
#include <string>

using namespace baechi::runtime;
using namespace baechi::runtime::cuda;

static const char *textOf(Result (*get)(Result, const char **), Result result) {
  const char *text = nullptr;
  return get(result, &text) == success && text ? text
                                               : "an error without a name";
}

Problem Api::problem(Result result, const char *what) const {
  if (result == success)
    return {};
  return {what, textOf(getErrorName, result)};
}

Error Api::error(Result result, const char *what) const {
  if (result == success)
    return Error();
  return Error(std::string(what) + ": " + textOf(getErrorName, result) + " (" +
               textOf(getErrorString, result) + ")");
}

Expected<int> Api::countGpus() const {
  int count = 0;
  if (Error failed = error(deviceGetCount(&count), "GPUs cannot be counted"))
    return failed;
  return count;
}

static Expected<Api> load() {
  const char *given = std::getenv("BAECHI_CUDA_LIBRARY");
  const char *name = given && *given ? given : "libcuda.so.1";
  void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char *why = dlerror();
    return Error(std::string("the CUDA driver cannot be loaded: ") +
                 (why ? why : name) +
                 "; install NVIDIA's driver, or take host devices");
  }
  Api api;
#define F(member, symbol, parameters)                                          \
  api.member = reinterpret_cast<Result(*) parameters>(dlsym(library, symbol)); \
  if (!api.member)                                                             \
    return Error(std::string(name) + " has no function " + symbol +            \
                 ": a CUDA driver of version 12 or newer is needed");
  BAECHI_CUDA_FUNCTIONS(F)
#undef F
#define F(member, symbol, parameters)                                          \
  api.member = reinterpret_cast<Result(*) parameters>(dlsym(library, symbol));
  BAECHI_CUDA_LATER_FUNCTIONS(F)
#undef F
  if (Error error = api.error(api.init(0), "CUDA cannot be initialised"))
    return error;
  return api;
}

Expected<const Api *> baechi::runtime::cuda::loadApi() {
  return loadOnce(load);
}
