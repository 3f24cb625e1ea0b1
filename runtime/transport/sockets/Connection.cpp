//===- Connection.cpp - Messages over one connection -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "transport/sockets/Connection.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

using namespace baechi::runtime;
using namespace baechi::runtime::sockets;

/// Of a message: others get their turn after it.
static constexpr int64_t pieceBytes = 256 << 10;
/// Less than that is sent: saying where it lies costs as much.
static constexpr int64_t leastReadBytes = 8 << 10;

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

uint64_t Messages::add(const Message &message) {
  if (places.empty()) {
    places.push_back(uint32_t(list.size()));
    list.push_back({});
    list.back().generation = 1;
  }
  uint32_t place = places.back();
  places.pop_back();
  uint32_t generation = list[place].generation;
  list[place] = message;
  list[place].generation = generation;
  return uint64_t(generation) << 32 | place;
}

Message *Messages::find(uint64_t handle) {
  uint32_t place = uint32_t(handle);
  bool there =
      place < list.size() && list[place].generation == uint32_t(handle >> 32);
  return there ? &list[place] : nullptr;
}

void Messages::end(Message &message) {
  endedCount += !message.done && message.epoch == epoch;
  message.done = true;
}

void Messages::free(uint64_t handle) {
  Message &message = of(handle);
  endedCount -= message.done && message.epoch == epoch;
  ++message.generation;
  places.push_back(uint32_t(handle));
}

void Messages::renew(uint32_t session) {
  epoch = session;
  endedCount = 0;
}

//===----------------------------------------------------------------------===//
// Connection
//===----------------------------------------------------------------------===//

void Connection::begin(uint64_t handle) {
  const Message &message = messages.of(handle);
  if (message.sends) {
    auto ready = std::ranges::find_if(readies, [&](const Frame &each) {
      return each.tag == message.tag && each.epoch == message.epoch;
    });
    waiting.push_back(handle);
    if (ready != readies.end()) {
      Frame frame = *ready;
      readies.erase(ready);
      meet(frame);
    }
  } else {
    frames.push_back({Frame::Ready, message.tag, message.epoch,
                      memory.isReadable(), 0, message.bytes, handle, 0});
  }
  write();
}

/// A receiver is ready, for the first message that waits with its tag.
void Connection::meet(const Frame &ready) {
  if (ready.epoch < oldestEpoch)
    return; // Of a session that is over.
  auto first = std::ranges::find_if(waiting, [&](uint64_t handle) {
    const Message &each = messages.of(handle);
    return each.tag == ready.tag && each.epoch == ready.epoch;
  });
  if (first == waiting.end()) {
    readies.push_back(ready);
    return;
  }
  uint64_t handle = *first;
  waiting.erase(first);
  Message &message = messages.of(handle);
  if (message.bytes != ready.bytes)
    return fail("the ranks differ in a message's size", 0);
  message.other = ready.from;
  if (ready.reads && message.bytes >= leastReadBytes)
    frames.push_back({Frame::Place, message.tag, message.epoch, 0,
                      message.other, message.bytes, handle,
                      reinterpret_cast<uintptr_t>(message.data)});
  else
    matched.push_back(handle);
}

void Connection::progress() {
  if (!socket || hungUp || problem)
    return;
  write();
  read();
  readPlace();
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

/// Chooses what goes next; false: nothing.
bool Connection::startFrame() {
  pieceToWrite = 0;
  if (written < frames.size()) {
    outgoing = frames[written++];
    if (written == frames.size()) {
      frames.clear();
      written = 0;
    }
  } else if (!matched.empty()) {
    writing = matched.front();
    const Message &message = messages.of(writing);
    pieceToWrite = std::min(message.bytes - message.moved, pieceBytes);
    outgoing = {Frame::Piece,  message.tag,  message.epoch, 0,
                message.other, pieceToWrite, writing,       0};
  } else {
    return false;
  }
  frameLeft = sizeof(Frame);
  return true;
}

void Connection::write() {
  while (socket && !hungUp && !problem) {
    if (!frameLeft && !pieceToWrite && !startFrame())
      return;
    // Of a message that is gone, zeros: its receiver will be gone, too.
    static const char nothing[pieceBytes] = {};
    Message *message = pieceToWrite || outgoing.kind == Frame::Piece
                           ? messages.find(writing)
                           : nullptr;
    const char *piece = message ? message->data + message->moved : nothing;
    iovec parts[2] = {
        {reinterpret_cast<char *>(&outgoing) + sizeof(Frame) - frameLeft,
         frameLeft},
        {const_cast<char *>(piece), size_t(pieceToWrite)}};
    msghdr header{};
    header.msg_iov = parts;
    header.msg_iovlen = 2;
    ssize_t count = sendmsg(socket.get(), &header, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0) {
      if (errno == EINTR)
        continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK)
        return;
      return fail("a connection failed", errno);
    }
    size_t ofFrame = std::min(frameLeft, size_t(count));
    frameLeft -= ofFrame;
    int64_t ofPiece = count - int64_t(ofFrame);
    pieceToWrite -= ofPiece;
    if (!message)
      continue;
    message->moved += ofPiece;
    if (frameLeft || pieceToWrite)
      continue;
    // Its next piece comes after the others'.
    matched.erase(matched.begin());
    if (message->moved == message->bytes)
      messages.end(*message);
    else
      matched.push_back(writing);
  }
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

/// False when there is no more to read now, or the other end is closed.
bool Connection::readSome(void *data, size_t bytes, size_t &done) {
  for (;;) {
    ssize_t count = recv(socket.get(), data, bytes, MSG_DONTWAIT);
    if (count > 0) {
      done += size_t(count);
      return true;
    }
    if (count == 0) {
      hungUp = true;
      return false;
    }
    if (errno == EINTR)
      continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK)
      fail("a connection failed", errno);
    return false;
  }
}

