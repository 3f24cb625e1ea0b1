//===- Program.cpp - The rules of a program manifest ----------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Runtime/Program.h"

#include <algorithm>
#include <set>
#include <tuple>

using namespace baechi::runtime;

static constexpr int64_t arenaAlignment = 64;

/// In the order of ElementType.
static constexpr struct {
  std::string_view name;
  int64_t bytes;
} elements[] = {{"f64", 8}, {"f32", 4}, {"f16", 2}, {"bf16", 2}, {"i64", 8},
                {"i32", 4}, {"i16", 2}, {"i8", 1},  {"i1", 1}};

int64_t baechi::runtime::elementBytes(ElementType type) {
  return elements[static_cast<size_t>(type)].bytes;
}

std::string_view baechi::runtime::elementName(ElementType type) {
  return elements[static_cast<size_t>(type)].name;
}

std::optional<ElementType>
baechi::runtime::parseElementType(std::string_view name) {
  for (size_t i = 0; i < std::size(elements); ++i)
    if (elements[i].name == name)
      return static_cast<ElementType>(i);
  return std::nullopt;
}

/// Bytes of a tensor; nullopt when they do not fit 63 bits or a dimension is
/// negative.
static std::optional<int64_t> tensorBytes(const BufferInfo &buffer) {
  int64_t bytes = elementBytes(buffer.type);
  for (int64_t dimension : buffer.shape)
    if (dimension < 0 || __builtin_mul_overflow(bytes, dimension, &bytes))
      return std::nullopt;
  return bytes;
}

std::vector<PieceInfo> BufferInfo::parts() const {
  if (!pieces.empty())
    return pieces;
  return {{name, device, offset, bytes, 0, 0, copies}};
}

bool BufferInfo::hasCopies() const {
  return !copies.empty() ||
         std::any_of(pieces.begin(), pieces.end(), [](const PieceInfo &piece) {
           return !piece.copies.empty();
         });
}

PieceRows baechi::runtime::rowsOf(const BufferInfo &buffer,
                                  const PieceInfo &piece) {
  int64_t rows = buffer.outer, inner = elementBytes(buffer.type);
  for (size_t d = 0; d < buffer.shape.size(); ++d)
    if (d < size_t(buffer.dim))
      rows *= buffer.shape[d];
    else if (d > size_t(buffer.dim))
      inner *= buffer.shape[d];
  return {rows, buffer.shape[buffer.dim] / buffer.outer * inner,
          piece.start * inner, piece.size * inner};
}

/// "argument 3 'params/w'".
static std::string describe(const char *what, size_t position,
                            const std::string &name) {
  return std::string(what) + " " + std::to_string(position) + " '" + name + "'";
}

static Error checkDevices(const std::vector<DeviceInfo> &devices) {
  if (devices.empty())
    return Error("the program has no devices");
  std::set<std::string> names;
  for (size_t i = 0; i < devices.size(); ++i) {
    const DeviceInfo &device = devices[i];
    std::string who = describe("device", i, device.name);
    if (device.name.empty())
      return Error(who + ": the name is empty");
    if (!names.insert(device.name).second)
      return Error(who + ": another device has the same name");
    if (device.entry.empty())
      return Error(who + ": the entry symbol is empty");
    if (device.arenaBytes < 0 || device.memory < 0)
      return Error(who + ": a size is negative");
  }
  return Error();
}

int64_t SimulatedLink::transferNs(int64_t bytes) const {
  return latencyNs + bytes / bytesPerUs * 1000 +
         (bytes % bytesPerUs * 1000 + bytesPerUs - 1) / bytesPerUs;
}

/// Only what memcpy copies can be delayed: lent tensors and GPUs' are not.
static Error checkLink(const Program &program, const QueueInfo &queue,
                       const std::string &who) {
  constexpr int64_t mostNs = int64_t(1) << 53;
  if (queue.link->bytesPerUs < 1 || queue.link->bytesPerUs > mostNs)
    return Error(who + ": the simulated link's bytes_per_us are no positive "
                       "number below 2^53");
  for (int32_t end : {queue.from, queue.to})
    if (const DeviceInfo &device = program.devices[end];
        device.kind != "host" && device.kind != "null")
      return Error(who + ": a simulated link is between host devices, and " +
                   device.name + " is of kind '" + device.kind + "'");
  for (size_t seq = 0; seq < queue.messages.size(); ++seq)
    if (queue.messages[seq].lent)
      return Error(who + ", " +
                   describe("message", seq, queue.messages[seq].name) +
                   ": it is lent, but a simulated link moves it");
  return Error();
}

