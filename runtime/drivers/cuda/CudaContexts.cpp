//===- CudaContexts.cpp - One context a GPU, for the whole process -===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "drivers/cuda/CudaContexts.h"

#include <map>
#include <mutex>

using namespace baechi::runtime;
using namespace baechi::runtime::cuda;

namespace {
struct Known {
  Context context = nullptr;
  int uses = 0;
  int64_t arenas = 0;
  bool broken = false;
};

struct Table {
  std::mutex mutex;
  std::map<Device, Known> contexts;
};

/// Never destroyed: sessions may end with the program.
Table &table() {
  static Table *all = new Table;
  return *all;
}
} // namespace

bool cuda::isSticky(Result result) {
  switch (result) {
  case 214: // an uncorrectable error of the memory,
  case 220: // of NVLink
  case 700: // an illegal address
  case 702: // a kernel that ran too long
  case 709: // the context was destroyed
  case 710: // an assertion
  case 714: // the stack
  case 715: // an illegal instruction
  case 716: // a misaligned address
  case 717: // an address of another space
  case 718: // an invalid program counter
  case 719: // any other exception of a kernel
    return true;
  default:
    return false;
  }
}

Result ContextUse::begin(const Api &given, Device of) {
  Table &all = table();
  std::lock_guard<std::mutex> guard(all.mutex);
  Known &known = all.contexts[of];
  if (!known.context)
    if (Result result = given.primaryRetain(&known.context, of)) {
      known.context = nullptr;
      return result;
    }
  ++known.uses;
  api = &given;
  device = of;
  context = known.context;
  return success;
}

void ContextUse::end() {
  if (!context)
    return;
  Table &all = table();
  std::lock_guard<std::mutex> guard(all.mutex);
  Known &known = all.contexts[device];
  known.broken = known.broken || broken;
  known.arenas -= arena;
  arena = 0;
  context = nullptr;
  if (--known.uses > 0 || !known.broken)
    return;
  api->primaryRelease(device);
  known = Known();
}

void ContextUse::holdArena(int64_t bytes) {
  Table &all = table();
  std::lock_guard<std::mutex> guard(all.mutex);
  all.contexts[device].arenas += bytes - arena;
  arena = bytes;
}

int64_t ContextUse::arenas() const {
  Table &all = table();
  std::lock_guard<std::mutex> guard(all.mutex);
  return all.contexts[device].arenas;
}

Selection::Selection(const Api &api, Context context) : api(api) {
  selected = api.getCurrent(&before);
  if (selected == success && before != context)
    selected = api.setCurrent(context);
}

Selection::~Selection() {
  if (selected == success)
    api.setCurrent(before);
}