void Connection::read() {
  while (socket && !hungUp && !problem) {
    if (pieceLeft) {
      static thread_local char nowhere[16 << 10];
      Message *message = messages.find(incoming.to);
      size_t done = 0;
      if (message)
        readSome(message->data + message->moved, size_t(pieceLeft), done);
      else
        readSome(nowhere, std::min(sizeof(nowhere), size_t(pieceLeft)), done);
      if (!done)
        return;
      pieceLeft -= int64_t(done);
      if (message) {
        message->moved += int64_t(done);
        if (message->moved == message->bytes)
          messages.end(*message);
      }
      continue;
    }
    size_t before = frameRead;
    readSome(reinterpret_cast<char *>(&incoming) + frameRead,
             sizeof(Frame) - frameRead, frameRead);
    if (frameRead == before)
      return;
    if (frameRead < sizeof(Frame))
      continue;
    frameRead = 0;
    if (!takeFrame())
      return fail("a connection brings what no rank sends", 0);
  }
}

/// False where it makes no sense.
bool Connection::takeFrame() {
  switch (incoming.kind) {
  case Frame::Ready:
    meet(incoming);
    write();
    return true;
  case Frame::Piece: {
    Message *message = messages.find(incoming.to);
    if (incoming.bytes < 0 || incoming.bytes > pieceBytes ||
        (message &&
         (message->sends || incoming.bytes > message->bytes - message->moved)))
      return false;
    pieceLeft = incoming.bytes;
    if (message && message->bytes == 0)
      messages.end(*message);
    return true;
  }
  case Frame::Goodbye:
    theirGoodbye = true;
    return true;
  case Frame::Proof:
    if (believes)
      memory.meet({incoming.bytes, incoming.address, incoming.from});
    return true;
  case Frame::Place:
    return takePlace();
  case Frame::Taken:
    if (Message *message = messages.find(incoming.to))
      messages.end(*message);
    return true;
  case Frame::Refused:
    if (messages.find(incoming.to))
      matched.push_back(incoming.to);
    write();
    return true;
  }
  return false;
}

//===----------------------------------------------------------------------===//
// The other process's memory
//===----------------------------------------------------------------------===//

void Connection::introduce() {
  if (!socket)
    return;
  believes = true;
  Proof own = Proof::own();
  frames.push_back(
      {Frame::Proof, 0, 0, 0, 0, own.process, own.number, own.address});
  write();
}

void Connection::answer(Frame::Kind kind, uint64_t to) {
  frames.push_back({kind, 0, 0, 0, to, 0, 0, 0});
  write();
}

bool Connection::takePlace() {
  Message *message = messages.find(incoming.to);
  if (!message) {
    answer(Frame::Taken, incoming.from); // by one that is gone
    return true;
  }
  if (message->sends || message->bytes != incoming.bytes)
    return false;
  message->other = incoming.from;
  message->address = incoming.address;
  reading.push_back(incoming.to);
  return true;
}

/// A piece of the message whose turn it is.
void Connection::readPlace() {
  if (reading.empty())
    return;
  uint64_t handle = reading.front();
  reading.erase(reading.begin());
  Message &message = messages.of(handle);
  int64_t bytes = std::min(message.bytes - message.moved, pieceBytes);
  if (!memory.read(message.data + message.moved,
                   message.address + uint64_t(message.moved), bytes)) {
    message.moved = 0;
    return answer(Frame::Refused, message.other);
  }
  message.moved += bytes;
  if (message.moved < message.bytes)
    return reading.push_back(handle);
  messages.end(message);
  answer(Frame::Taken, message.other);
}

//===----------------------------------------------------------------------===//
// The end of messages, and of it all
//===----------------------------------------------------------------------===//

void Connection::forget(uint64_t handle) {
  std::erase(waiting, handle);
  std::erase(matched, handle);
  std::erase(reading, handle);
}

void Connection::forgetBefore(uint32_t epoch) {
  oldestEpoch = epoch;
  std::erase_if(readies, [&](const Frame &each) { return each.epoch < epoch; });
}

void Connection::sayGoodbye() {
  if (!socket)
    return;
  answer(Frame::Goodbye, 0);
}

bool Connection::isLost() const {
  if (!socket || theirGoodbye)
    return false;
  if (hungUp)
    return true;
  pollfd look{socket.get(), POLLRDHUP, 0};
  return ::poll(&look, 1, 0) > 0 && look.revents;
}

void Connection::fail(const char *what, int code) {
  // A process that has ended is no failure of the network.
  if (code == ECONNRESET || code == EPIPE) {
    hungUp = true;
    return;
  }
  problem = what;
  detail = code ? strerrordesc_np(code) : nullptr;
}