static Error checkQueues(const Program &program) {
  auto exists = [&](int32_t device) {
    return device >= 0 && size_t(device) < program.devices.size();
  };
  for (size_t i = 0; i < program.queues.size(); ++i) {
    const QueueInfo &queue = program.queues[i];
    std::string who = "queue " + std::to_string(i);
    for (int32_t device : {queue.from, queue.to})
      if (!exists(device))
        return Error(who + ": there is no device " + std::to_string(device));
    if (queue.from == queue.to)
      return Error(who + ": it leads from device " +
                   program.devices[queue.from].name + " to itself");
    if (queue.link)
      if (Error error = checkLink(program, queue, who))
        return error;
    for (size_t seq = 0; seq < queue.messages.size(); ++seq) {
      const MessageInfo &message = queue.messages[seq];
      if (message.bytes < 0)
        return Error(who + ", " + describe("message", seq, message.name) +
                     ": the size is negative");
      if (message.lent && message.carried)
        return Error(who + ", " + describe("message", seq, message.name) +
                     ": it is lent, and awaited in the next step");
      if (message.endNs < message.startNs)
        return Error(who + ", " + describe("message", seq, message.name) +
                     ": it ends before it starts");
      for (int32_t end : {queue.from, queue.to}) {
        const DeviceInfo &device = program.devices[end];
        // Whether two CUDA devices are on one GPU is seen when they start.
        if (message.lent && device.kind == "cuda" &&
            program.devices[queue.from].kind != program.devices[queue.to].kind)
          return Error(who + ", " + describe("message", seq, message.name) +
                       ": it is lent, but device " + device.name +
                       " has an address space of its own");
        if (message.carried && device.kind != "host" && device.kind != "null")
          return Error(who + ", " + describe("message", seq, message.name) +
                       ": it is awaited in the next step, which is between "
                       "host devices, and " +
                       device.name + " is of kind '" + device.kind + "'");
      }
    }
  }
  return Error();
}

static Error checkPlace(const Program &program, const PieceInfo &place,
                        const std::string &who) {
  if (place.device < 0 || size_t(place.device) >= program.devices.size())
    return Error(who + ": there is no device " + std::to_string(place.device));
  const DeviceInfo &device = program.devices[place.device];
  if (place.offset % arenaAlignment != 0)
    return Error(who + ": offset " + std::to_string(place.offset) +
                 " is not a multiple of " + std::to_string(arenaAlignment));
  if (place.offset < 0 || place.bytes > device.arenaBytes ||
      place.offset > device.arenaBytes - place.bytes)
    return Error(who + ": offset " + std::to_string(place.offset) + " and " +
                 std::to_string(place.bytes) + " bytes exceed the " +
                 std::to_string(device.arenaBytes) +
                 " bytes of the arena of device " + device.name);
  return Error();
}

/// The pieces make the whole, one behind the other.
static Error checkPieces(const BufferInfo &buffer, const std::string &who) {
  if (buffer.dim < 0 || size_t(buffer.dim) >= buffer.shape.size())
    return Error(who + ": it has no dimension " + std::to_string(buffer.dim) +
                 " to be cut along");
  int64_t elements = buffer.shape[buffer.dim];
  if (buffer.outer < 1 || elements % buffer.outer != 0)
    return Error(who + ": a dimension of " + std::to_string(elements) +
                 " does not have " + std::to_string(buffer.outer) +
                 " equal parts");
  int64_t next = 0;
  for (size_t i = 0; i < buffer.pieces.size(); ++i) {
    const PieceInfo &piece = buffer.pieces[i];
    std::string which = who + ", piece " + std::to_string(i);
    if (piece.start != next || piece.size < 1 ||
        piece.size > elements / buffer.outer - next)
      return Error(which + ": it has " + std::to_string(piece.size) +
                   " elements from " + std::to_string(piece.start) +
                   " on; the next is " + std::to_string(next) + " of " +
                   std::to_string(elements / buffer.outer));
    next += piece.size;
    PieceRows rows = rowsOf(buffer, piece);
    if (piece.bytes != rows.rows * rows.length)
      return Error(which + ": " + std::to_string(piece.bytes) +
                   " bytes are given, but its elements make " +
                   std::to_string(rows.rows * rows.length));
  }
  if (next != elements / buffer.outer)
    return Error(who + ": its pieces have " + std::to_string(next) + " of " +
                 std::to_string(elements / buffer.outer) + " elements");
  return Error();
}

/// A part and its copies, as parts of the same size elsewhere.
static std::vector<PieceInfo> withCopies(const PieceInfo &part) {
  std::vector<PieceInfo> places{part};
  for (const Place &copy : part.copies) {
    places.push_back(part);
    places.back().device = copy.device;
    places.back().offset = copy.offset;
  }
  return places;
}

