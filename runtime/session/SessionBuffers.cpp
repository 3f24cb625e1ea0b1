//===- SessionBuffers.cpp - Arguments are set, results read ---------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "session/SessionImplementation.h"

using namespace baechi::runtime;

/// What is wrong with exchanging `bytes` with buffer `index` by `call`.
template <typename Buffers>
static Error checkAccess(const SessionState &state, Call call, const char *what,
                         const Buffers &buffers, size_t index, size_t bytes,
                         bool usable) {
  std::string who = std::string(what) + " " + std::to_string(index);
  if (index >= buffers.size())
    return Error(who + " does not exist: the program has " +
                 std::to_string(buffers.size()));
  if (bytes != size_t(buffers[index].bytes))
    return Error(who + " '" + buffers[index].name + "' has " +
                 std::to_string(buffers[index].bytes) + " bytes, not " +
                 std::to_string(bytes));
  if (!usable)
    return Error(who + " cannot be reached: a step left a device inside a "
                       "kernel");
  if (state.exchange.injected(call))
    return Error(
        who + " '" + buffers[index].name + "' cannot be copied, device " +
        state.program.devices[buffers[index].device].name + ": injected fault");
  return Error();
}

/// An error of a driver, with what could not be copied.
static Error cannotCopy(const char *what, size_t index,
                        const BufferInfo &buffer, const Error &error) {
  return Error(std::string(what) + " " + std::to_string(index) + " '" +
               buffer.name + "' cannot be copied: " + error.message());
}

/// Copies a buffer that may be accessed out of its device's arena.
static Error read(const SessionState &state, const char *what, size_t index,
                  const BufferInfo &buffer, void *data, size_t bytes) {
  Error error = bytes == 0 ? Error()
                           : state.drivers[buffer.device]->read(buffer.offset,
                                                                data, bytes);
  return error ? cannotCopy(what, index, buffer, error) : Error();
}

Error Session::setArgument(size_t index, const void *data, size_t bytes) {
  const SessionState &state = *implementation->state;
  if (Error error = checkAccess(state, Call::WriteArena, "argument",
                                program().arguments, index, bytes, usable()))
    return error;
  const ArgumentInfo &argument = program().arguments[index];
  if (bytes == 0)
    return Error();
  Error error =
      state.drivers[argument.device]->write(argument.offset, data, bytes);
  return error ? cannotCopy("argument", index, argument, error) : Error();
}

Error Session::getArgument(size_t index, void *data, size_t bytes) const {
  const SessionState &state = *implementation->state;
  if (Error error = checkAccess(state, Call::ReadArena, "argument",
                                program().arguments, index, bytes, usable()))
    return error;
  return read(state, "argument", index, program().arguments[index], data,
              bytes);
}

Error Session::getResult(size_t index, void *data, size_t bytes) const {
  const SessionState &state = *implementation->state;
  if (Error error = checkAccess(state, Call::ReadArena, "result",
                                program().results, index, bytes, usable()))
    return error;
  if (!implementation->hasResults)
    return Error("result " + std::to_string(index) +
                 " has no value: no step has succeeded since");
  return read(state, "result", index, program().results[index], data, bytes);
}
