//===- SearchTools.cpp - What searches on GPUs share ----------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "measure/SearchTools.h"
#include "Baechi/Runtime/CudaAbi.h"
#include "Baechi/Runtime/Session.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <mutex>

using namespace baechi::runtime;
using namespace baechi::runtime::cuda;

Problem baechi::runtime::fillNumbers(CudaDevice &device, int64_t type, char *to,
                                     int64_t bytes) {
  std::vector<uint32_t> block(size_t(1) << 18);
  uint32_t random = 1;
  for (uint32_t &word : block) {
    random = random * 1664525 + 1013904223;
    float number = (random >> 31 ? -1 : 1) *
                   (0.25F + float(random >> 8 & 0xFFFF) / 131072);
    std::memcpy(&word, &number, sizeof(word));
    // Two numbers of the short types: the same signs, and near enough.
    if (type == BAECHI_CUDA_BF16)
      word = word >> 16 | (word & 0xFFFF0000);
    else if (type == BAECHI_CUDA_F16)
      word = (0x34003400 | (random >> 16 & 0x03FF03FF));
  }
  auto size = int64_t(block.size() * sizeof(block[0]));
  const char *what = "operands of a kernel that is timed cannot be written";
  Problem problem;
  for (int64_t at = 0; at < bytes && !problem; at += size)
    problem = device.check(
        device.copyIn(reinterpret_cast<DevicePointer>(to + at), block.data(),
                      size_t(std::min(size, bytes - at))),
        what);
  // The block goes with this call.
  return problem ? problem : device.check(device.awaitStream(), what);
}

/// Of sorted samples.
static double quantileOf(const std::vector<double> &sorted, double share) {
  return sorted[size_t(std::lround(share * double(sorted.size() - 1)))];
}

CodeTime baechi::runtime::summarize(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  return {
      std::llround(quantileOf(samples, 0.5)),
      std::llround((quantileOf(samples, 0.75) - quantileOf(samples, 0.25)) / 2),
      int64_t(samples.size())};
}

Program baechi::runtime::searchProgram() {
  Program program;
  DeviceInfo &device = program.devices.emplace_back();
  device.name = "cuda0";
  device.kind = "cuda";
  device.entry = "runSearch";
  return program;
}

static std::mutex oneSearch;
/// That of the thread that holds the mutex.
static std::function<int32_t(baechi_context *, char *)> *theSearch = nullptr;

static int32_t runStep(baechi_context *context, char *arena) {
  return (*theSearch)(context, arena);
}

Error baechi::runtime::runSearch(
    const Program &program,
    std::function<int32_t(baechi_context *, char *)> step) {
  std::lock_guard<std::mutex> guard(oneSearch);
  theSearch = &step;
  SessionOptions once;
  once.rehearse = false; // The search itself loads what it times.
  auto session = Session::create(
      program,
      [](const std::string &) { return reinterpret_cast<void *>(runStep); },
      once);
  if (!session)
    return session.takeError();
  return (*session)->step();
}
