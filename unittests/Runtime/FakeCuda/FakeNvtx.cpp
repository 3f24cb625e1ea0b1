//===- FakeNvtx.cpp - Ranges, noted -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FakeCuda.h"

#include <mutex>
#include <string>

namespace {
struct Notes {
  std::mutex mutex;
  std::string text;
};
Notes &notes() {
  static Notes all;
  return all;
}
thread_local int depth = 0;
} // namespace

extern "C" {

int nvtxRangePushA(const char *name) {
  std::lock_guard<std::mutex> guard(notes().mutex);
  notes().text += std::string(size_t(depth), ' ') + name + "\n";
  return depth++;
}

int nvtxRangePop() {
  std::lock_guard<std::mutex> guard(notes().mutex);
  if (depth == 0)
    notes().text += "a range is ended that had not begun\n";
  else
    --depth;
  return depth;
}

const char *fakeNvtxRanges() {
  static std::string taken;
  std::lock_guard<std::mutex> guard(notes().mutex);
  taken.swap(notes().text);
  notes().text.clear();
  return taken.c_str();
}
}
