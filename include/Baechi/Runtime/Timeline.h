//===- Timeline.h - What a step did, and when -------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Times are nanoseconds since the step's start. What did not happen (an
/// aborted step, the timeline switched off) begins at -1.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_TIMELINE_H
#define BAECHI_RUNTIME_TIMELINE_H

#include <cstdint>
#include <vector>

namespace baechi::runtime {

struct Interval {
  int64_t beginNs = -1;
  int64_t endNs = -1;

  bool happened() const { return beginNs >= 0 && endNs >= beginNs; }
  int64_t durationNs() const { return happened() ? endNs - beginNs : 0; }
};

/// The copy of a message: done by whichever end awaited it first.
struct CopyRecord : Interval {
  bool byReceiver = false;
};

struct DeviceRecord {
  /// In the order of the manifest's operators.
  std::vector<Interval> operators;
  /// Time inside operators.
  int64_t busyNs = 0;
  /// Bytes of the messages that left this device. Counted with the timeline
  /// switched off, too.
  int64_t bytesSent = 0;
  /// Of these, the bytes of messages that were lent: nothing was copied.
  int64_t bytesLent = 0;
};

/// A lane of simulated links, in one step or in all of a run of several that
/// overlap.
struct LaneRecord {
  /// What the bytes that it moved take at its bandwidth.
  int64_t usedNs = 0;
  /// While a message that takes it was ready and its bytes had not moved:
  /// beside these, other lanes that it takes, and the machine's delays.
  int64_t waitedNs = 0;
};

struct Timeline {
  /// From the step's start to the moment all devices had ended it.
  int64_t wallNs = 0;
  std::vector<DeviceRecord> devices;
  /// For each queue its messages in `seq` order.
  std::vector<std::vector<CopyRecord>> queues;
  /// By their numbers; none: no link is simulated.
  std::vector<LaneRecord> lanes;
};

} // namespace baechi::runtime

#endif // BAECHI_RUNTIME_TIMELINE_H
