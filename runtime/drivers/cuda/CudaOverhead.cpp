//===- CudaOverhead.cpp - Memory of a GPU beside the arenas ---------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "drivers/cuda/CudaOverhead.h"

#include <algorithm>

using namespace baechi::runtime::cuda;

/// What is free and what arenas have; negative where the driver does not tell.
static int64_t freeAndArenas(const Api &api, const ContextUse &context) {
  size_t free = 0, total = 0;
  if (api.memGetInfo(&free, &total) != success)
    return -1;
  return int64_t(free) + context.arenas();
}

void Overhead::begin(const Api &api, const ContextUse &context) {
  atFirst = freeAndArenas(api, context);
}

void Overhead::look(const Api &api, const ContextUse &context) {
  int64_t now = freeAndArenas(api, context);
  if (atFirst < 0 || now < 0)
    return;
  most.store(std::max(bytes(), atFirst - now), std::memory_order_relaxed);
}
