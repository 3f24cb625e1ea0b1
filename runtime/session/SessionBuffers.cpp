//===- SessionBuffers.cpp - Arguments are set, results read ---------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "session/SessionImplementation.h"

#include <algorithm>
#include <cstring>
#include <vector>

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

/// Copies between rows that lie `stride` apart and rows without gaps.
static void copyRows(const PieceRows &rows, char *apart, char *together,
                     bool gather) {
  for (int64_t row = 0; row < rows.rows; ++row) {
    char *far = apart + rows.start + row * rows.stride;
    char *near = together + row * rows.length;
    std::memcpy(gather ? near : far, gather ? far : near, size_t(rows.length));
  }
}

/// Hands `copy(driver, offset, data, bytes)` the bytes of each part that is
/// stored somewhere; a piece that is several ranges of the whole goes through a
/// buffer of its own: out of the whole where `writes`, and to the part's
/// copies, too, else into it. \p only: what lies on that device alone.
template <typename Copy>
static Error copyParts(const SessionState &state, const BufferInfo &buffer,
                       char *data, bool writes, Copy copy,
                       std::optional<size_t> only = std::nullopt) {
  if (buffer.bytes == 0)
    return Error();
  auto isMeant = [&](int32_t device) {
    return !only || size_t(device) == *only;
  };
  // A whole buffer or a piece.
  auto copyPart = [&](const auto &part, char *bytes) {
    Error error;
    if (isMeant(part.device))
      error = copy(*state.drivers[part.device], part.offset, bytes,
                   size_t(part.bytes));
    for (const Place &other : part.copies)
      if (writes && !error && isMeant(other.device))
        error = copy(*state.drivers[other.device], other.offset, bytes,
                     size_t(part.bytes));
    return error;
  };
  if (buffer.pieces.empty())
    return copyPart(buffer, data);
  std::vector<char> packed;
  for (const PieceInfo &piece : buffer.pieces) {
    if (piece.copies.empty() && !isMeant(piece.device))
      continue;
    PieceRows rows = rowsOf(buffer, piece);
    bool isOneRange = rows.rows == 1;
    if (!isOneRange)
      packed.resize(size_t(piece.bytes));
    char *bytes = isOneRange ? data + rows.start : packed.data();
    if (writes && !isOneRange)
      copyRows(rows, data, bytes, /*gather=*/true);
    if (Error error = copyPart(piece, bytes))
      return error;
    if (!writes && !isOneRange && isMeant(piece.device))
      copyRows(rows, data, bytes, /*gather=*/false);
  }
  return Error();
}

/// Out of all of a buffer's values into the arenas.
static Error writeParts(const SessionState &state, const BufferInfo &buffer,
                        const char *values,
                        std::optional<size_t> only = std::nullopt) {
  // It is not written to.
  return copyParts(
      state, buffer, const_cast<char *>(values), /*writes=*/true,
      [](Driver &driver, int64_t offset, char *part, size_t size) {
        return driver.write(offset, part, size);
      },
      only);
}

/// Out of the arenas into all of a buffer's values.
static Error readParts(const SessionState &state, const BufferInfo &buffer,
                       char *values,
                       std::optional<size_t> only = std::nullopt) {
  return copyParts(
      state, buffer, values, /*writes=*/false,
      [](Driver &driver, int64_t offset, char *to, size_t bytes) {
        return driver.read(offset, to, bytes);
      },
      only);
}

bool baechi::runtime::writeOwnParts(const SessionState &state, size_t device,
                                    const BufferInfo &buffer,
                                    const char *values) {
  return !writeParts(state, buffer, values, device);
}

bool baechi::runtime::readOwnParts(const SessionState &state, size_t device,
                                   const BufferInfo &buffer, char *values) {
  return !readParts(state, buffer, values, device);
}

/// Copies a buffer that may be accessed out of its devices' arenas.
static Error read(const SessionState &state, const char *what, size_t index,
                  const BufferInfo &buffer, void *data) {
  Error error = readParts(state, buffer, static_cast<char *>(data));
  return error ? cannotCopy(what, index, buffer, error) : Error();
}

/// An argument whose place was not written to when a call had it.
static Error hasNoValue(const Program &program, size_t index) {
  return Error("argument " + std::to_string(index) + " '" +
               program.arguments[index].name +
               "' has no value: a call read it where its caller had it; set "
               "it, or give it with the call");
}

Error Session::Implementation::checkArguments(
    std::span<const Feed> feeds) const {
  const std::vector<uint8_t> &missing = state->missing;
  for (size_t i = 0; i < missing.size(); ++i)
    if (missing[i] && !state->exchange.lentArgument(int32_t(i)) &&
        std::none_of(feeds.begin(), feeds.end(),
                     [&](const Feed &feed) { return feed.argument == i; }))
      return hasNoValue(state->program, i);
  return Error();
}