static Error checkBuffer(const Program &program, const BufferInfo &buffer,
                         const std::string &who) {
  std::optional<int64_t> bytes = tensorBytes(buffer);
  if (!bytes)
    return Error(who + ": the shape is too large or negative");
  if (*bytes != buffer.bytes)
    return Error(who + ": " + std::to_string(buffer.bytes) +
                 " bytes are given, but type and shape make " +
                 std::to_string(*bytes));
  if (!buffer.pieces.empty())
    if (Error error = checkPieces(buffer, who))
      return error;
  std::vector<PieceInfo> parts = buffer.parts();
  for (size_t i = 0; i < parts.size(); ++i)
    for (const PieceInfo &place : withCopies(parts[i]))
      if (Error error = checkPlace(program, place,
                                   buffer.pieces.empty()
                                       ? who
                                       : who + ", piece " + std::to_string(i)))
        return error;
  return Error();
}

/// Arguments live between steps, so no two may share a byte.
static Error checkOverlap(const std::vector<ArgumentInfo> &arguments) {
  std::vector<std::pair<PieceInfo, size_t>> parts; // and of which argument
  for (size_t i = 0; i < arguments.size(); ++i)
    for (const PieceInfo &part : arguments[i].parts())
      if (part.bytes > 0)
        for (PieceInfo &place : withCopies(part))
          parts.emplace_back(std::move(place), i);
  std::stable_sort(parts.begin(), parts.end(), [](auto &a, auto &b) {
    return std::tuple(a.first.device, a.first.offset) <
           std::tuple(b.first.device, b.first.offset);
  });
  for (size_t k = 1; k < parts.size(); ++k) {
    const auto &[low, lower] = parts[k - 1];
    const auto &[high, higher] = parts[k];
    if (low.device == high.device && low.offset + low.bytes > high.offset)
      return Error(describe("argument", higher, high.name) + ": it overlaps " +
                   describe("argument", lower, low.name));
  }
  return Error();
}

static bool haveLikePieces(const BufferInfo &a, const BufferInfo &b) {
  return a.pieces.size() == b.pieces.size() && a.dim == b.dim &&
         a.outer == b.outer &&
         std::equal(a.pieces.begin(), a.pieces.end(), b.pieces.begin(),
                    [](const PieceInfo &x, const PieceInfo &y) {
                      return x.size == y.size;
                    });
}

/// Only a host device reads what lies elsewhere than in its arena.
static Error checkLendable(const Program &program, const ArgumentInfo &argument,
                           const std::string &who) {
  if (!argument.lendable)
    return Error();
  if (!argument.pieces.empty() || argument.hasCopies() || argument.updatedBy)
    return Error(who + ": it is lendable, but is in pieces, has copies or is "
                       "updated");
  const DeviceInfo &device = program.devices[argument.device];
  if (device.kind != "host" && device.kind != "null")
    return Error(who + ": it is lendable, but device " + device.name +
                 " is of kind '" + device.kind + "', not 'host'");
  return Error();
}

static Error checkBuffers(const Program &program) {
  for (size_t i = 0; i < program.results.size(); ++i)
    if (Error error =
            checkBuffer(program, program.results[i],
                        describe("result", i, program.results[i].name)))
      return error;
  for (size_t i = 0; i < program.arguments.size(); ++i) {
    const ArgumentInfo &argument = program.arguments[i];
    std::string who = describe("argument", i, argument.name);
    if (Error error = checkBuffer(program, argument, who))
      return error;
    if (Error error = checkLendable(program, argument, who))
      return error;
    if (!argument.updatedBy)
      continue;
    int32_t k = *argument.updatedBy;
    if (k < 0 || size_t(k) >= program.results.size())
      return Error(who + ": it is updated by result " + std::to_string(k) +
                   ", which does not exist");
    const BufferInfo &result = program.results[k];
    if (result.type != argument.type || result.shape != argument.shape)
      return Error(who + ": it is updated by " +
                   describe("result", size_t(k), result.name) +
                   " of another type or shape");
    if (!haveLikePieces(argument, result))
      return Error(who + ": it is updated by " +
                   describe("result", size_t(k), result.name) +
                   ", which is in other pieces");
  }
  return checkOverlap(program.arguments);
}

Error Program::check() const {
  if (Error error = checkDevices(devices))
    return error;
  if (exchange && exchange->sliceBytes && *exchange->sliceBytes < 1)
    return Error("the exchange's slices have no bytes");
  if (Error error = checkQueues(*this))
    return error;
  return checkBuffers(*this);
}
