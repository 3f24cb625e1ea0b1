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
      if (message.endNs < message.startNs)
        return Error(who + ", " + describe("message", seq, message.name) +
                     ": it ends before it starts");
      for (int32_t end : {queue.from, queue.to})
        if (message.lent && program.devices[end].kind == "cuda")
          return Error(who + ", " + describe("message", seq, message.name) +
                       ": it is lent, but device " + program.devices[end].name +
                       " has an address space of its own");
    }
  }
  return Error();
}

static Error checkBuffer(const Program &program, const BufferInfo &buffer,
                         const std::string &who) {
  if (buffer.device < 0 || size_t(buffer.device) >= program.devices.size())
    return Error(who + ": there is no device " + std::to_string(buffer.device));
  const DeviceInfo &device = program.devices[buffer.device];
  if (buffer.offset % arenaAlignment != 0)
    return Error(who + ": offset " + std::to_string(buffer.offset) +
                 " is not a multiple of " + std::to_string(arenaAlignment));
  std::optional<int64_t> bytes = tensorBytes(buffer);
  if (!bytes)
    return Error(who + ": the shape is too large or negative");
  if (*bytes != buffer.bytes)
    return Error(who + ": " + std::to_string(buffer.bytes) +
                 " bytes are given, but type and shape make " +
                 std::to_string(*bytes));
  if (buffer.offset < 0 || buffer.bytes > device.arenaBytes ||
      buffer.offset > device.arenaBytes - buffer.bytes)
    return Error(who + ": offset " + std::to_string(buffer.offset) + " and " +
                 std::to_string(buffer.bytes) + " bytes exceed the " +
                 std::to_string(device.arenaBytes) +
                 " bytes of the arena of device " + device.name);
  return Error();
}

/// Arguments live between steps, so no two may share a byte.
static Error checkOverlap(const std::vector<ArgumentInfo> &arguments) {
  std::vector<size_t> order;
  for (size_t i = 0; i < arguments.size(); ++i)
    if (arguments[i].bytes > 0)
      order.push_back(i);
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::tuple(arguments[a].device, arguments[a].offset, a) <
           std::tuple(arguments[b].device, arguments[b].offset, b);
  });
  for (size_t k = 1; k < order.size(); ++k) {
    const ArgumentInfo &low = arguments[order[k - 1]];
    const ArgumentInfo &high = arguments[order[k]];
    if (low.device == high.device && low.offset + low.bytes > high.offset)
      return Error(describe("argument", order[k], high.name) +
                   ": it overlaps " +
                   describe("argument", order[k - 1], low.name));
  }
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
  }
  return checkOverlap(program.arguments);
}

Error Program::check() const {
  if (Error error = checkDevices(devices))
    return error;
  if (Error error = checkQueues(*this))
    return error;
  return checkBuffers(*this);
}