Error Session::setArgument(size_t index, const void *data, size_t bytes) {
  SessionState &state = *implementation->state;
  if (Error error = checkAccess(state, Call::WriteArena, "argument",
                                program().arguments, index, bytes, usable()))
    return error;
  const ArgumentInfo &argument = program().arguments[index];
  if (Error error =
          writeParts(state, argument, static_cast<const char *>(data)))
    return cannotCopy("argument", index, argument, error);
  state.missing[index] = false;
  return Error();
}

bool baechi::runtime::isReadThere(const SessionState &state,
                                  const ArgumentInfo &argument,
                                  const void *memory) {
  // What kernels expect of the place of every tensor.
  constexpr uintptr_t alignment = 64;
  return argument.lendable && !state.isElsewhere(size_t(argument.device)) &&
         reinterpret_cast<uintptr_t>(memory) % alignment == 0;
}

/// Whether the devices of a buffer take memory of the caller's with the next
/// step.
static Expected<bool> lend(const SessionState &state, const BufferInfo &buffer,
                           void *memory, bool in) {
  if (!buffer.pieces.empty())
    return false;
  auto lendTo = [&](int32_t device, int64_t offset) {
    return state.drivers[device]->lend(
        {offset, memory, size_t(buffer.bytes), in});
  };
  Expected<bool> taken = lendTo(buffer.device, buffer.offset);
  for (const Place &other : buffer.copies)
    if (in && taken && *taken)
      taken = lendTo(other.device, other.offset);
  return taken;
}

Error Session::call(const void *const *arguments, void *const *results,
                    const uint8_t *lent) {
  return callOrBegin(arguments, results, lent, nullptr);
}

Error Session::begin(const void *const *arguments, void *const *results,
                     void **end) {
  if (end)
    *end = nullptr;
  return callOrBegin(arguments, results, nullptr, end);
}

Error Session::callOrBegin(const void *const *arguments, void *const *results,
                           const uint8_t *lentArguments, void **end) {
  SessionState &state = *implementation->state;
  // Of several devices one would have to wait for the others' messages.
  Driver *alone =
      end && state.drivers.size() == 1 ? state.drivers.front().get() : nullptr;
  const Program &program = this->program();
  auto whole = [&]() -> Error {
    for (size_t i = 0; i < program.arguments.size(); ++i) {
      if (!arguments[i])
        continue;
      const ArgumentInfo &argument = program.arguments[i];
      if (Error error = checkAccess(state, Call::WriteArena, "argument",
                                    program.arguments, i,
                                    size_t(argument.bytes), usable()))
        return error;
      if (lentArguments && lentArguments[i] &&
          isReadThere(state, argument, arguments[i])) {
        state.exchange.lendArgument(i, arguments[i]);
        state.missing[i] = true;
        continue;
      }
      // It is not written to.
      Expected<bool> taken =
          lend(state, argument, const_cast<void *>(arguments[i]), /*in=*/true);
      Error error = taken ? Error() : taken.takeError();
      if (!error && !*taken)
        error = writeParts(state, argument,
                           static_cast<const char *>(arguments[i]));
      if (error)
        return cannotCopy("argument", i, argument, error);
      state.missing[i] = false;
    }
    std::vector<bool> lent(program.results.size());
    for (size_t k = 0; k < program.results.size(); ++k) {
      if (!results[k])
        continue;
      Expected<bool> taken =
          lend(state, program.results[k], results[k], /*in=*/false);
      if (!taken)
        return cannotCopy("result", k, program.results[k], taken.takeError());
      lent[k] = *taken;
      if (!lent[k])
        alone = nullptr; // it is read at the end
    }
    bool isLater = alone && alone->endLater();
    Error failed = step();
    if (isLater && usable())
      *end = alone->takeEnd();
    if (failed)
      return failed;
    for (size_t k = 0; k < program.results.size(); ++k)
      if (results[k] && !lent[k])
        if (Error error =
                getResult(k, results[k], size_t(program.results[k].bytes)))
          return error;
    return Error();
  };
  /// Also where memory for an error's text runs out.
  struct Forgetting {
    ~Forgetting() {
      // A device that was left behind in a kernel may still look.
      if (!session.usable())
        return;
      for (const std::unique_ptr<Driver> &driver : state.drivers)
        driver->forgetLent();
      state.exchange.takeArgumentsBack();
    }
    const Session &session;
    SessionState &state;
  } forgetting{*this, state};
  return whole();
}

Error Session::getArgument(size_t index, void *data, size_t bytes) const {
  const SessionState &state = *implementation->state;
  if (Error error = checkAccess(state, Call::ReadArena, "argument",
                                program().arguments, index, bytes, usable()))
    return error;
  if (state.missing[index])
    return hasNoValue(program(), index);
  return read(state, "argument", index, program().arguments[index], data);
}

Error Session::getResult(size_t index, void *data, size_t bytes) const {
  const SessionState &state = *implementation->state;
  if (Error error = checkAccess(state, Call::ReadArena, "result",
                                program().results, index, bytes, usable()))
    return error;
  if (!implementation->hasResults)
    return Error("result " + std::to_string(index) +
                 " has no value: no step has succeeded since");
  return read(state, "result", index, program().results[index], data);
}
