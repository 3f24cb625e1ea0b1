//===- CompileThreads.h - Threads that compile ------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_CONVERSION_HOSTJIT_COMPILETHREADS_H
#define BAECHI_CONVERSION_HOSTJIT_COMPILETHREADS_H

#include "llvm/Support/ThreadPool.h"
#include <condition_variable>
#include <functional>
#include <mutex>

namespace baechi {

/// The threads that compile for some HostJits. Work begins in the order in
/// which it was given, so what is needed first is given first.
class CompileThreads {
public:
  explicit CompileThreads(unsigned threads)
      : threads(threads), pool(llvm::hardware_concurrency(threads)) {}

  /// Work that is waited for together. Its end waits, too.
  class Batch {
  public:
    explicit Batch(CompileThreads &owner) : owner(owner), group(owner.pool) {}
    void begin(std::function<void()> work);
    void wait() { group.wait(); }

  private:
    CompileThreads &owner;
    llvm::ThreadPoolTaskGroup group;
  };

  /// While it lives, one processor is left to who has it, as what is timed
  /// there has a neighbour less: so many fewer threads work, be it none. Its
  /// beginning waits for a thread to end what it is at. Who has it waits for
  /// no batch.
  class Room {
  public:
    explicit Room(CompileThreads &owner);
    ~Room();
    Room(const Room &) = delete;
    Room &operator=(const Room &) = delete;

  private:
    CompileThreads &owner;
  };

private:
  bool isFull() const { return working + rooms >= threads; }

  const unsigned threads;
  std::mutex mutex; ///< of what follows
  std::condition_variable changed;
  unsigned working = 0, rooms = 0;
  llvm::DefaultThreadPool pool; ///< whose end waits for what uses the others
};

} // namespace baechi

#endif // BAECHI_CONVERSION_HOSTJIT_COMPILETHREADS_H
