//===- NcclApi.cpp - NCCL's functions -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "transport/nccl/NcclApi.h"
#include "core/FindLibrary.h"
#include "core/LoadOnce.h"

#include <string>

using namespace baechi::runtime;
using namespace baechi::runtime::nccl;

Problem Api::problem(Result result, const char *what) const {
  if (result == success || result == inProgress)
    return {};
  return {what, getErrorString(result)};
}

static Expected<Api> load() {
  auto refuse = [&](const std::string &why) {
    return Error("NCCL cannot be loaded: " + why +
                 "; install it, name it in BAECHI_NCCL_LIBRARY, or set "
                 "BAECHI_NCCL=0 to take messages between GPUs of different "
                 "processes through host memory");
  };
  std::string why;
  void *library = findLibrary("BAECHI_NCCL_LIBRARY", {"libnccl.so.2"}, why);
  if (!library)
    return refuse(why);
  Api api;
  FindFunctions find{library};
#define F(member, symbol, parameters) find(api.member, symbol);
  BAECHI_NCCL_FUNCTIONS(F)
#undef F
  find(api.getErrorString, "ncclGetErrorString");
  find(api.getLastError, "ncclGetLastError");
  if (find.missing)
    return refuse(std::string("it has no function ") + find.missing +
                  ", which NCCL has since 2.14");
  return api;
}

Expected<const Api *> baechi::runtime::nccl::loadApi() {
  return loadOnce(load);
}
