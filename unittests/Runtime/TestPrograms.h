//===- TestPrograms.h - Programs written by hand ----------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Step functions written in C++ and the manifests around them.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_UNITTESTS_RUNTIME_TESTPROGRAMS_H
#define BAECHI_UNITTESTS_RUNTIME_TESTPROGRAMS_H

#include "Baechi/Runtime/Abi.h"
#include "Baechi/Runtime/Session.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace baechi::runtime::test {

using Context = baechi_context *;
/// What a device does in a step.
using Body = std::function<int32_t(Context, char *)>;

/// The bodies behind the symbols "entry0", "entry1", ... One set at a time:
/// sessions that live together share it.
inline constexpr size_t maxBodies = 8;
inline Body bodies[maxBodies];

template <size_t I> int32_t callBody(Context context, char *arena) {
  return bodies[I](context, arena);
}

inline void *resolveBody(const std::string &name) {
  static constexpr int32_t (*entries[maxBodies])(Context, char *) = {
      callBody<0>, callBody<1>, callBody<2>, callBody<3>,
      callBody<4>, callBody<5>, callBody<6>, callBody<7>};
  for (size_t i = 0; i < maxBodies; ++i)
    if (name == "entry" + std::to_string(i))
      return reinterpret_cast<void *>(entries[i]);
  return nullptr;
}

/// Devices "host0", "host1", ... with two operators each, "a" and "b".
inline Program makeProgram(size_t devices, int64_t arenaBytes = 4096) {
  Program program;
  program.function = "step";
  for (size_t i = 0; i < devices; ++i) {
    DeviceInfo device;
    device.name = "host" + std::to_string(i);
    device.kind = "host";
    device.entry = "entry" + std::to_string(i);
    device.arenaBytes = device.memory = arenaBytes;
    device.operators = {{"a", "kernel_a", 0, 0}, {"b", "kernel_b", 0, 0}};
    program.devices.push_back(std::move(device));
  }
  return program;
}

/// Adds a queue with messages "m0", "m1", ... of these sizes.
inline void addQueue(Program &program, int32_t from, int32_t to,
                     const std::vector<int64_t> &sizes) {
  QueueInfo queue{from, to, {}};
  for (size_t i = 0; i < sizes.size(); ++i) {
    queue.messages.push_back({"m", sizes[i], 0, 0});
    queue.messages.back().name += std::to_string(i);
  }
  program.queues.push_back(std::move(queue));
}

inline void addArgument(Program &program, int32_t device, int64_t offset,
                        int64_t bytes) {
  ArgumentInfo argument;
  argument.name = "argument";
  argument.device = device;
  argument.offset = offset;
  argument.bytes = bytes;
  argument.type = ElementType::I8;
  argument.shape = {bytes};
  program.arguments.push_back(std::move(argument));
}

inline void addResult(Program &program, int32_t device, int64_t offset,
                      int64_t bytes) {
  program.results.push_back(
      {"result", device, offset, bytes, ElementType::I8, {bytes}});
}

/// A session that must come to be; null with a test failure otherwise.
inline std::unique_ptr<Session> makeSession(Program program,
                                            std::vector<Body> given,
                                            SessionOptions options = {}) {
  std::move(given.begin(), given.end(), bodies);
  auto session = Session::create(std::move(program), resolveBody, options);
  if (!session) {
    ADD_FAILURE() << session.error().message();
    return nullptr;
  }
  return std::move(*session);
}

/// Why a session cannot be created; "" with a test failure if it can.
inline std::string creationError(Program program, SessionOptions options = {}) {
  auto session = Session::create(std::move(program), resolveBody, options);
  if (session) {
    ADD_FAILURE() << "the session was created";
    return "";
  }
  return session.error().message();
}

inline int32_t sendAndWait(Context context, int32_t queue, int32_t seq,
                           const void *source) {
  if (int32_t stop = baechi_send(context, queue, seq, source))
    return stop;
  return baechi_await_send(context, queue, seq);
}

inline int32_t recvAndWait(Context context, int32_t queue, int32_t seq,
                           void *destination) {
  if (int32_t stop = baechi_recv(context, queue, seq, destination))
    return stop;
  return baechi_await_recv(context, queue, seq);
}

inline int32_t doNothing(Context, char *) { return 0; }

#define EXPECT_SUCCESS(expression)                                             \
  EXPECT_EQ("", ::baechi::runtime::Error(expression).message())
#define ASSERT_SUCCESS(expression)                                             \
  ASSERT_EQ("", ::baechi::runtime::Error(expression).message())

} // namespace baechi::runtime::test

#endif // BAECHI_UNITTESTS_RUNTIME_TESTPROGRAMS_H
