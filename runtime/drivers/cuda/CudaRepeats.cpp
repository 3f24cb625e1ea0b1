//===- CudaRepeats.cpp - Operators' times by repeats -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "drivers/cuda/CudaRepeats.h"
#include "drivers/cuda/CudaDevice.h"

#include <cmath>

using namespace baechi::runtime;
using namespace baechi::runtime::cuda;

Problem Repeater::open(DevicePointer from, size_t size) {
  if (size > 0 && !copy)
    if (Problem problem =
            device.check(device.api().memAlloc(&copy, size),
                         "there is no memory for a copy of the arena"))
      return problem;
  arena = from;
  bytes = size;
  return watch.open();
}

void Repeater::close() {
  watch.close();
  if (copy)
    device.api().memFree(copy);
  copy = 0;
}

Problem Repeater::end(size_t op) {
  isOpen = false;
  times[op] = 0;
  if (words.empty())
    return {};
  const Api &api = device.api();
  auto move = [&](DevicePointer to, DevicePointer from) -> Problem {
    if (bytes == 0)
      return {};
    return device.check(
        api.memcpyAsync(to, from, bytes, device.computeStream()),
        "the arena cannot be copied");
  };
  auto work = [&](bool capturing) { return perform(device, words, capturing); };
  Stopwatch::Repeats repeats;
  double ns = 0;
  Problem problem = move(copy, arena);
  if (!problem)
    problem = watch.prepare(work, /*warmUps=*/1, repeats);
  if (!problem)
    problem = watch.sample(work, repeats, ns);
  watch.release(repeats);
  times[op] = std::llround(ns);
  if (!problem)
    problem = move(arena, copy);
  return problem ? problem : perform(device, words);
}
