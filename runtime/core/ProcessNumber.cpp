//===- ProcessNumber.cpp - Whether a process was forked -------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/ProcessNumber.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <new>

using namespace baechi::runtime;

namespace {

using Number = std::atomic<uint64_t>;

/// Zero in every new process: the kernel clears its page, whichever call has
/// forked (handlers of pthread_atfork see fork() alone). Null where the kernel
/// does not.
Number *makeCleared() {
  auto size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void *page = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED)
    return nullptr;
  if (madvise(page, size, MADV_WIPEONFORK) != 0) {
    munmap(page, size);
    return nullptr;
  }
  return new (page) Number(0);
}

/// Made before there are threads, in the midst of which a process might fork.
Number *const cleared = makeCleared();
/// The latest of this process and those that it was forked from.
Number latest = 0;

} // namespace

uint64_t baechi::runtime::processNumber() {
  if (!cleared)
    return static_cast<uint64_t>(getpid());
  uint64_t number = cleared->load(std::memory_order_relaxed);
  if (number != 0)
    return number;
  uint64_t mine = ++latest;
  // Another thread may have been first; then it is its number.
  return cleared->compare_exchange_strong(number, mine) ? mine : number;
}
