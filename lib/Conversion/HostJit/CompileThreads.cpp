//===- CompileThreads.cpp - Threads that compile ----------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Conversion/HostJit/CompileThreads.h"

using namespace baechi;

void CompileThreads::Batch::begin(std::function<void()> work) {
  group.async([&owner = owner, work = std::move(work)] {
    {
      std::unique_lock<std::mutex> lock(owner.mutex);
      owner.changed.wait(lock, [&] { return !owner.isFull(); });
      ++owner.working;
    }
    work();
    std::lock_guard<std::mutex> lock(owner.mutex);
    --owner.working;
    owner.changed.notify_all();
  });
}

CompileThreads::Room::Room(CompileThreads &owner) : owner(owner) {
  std::unique_lock<std::mutex> lock(owner.mutex);
  ++owner.rooms;
  owner.changed.wait(lock, [&] {
    return owner.working == 0 || owner.working + owner.rooms <= owner.threads;
  });
}

CompileThreads::Room::~Room() {
  std::lock_guard<std::mutex> lock(owner.mutex);
  --owner.rooms;
  owner.changed.notify_all();
}
