//===- NcclLane.h - A GPU's messages by NCCL -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// All messages between a GPU and those of other processes, one after the other
/// on one stream, by one communicator.
///
/// A send of NCCL holds its stream until the receiver has come to it, and CUDA
/// does not promise that two streams go on independently. So there is one
/// stream, and one order, the same on all GPUs: by the program's groups
/// (MessageInfo::group), then by planned start, queue and number. A message is
/// issued when all before it have been and its device has offered its buffer.
/// Why that cannot deadlock is in docs/runtime.md.
///
/// The communicator does not block: whoever calls learns later what came of it,
/// and can always give up.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_TRANSPORT_NCCL_NCCLLANE_H
#define BAECHI_RUNTIME_TRANSPORT_NCCL_NCCLLANE_H

#include "drivers/cuda/CudaPort.h"
#include "transport/nccl/NcclApi.h"

#include <vector>

namespace baechi::runtime::nccl {

/// A message of a lane.
struct LaneMessage {
  cuda::CudaPort *port = nullptr;
  int32_t queue = 0, seq = 0;
  int64_t group = 0, startNs = 0;
  /// The other end's rank in the communicator.
  int peer = 0;
  bool sends = false;
  /// In this step: what the device offered, and whether it has been issued.
  void *buffer = nullptr;
  int64_t bytes = 0;
  bool offered = false, issued = false;
};

class Lane {
public:
  Lane(const Api &api, cuda::CudaDevice &device) : api(api), device(device) {}
  Lane(const Lane &) = delete;
  ~Lane();

  /// Before start().
  void add(const LaneMessage &message) { messages.push_back(message); }
  /// The lane's message of that queue and number, once it has started.
  LaneMessage &find(int32_t queue, int32_t seq);

  // To connect all lanes: each step on all of this process, then the next.

  /// Puts the messages in order; a stream, and room for the first exchange.
  Error start();
  /// Within a group of NCCL's.
  Problem join(const UniqueId &id, int ranks, int rank);
  /// Exchanges a byte with each peer: NCCL connects two GPUs when they meet
  /// first, which must not fall into a step.
  Problem greet();
  /// Whether NCCL is through with what it was called for.
  Problem settle(bool &settled) const;
  bool isIdle() const;
  /// NCCL's own words for its last error.
  const char *lastError() const;

  // In a step, on the relay's thread.

  /// The device has offered a message's buffer.
  void offer(LaneMessage &message, void *buffer, int64_t bytes);
  /// Issues what can be.
  Problem advance();

  // To end.

  /// Whatever is under way; the other ranks may never answer.
  void abort();
  /// Begins to take leave of the other ranks, which do the same. Once that has
  /// settled, destroy() is the last call.
  void finalize();
  void destroy();

private:
  Problem issue(size_t first, size_t count);
  bool isReady(const LaneMessage &message) const;

  const Api &api;
  cuda::CudaDevice &device;
  cuda::Stream stream = nullptr;
  Handle handle = nullptr;
  cuda::DevicePointer greetings = 0;
  std::vector<LaneMessage> messages;
  /// The first message that has not been issued, and how many from there on
  /// NCCL is about to launch.
  size_t next = 0, launching = 0;
};

} // namespace baechi::runtime::nccl

#endif // BAECHI_RUNTIME_TRANSPORT_NCCL_NCCLLANE_H
