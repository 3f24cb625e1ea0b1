//===- CudaModules.cpp - GPU code of a program, loaded where it runs -*- C++
//-*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "drivers/cuda/CudaModules.h"

using namespace baechi::runtime;
using namespace baechi::runtime::cuda;

/// An arena may be planned as large as what is free.
static Problem loadCode(const Api &api, const void *image, Module &module) {
  Result result = api.moduleLoad(&module, image);
  return api.problem(result,
                     result == outOfMemory
                         ? "the arenas leave no memory for GPU code, which is "
                           "in no plan: lower the device's limit "
                           "(--machine=cuda:1@SIZE)"
                         : "GPU code cannot be loaded");
}

Problem Modules::find(const Api &api, const void *image, const char *kernel,
                      Function &function) {
  auto [entry, isNew] = functions.try_emplace({image, kernel}, nullptr);
  if (!isNew) {
    function = entry->second;
    return {};
  }
  auto [module, load] = modules.try_emplace(image, nullptr);
  if (load)
    if (Problem problem = loadCode(api, image, module->second)) {
      modules.erase(module);
      functions.erase(entry);
      return problem;
    }
  if (Problem problem = api.problem(
          api.moduleGetFunction(&entry->second, module->second, kernel),
          "a kernel is not in the program's GPU code")) {
    functions.erase(entry);
    return problem;
  }
  function = entry->second;
  return {};
}

void Modules::unload(const Api &api) {
  for (auto &[image, module] : modules)
    api.moduleUnload(module);
  modules.clear();
  functions.clear();
}
