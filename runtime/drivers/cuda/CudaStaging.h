//===- CudaStaging.h - Copies between GPUs through the host -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Where two GPUs do not reach each other's memory, a message goes to pinned
/// host memory and from there on, in pieces that take turns in two halves of a
/// buffer, so that the two copies overlap. A stream of the sender fills a half,
/// the queue's stream, which is the receiver's, empties it; events order them.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_DRIVERS_CUDA_CUDASTAGING_H
#define BAECHI_RUNTIME_DRIVERS_CUDA_CUDASTAGING_H

#include "drivers/cuda/CudaDevice.h"

#include <mutex>

namespace baechi::runtime::cuda {

class Staging {
public:
  /// The largest piece: some 80 microseconds of PCIe, ten times what it costs
  /// to tell two GPUs of it.
  static constexpr int64_t mostPieceBytes = int64_t(2) << 20;

  Staging(CudaDevice &sender, CudaDevice &receiver, Stream into)
      : sender(sender), receiver(receiver), api(sender.api()), into(into) {}
  Staging(const Staging &) = delete;
  /// What uses the buffer on `into` must have ended.
  ~Staging();

  /// Allocates for messages of up to `largest` bytes.
  Error start(int64_t largest);

  /// Begins to copy, after `sent`, into what `into` has been told to wait for;
  /// it is copied when `into` comes to its end. Leaves the receiver selected.
  /// Threads of both devices call it.
  Result copy(Event sent, const void *source, void *destination, int64_t bytes);

  /// Whether nothing is left to be copied out of the sender.
  bool isIdle() const { return api.streamQuery(out) != notReady; }
  int64_t bytes() const { return 2 * pieceBytes; }

private:
  struct Half {
    char *memory = nullptr;
    Event filled = nullptr, emptied = nullptr;
    bool wasEmptied = false; ///< that event has been recorded
  };
  Result copyPiece(Half &half, const char *source, char *destination,
                   size_t bytes);

  CudaDevice &sender;
  CudaDevice &receiver;
  const Api &api;
  const Stream into;
  Stream out = nullptr;
  void *buffer = nullptr;
  int64_t pieceBytes = 0;
  /// A message's copies are told to both streams without another's between.
  std::mutex mutex;
  Half halves[2];
  size_t next = 0;
};

} // namespace baechi::runtime::cuda

#endif // BAECHI_RUNTIME_DRIVERS_CUDA_CUDASTAGING_H
