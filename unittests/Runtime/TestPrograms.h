//===- TestPrograms.h - Programs written by hand ----------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Entries written in C++ and the manifests around them.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_UNITTESTS_RUNTIME_TESTPROGRAMS_H
#define BAECHI_UNITTESTS_RUNTIME_TESTPROGRAMS_H

#include "Baechi/Runtime/Abi.h"
#include "Baechi/Runtime/Session.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace baechi::runtime::test {

using EntryFunction = int32_t (*)(baechi_context *, char *);

/// A program of the given entries, one device each: "host0", "host1", ... Every
/// device has two operators, "a" and "b", and an arena of `arenaBytes`.
inline Program makeProgram(size_t devices, int64_t arenaBytes = 4096) {
  Program program;
  program.function = "step";
  for (size_t i = 0; i < devices; ++i) {
    std::string number = std::to_string(i);
    program.devices.push_back({"host" + number,
                               "host",
                               "entry" + number,
                               arenaBytes,
                               arenaBytes,
                               {{"a", "a", 0, 0}, {"b", "b", 0, 0}}});
  }
  return program;
}

/// Adds a queue whose messages have these sizes.
inline void addQueue(Program &program, int32_t from, int32_t to,
                     const std::vector<int64_t> &sizes) {
  QueueInfo queue{from, to, {}};
  for (size_t i = 0; i < sizes.size(); ++i)
    queue.messages.push_back(
        {std::string("m") + std::to_string(i), sizes[i], 0, 0});
  program.queues.push_back(queue);
}

/// Resolves "entry0", "entry1", ... to the functions in order.
inline SymbolResolver resolverOf(std::vector<EntryFunction> entries) {
  return [entries = std::move(entries)](const std::string &name) -> void * {
    for (size_t i = 0; i < entries.size(); ++i)
      if (name == "entry" + std::to_string(i))
        return reinterpret_cast<void *>(entries[i]);
    return nullptr;
  };
}

/// A session that must come to be.
inline std::unique_ptr<Session> makeSession(Program program,
                                            std::vector<EntryFunction> entries,
                                            SessionOptions options = {}) {
  auto session = Session::create(std::move(program),
                                 resolverOf(std::move(entries)), options);
  if (!session) {
    ADD_FAILURE() << session.error().message();
    return nullptr;
  }
  return std::move(*session);
}

/// The message of an error; "" for success.
inline std::string messageOf(const Error &error) { return error.message(); }

} // namespace baechi::runtime::test

#endif // BAECHI_UNITTESTS_RUNTIME_TESTPROGRAMS_H
