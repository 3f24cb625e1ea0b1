//===- Port.h - Where devices meet other ranks -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The transport reaches host memory. A queue between ranks whose end here is a
/// device with memory of its own has a port at that end: it moves messages
/// between the device and host memory for the transport, or straight to the
/// other rank's device. The relay's thread (RankRelay.h) works it; the device's
/// thread calls it as any Mover, and is ordered rather than made to wait.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_CORE_PORT_H
#define BAECHI_RUNTIME_CORE_PORT_H

#include "core/Asynchronous.h"

#include <memory>
#include <vector>

namespace baechi::runtime {

class Port : public Mover {
public:
  /// Of a message that has begun.
  enum class State : uint8_t {
    Waiting, ///< the device must wait
    Ordered, ///< the device may go on: awaited() orders it
    Ended    ///< and the port is through with it
  };

  /// Memory that the transport sends from or receives into; null where the port
  /// moves messages itself.
  virtual void *hostBuffer(int32_t /*seq*/) { return nullptr; }

  /// Whether a message that the device has offered may begin, or has to wait
  /// for others to end.
  virtual bool mayBegin(int32_t /*seq*/) const { return true; }
  /// A message that has begun has ended, for the transport, too.
  virtual void ended(int32_t /*seq*/) {}

  /// A message that the device has offered: to be sent, or received (with a
  /// host buffer: which has arrived there).
  virtual Problem begin(int32_t seq, void *buffer, int64_t bytes) = 0;
  virtual Problem poll(int32_t seq, State &state) = 0;

  Problem copy(int32_t, const void *, void *, int64_t) final {
    return {"a message to another process cannot be copied here"};
  }
};

/// What the ports of a session share, where they do not use the transport.
class Fabric {
public:
  virtual ~Fabric() = default;

  /// Every few milliseconds of a step: what has failed since.
  virtual Problem check() = 0;
  /// Ends all that is under way here, when a step fails: no other rank may ever
  /// answer. No step comes after it.
  virtual void abort() = 0;
};

/// What connects the devices of a kind to other ranks.
struct RankConnections {
  struct Connection {
    size_t queue;
    std::unique_ptr<Port> port;
  };
  /// Null: there is none.
  std::unique_ptr<Fabric> fabric;
  std::vector<Connection> ports;
};

} // namespace baechi::runtime

#endif // BAECHI_RUNTIME_CORE_PORT_H
