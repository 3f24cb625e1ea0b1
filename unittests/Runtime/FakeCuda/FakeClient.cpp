//===- FakeClient.cpp - The fake driver for the tests that steer it -===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The tests do not link the fake: its functions have the driver's names, and
/// what a test program defines is what NVIDIA's own libraries would find. It is
/// opened when it is first steered, by the path that is the runtime's, too.
///
//===----------------------------------------------------------------------===//

#include "FakeCuda.h"

#include <cstdio>
#include <cstdlib>

#include <dlfcn.h>

const char *fakecuda::path() {
  const char *given = std::getenv("BAECHI_FAKE_CUDA");
  return given && *given ? given : BAECHI_FAKE_CUDA;
}

void *fakecuda::find(const char *function) {
  static void *library = dlopen(path(), RTLD_NOW | RTLD_LOCAL);
  void *found = library ? dlsym(library, function) : nullptr;
  if (!found) {
    std::fprintf(stderr, "the fake driver has no %s: %s\n", function,
                 dlerror());
    std::abort();
  }
  return found;
}

template <typename Result, typename... Parameters>
static Result steer(const char *function, Parameters... parameters) {
  return reinterpret_cast<Result (*)(Parameters...)>(fakecuda::find(function))(
      parameters...);
}

using fakecuda::FakeOptions;

void fakeCudaReset(const FakeOptions *options) {
  steer<void, const FakeOptions *>("fakeCudaReset", options);
}
int fakeCudaCalls() { return steer<int>("fakeCudaCalls"); }
int fakeCudaLoads() { return steer<int>("fakeCudaLoads"); }
int fakeCudaGraphLaunches() { return steer<int>("fakeCudaGraphLaunches"); }
int fakeCudaLongestChain() { return steer<int>("fakeCudaLongestChain"); }
void fakeCudaFail(const char *function) {
  steer<void, const char *>("fakeCudaFail", function);
}
void fakeCudaHold() { steer<void>("fakeCudaHold"); }
void fakeCudaBreak() { steer<void>("fakeCudaBreak"); }
void fakeCudaRelease() { steer<void>("fakeCudaRelease"); }
const char *fakeNcclLog() { return steer<const char *>("fakeNcclLog"); }
const char *fakeNvtxRanges() { return steer<const char *>("fakeNvtxRanges"); }
const char *fakeCudaMisuse() { return steer<const char *>("fakeCudaMisuse"); }
