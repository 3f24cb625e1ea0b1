//===- SessionBuffers.cpp - Arguments are set, results read ---------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/SessionImplementation.h"

using namespace baechi::runtime;

/// Whether `bytes` can be exchanged with buffer `index` by `call`.
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
static Error located(const char *what, size_t index, const BufferInfo &buffer,
                     Error error) {
  if (!error)
    return error;
  return Error(std::string(what) + " " + std::to_string(index) + " '" +
               buffer.name + "' cannot be copied: " + error.message());
}

Error Session::setArgument(size_t index, const void *data, size_t bytes) {
  const auto &arguments = program().arguments;
  if (Error error = checkAccess(*implementation->state, Call::WriteArena,
                                "argument", arguments, index, bytes, usable()))
    return error;
  const ArgumentInfo &argument = arguments[index];
  if (bytes == 0)
    return Error();
  return located("argument", index, argument,
                 implementation->state->drivers[argument.device]->write(
                     argument.offset, data, bytes));
}

Error Session::getArgument(size_t index, void *data, size_t bytes) const {
  const auto &arguments = program().arguments;
  if (Error error = checkAccess(*implementation->state, Call::ReadArena,
                                "argument", arguments, index, bytes, usable()))
    return error;
  const ArgumentInfo &argument = arguments[index];
  if (bytes == 0)
    return Error();
  return located("argument", index, argument,
                 implementation->state->drivers[argument.device]->read(
                     argument.offset, data, bytes));
}

Error Session::getResult(size_t index, void *data, size_t bytes) const {
  const auto &results = program().results;
  if (Error error = checkAccess(*implementation->state, Call::ReadArena,
                                "result", results, index, bytes, usable()))
    return error;
  if (!implementation->hasResults)
    return Error("result " + std::to_string(index) +
                 " has no value: no step has succeeded since");
  const BufferInfo &result = results[index];
  if (bytes == 0)
    return Error();
  return located("result", index, result,
                 implementation->state->drivers[result.device]->read(
                     result.offset, data, bytes));
}
