//===- CudaNvtx.cpp - Names for profilers -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "drivers/cuda/CudaNvtx.h"

#include <dlfcn.h>

#include <cstdlib>

using namespace baechi::runtime;
using namespace baechi::runtime::cuda;

Ranges::Ranges(const DeviceInfo &device) : step(device.entry) {
  for (const OperatorInfo &op : device.operators)
    operators.push_back(op.name);
}

Error Ranges::load() {
  const char *given = std::getenv("BAECHI_NVTX_LIBRARY");
  bool chosen = given && *given;
  std::vector<const char *> names{"libnvtx3interop.so.1", "libnvToolsExt.so.1"};
  if (chosen)
    names = {given};
  for (const char *name : names) {
    // Stays: other sessions of this process use it, too.
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library)
      continue;
    push = reinterpret_cast<decltype(push)>(dlsym(library, "nvtxRangePushA"));
    pop = reinterpret_cast<decltype(pop)>(dlsym(library, "nvtxRangePop"));
    if (push && pop)
      return Error();
  }
  return Error("BAECHI_NVTX asks for ranges, but " +
               (chosen ? std::string(given) + " has no NVTX functions"
                       : std::string("neither libnvtx3interop.so.1 nor "
                                     "libnvToolsExt.so.1 can be loaded")) +
               "; name one in BAECHI_NVTX_LIBRARY, or unset BAECHI_NVTX");
}

void Ranges::beginStep() {
  push(step.c_str());
  ++open;
}

void Ranges::begin(size_t op) {
  push(operators[op].c_str());
  ++open;
}

void Ranges::end() {
  pop();
  --open;
}

void Ranges::endStep() {
  while (open > 0)
    end();
}
