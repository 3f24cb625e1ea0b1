//===- Connection.h - Messages over one connection -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What goes over a connection, in frames: a receiver's buffer is ready; a
/// piece of a message for it; the end. Nothing blocks.
///
/// Between processes that read each other's memory (PeerMemory.h) a receiver
/// says so, and a long message does not go over the connection: the sender says
/// where it lies, the receiver reads it, piece by piece, and says that it has,
/// or that it cannot, and then it is sent after all. What is read of a sender
/// that has forgotten the message comes to a session that has failed.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_TRANSPORT_SOCKETS_CONNECTION_H
#define BAECHI_RUNTIME_TRANSPORT_SOCKETS_CONNECTION_H

#include "core/Asynchronous.h"
#include "transport/sockets/PeerMemory.h"
#include "transport/sockets/Sockets.h"

#include <poll.h>

#include <atomic>
#include <cstdint>
#include <vector>

namespace baechi::runtime::sockets {

struct Message {
  int32_t peer, tag;
  /// Of the session: Transport::renew().
  uint32_t epoch;
  bool sends;
  int64_t bytes;
  char *data;
  int64_t moved = 0;
  bool done = false;
  /// Of a message that is sent: where it goes, once that is known; of one that
  /// is read: the sender's.
  uint64_t other = 0;
  /// Of one that is read: where it lies.
  uint64_t address = 0;
  /// A place is used for other messages later.
  uint32_t generation = 0;
};

/// The messages under way of a process. A handle is a message's place and
/// generation, so that what comes for one that is gone finds none.
class Messages {
public:
  uint64_t add(const Message &message);
  Message &of(uint64_t handle) { return list[uint32_t(handle)]; }
  const Message &of(uint64_t handle) const { return list[uint32_t(handle)]; }
  /// Null when it is gone.
  Message *find(uint64_t handle);
  /// All of it has been moved.
  void end(Message &message);
  /// Those of this session that have ended and are still there.
  int64_t ended() const { return endedCount; }
  void free(uint64_t handle);
  /// What is left of earlier sessions counts no more.
  void renew(uint32_t session);

private:
  uint32_t epoch = 0;
  int64_t endedCount = 0;
  std::vector<Message> list;
  std::vector<uint32_t> places; ///< that are free
};

class Connection {
public:
  /// None: to oneself.
  Connection(Descriptor socket, Messages &messages)
      : socket(std::move(socket)), messages(messages) {}

  /// To a process of this machine: lets it read this one's memory, and reads
  /// its own. Whoever else says where its memory lies is not believed.
  void introduce();
  void begin(uint64_t handle);
  /// Reads and writes what can be at once.
  void progress();
  /// A message whose buffer may be gone afterwards.
  void forget(uint64_t handle);
  /// What receivers of earlier sessions had asked for.
  void forgetBefore(uint32_t epoch);

  void sayGoodbye();
  /// Something is left to be said, or to be heard.
  bool isOpen() const {
    return socket && !hungUp && !problem &&
           (!theirGoodbye || frameLeft || written < frames.size());
  }
  void close() { socket = Descriptor(); }
  /// What to wait for until there is more to do; -1: for nothing.
  int waitsFor(short &events) const {
    events = short(frameLeft || written < frames.size() || !matched.empty()
                       ? POLLIN | POLLOUT
                       : POLLIN);
    return socket && !hungUp && !problem ? socket.get() : -1;
  }
  bool isBusy() const { return !reading.empty(); }

  /// The other process has ended, in whatever way but goodbye. By any thread,
  /// and in signal handlers.
  bool isLost() const;
  /// Of the connection itself, while the other process may be alive; or that it
  /// has said goodbye, and takes and gives nothing any more.
  Problem failure() const {
    if (theirGoodbye && !problem)
      return {"its process has left", nullptr};
    return {problem, detail};
  }

private:
  struct Frame {
    enum Kind : int32_t {
      Ready,
      Piece,
      Goodbye,
      Proof, ///< PeerMemory.h; `bytes` is the process, `from` the number
      Place, ///< where a message lies
      Taken, ///< it was read
      Refused
    };
    Kind kind;
    int32_t tag;
    uint32_t epoch;
    /// Of a receiver: it can read the sender's memory.
    uint32_t reads;
    /// The handle of who gets this.
    uint64_t to;
    int64_t bytes;
    /// The handle of who sends it.
    uint64_t from;
    uint64_t address;
  };
  static_assert(sizeof(Frame) == 48);

  void read();
  void write();
  bool readSome(void *data, size_t bytes, size_t &done);
  bool takeFrame();
  bool startFrame();
  void readPlace();
  bool takePlace();
  void answer(Frame::Kind kind, uint64_t to);
  void meet(const Frame &ready);
  void fail(const char *what, int code);

  Descriptor socket;
  Messages &messages;
  std::atomic<bool> theirGoodbye{false}, hungUp{false};
  const char *problem = nullptr, *detail = nullptr;

  /// What is being read: a frame, then its piece into a message or nowhere.
  Frame incoming{};
  size_t frameRead = 0;
  int64_t pieceLeft = 0;

  /// What is being written.
  Frame outgoing{};
  size_t frameLeft = 0;
  int64_t pieceToWrite = 0;
  uint64_t writing = 0;      ///< the message; it may be gone
  std::vector<Frame> frames; ///< that go before pieces, from `written` on
  size_t written = 0;
  std::vector<uint64_t> matched; ///< messages with receivers, in turn
  bool believes = false;         ///< what the other says of its memory
  PeerMemory memory;
  std::vector<uint64_t> reading; ///< messages that are read, in turn

  std::vector<uint64_t> waiting; ///< to be sent, without receivers
  std::vector<Frame> readies;    ///< of receivers without messages
  uint32_t oldestEpoch = 0;
};

} // namespace baechi::runtime::sockets

#endif // BAECHI_RUNTIME_TRANSPORT_SOCKETS_CONNECTION_H
