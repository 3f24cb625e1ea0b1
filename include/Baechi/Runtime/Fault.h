//===- Fault.h - Faults that a test injects ---------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A session asks its injector, if it has one, before each call that could
/// fail. Without one that is a look at a null pointer.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_FAULT_H
#define BAECHI_RUNTIME_FAULT_H

#include <atomic>
#include <cstdint>

namespace baechi::runtime {

/// What can fail, in the order of a session's life.
enum class Call : uint8_t {
  Create,      ///< the session's own tables
  StartThread, ///< one for each device
  Pin,         ///< a device's thread to its processor
  StartDevice, ///< its arena
  WriteArena,
  ReadArena,
  BeginOperator,
  EndOperator,
  Send,
  Receive,
  AwaitSend,
  AwaitReceive,
  Borrow,
  GiveBack,
  EndStep, ///< a device's step function returns
};

class FaultInjector {
public:
  virtual ~FaultInjector() = default;

  /// Whether this call fails. Called by the thread that makes the call, so by
  /// several at once; may block, which stops that thread.
  virtual bool fails(Call call) = 0;
};

/// Makes the n-th call fail, counted from 1 over all threads, and no other.
class NthCallFails : public FaultInjector {
public:
  explicit NthCallFails(int64_t n) : n(n), left(n) {}

  bool fails(Call) override {
    return left.fetch_sub(1, std::memory_order_relaxed) == 1;
  }
  /// Whether it came to that call.
  bool happened() const { return left.load(std::memory_order_relaxed) <= 0; }
  /// How many calls there were.
  int64_t calls() const { return n - left.load(std::memory_order_relaxed); }

private:
  const int64_t n;
  std::atomic<int64_t> left;
};

} // namespace baechi::runtime

#endif // BAECHI_RUNTIME_FAULT_H
