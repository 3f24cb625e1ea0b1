//===- Asynchronous.h - Devices that work behind their threads --*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A host device has done what its thread has called. Others (a GPU) are only
/// told what to do by then: their messages are copied by a Mover, which orders
/// the copies among what both ends were told, and their operators' times are
/// marked on the device.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_CORE_ASYNCHRONOUS_H
#define BAECHI_RUNTIME_CORE_ASYNCHRONOUS_H

#include "Baechi/Runtime/Timeline.h"

#include <cstdint>

namespace baechi::runtime {

class Exchange;

enum class Side : uint8_t { Sender, Receiver };

/// Why a call of a device's library failed; both texts are static. No reason:
/// it did not.
struct Problem {
  const char *reason = nullptr;
  const char *detail = nullptr;
  explicit operator bool() const { return reason != nullptr; }
};

/// Moves the messages of one queue. At least one of its ends is no host memory.
class Mover {
public:
  virtual ~Mover() = default;

  /// On the side's thread, before it offers its buffer: the copy comes after
  /// all that the side was told to do by now.
  virtual Problem offered(Side side, int32_t seq) = 0;

  /// On either side's thread, once both have offered: begins the copy.
  virtual Problem copy(int32_t seq, const void *source, void *destination,
                       int64_t bytes) = 0;

  /// On the side's thread, after copy(): all that the side does from now on
  /// comes after the copy. Returns early when the step was aborted.
  virtual Problem awaited(Side side, int32_t seq, const Exchange &exchange) = 0;

  /// Of a message that is lent, which nobody copies, on the receiver's thread:
  /// all that the receiver does from now on comes after what the sender was
  /// told to do before its offer; what the sender does after awaited() comes
  /// after all that the receiver was told to do before it gave the tensor back.
  virtual Problem borrowed(int32_t /*seq*/) { return cannotLend; }
  virtual Problem givenBack(int32_t /*seq*/) { return cannotLend; }

  /// After a failed step, of which copies may be left: whether they have ended.
  virtual bool isIdle() = 0;

  /// Pinned host memory that it holds to take messages through.
  virtual int64_t stagingBytes() const { return 0; }

  /// copy() ends with the copy, whoever calls it, and keeps no times.
  virtual bool copiesAtOnce() const { return false; }

  /// Between steps: when the copy was made, ns since the step's start.
  virtual Interval timeOf(int32_t seq) const = 0;

private:
  static constexpr Problem cannotLend{"a message cannot be lent",
                                      "the devices share no memory"};
};

/// Where a device notes what its operators do. `timed`: also when. On its
/// thread.
class OperatorMarks {
public:
  virtual ~OperatorMarks() = default;
  virtual Problem begin(int32_t op, bool timed) = 0;
  virtual Problem end(int32_t op, bool timed) = 0;
  /// Before the thread waits: all that the device was told must be under way.
  virtual Problem flush() = 0;
};

} // namespace baechi::runtime

#endif // BAECHI_RUNTIME_CORE_ASYNCHRONOUS_H
