//===- Manifest.cpp - Reading a program manifest --------------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Runtime/Program.h"

#include "Baechi/Support/Json.h"

using namespace baechi::runtime;
using baechi::support::json::Cursor;

namespace {

std::string optionalString(const Cursor &at, std::string_view key) {
  std::optional<Cursor> member = at.find(key);
  return member ? member->string() : "";
}
int64_t optionalNatural(const Cursor &at, std::string_view key,
                        int64_t otherwise = 0) {
  std::optional<Cursor> member = at.find(key);
  return member ? member->natural() : otherwise;
}
int32_t optionalIndex(const Cursor &at, std::string_view key,
                      int32_t otherwise) {
  std::optional<Cursor> member = at.find(key);
  return member ? member->naturalIndex() : otherwise;
}

ElementType readType(const Cursor &at) {
  if (std::optional<ElementType> type = parseElementType(at.string()))
    return *type;
  at.fail("is '" + at.string() +
          "', but must be one of f64 f32 f16 bf16 i64 i32 i16 i8 i1");
}

OperatorInfo readOperator(const Cursor &at) {
  return {at["name"].string(), optionalString(at, "kernel"),
          optionalNatural(at, "start_ns"), optionalNatural(at, "time_ns"),
          optionalIndex(at, "id", -1)};
}

DeviceInfo readDevice(const Cursor &at) {
  return {at["name"].string(),    at["kind"].string(),
          at["entry"].string(),   at["arena_bytes"].natural(),
          at["memory"].natural(), at["operators"].list(readOperator)};
}

bool optionalFlag(const Cursor &at, std::string_view key) {
  std::optional<Cursor> member = at.find(key);
  return member && member->boolean();
}

MessageInfo readMessage(const Cursor &at) {
  return {optionalString(at, "name"),       at["bytes"].natural(),
          optionalNatural(at, "start_ns"),  optionalNatural(at, "end_ns"),
          optionalNatural(at, "group", -1), optionalIndex(at, "operator", -1),
          optionalIndex(at, "output", 0),   optionalFlag(at, "lent"),
          optionalFlag(at, "carried"),      optionalNatural(at, "priority")};
}

ExchangeOrder readExchange(const Cursor &at) {
  ExchangeOrder order;
  if (std::optional<Cursor> bytes = at.find("slice_bytes"))
    order.sliceBytes = bytes->natural();
  return order;
}

std::vector<Place> readCopies(const Cursor &at) {
  std::optional<Cursor> copies = at.find("copies");
  return copies ? copies->list([](const Cursor &place) {
    return Place{place["device"].naturalIndex(), place["offset"].natural()};
  })
                : std::vector<Place>();
}

SimulatedLink readLink(const Cursor &at) {
  return {at["latency_ns"].natural(), at["bytes_per_us"].natural(),
          at["lanes"].list([](const Cursor &n) { return n.naturalIndex(); })};
}

QueueInfo readQueue(const Cursor &at) {
  QueueInfo queue{at["from"].naturalIndex(),
                  at["to"].naturalIndex(),
                  at["messages"].list(readMessage),
                  {}};
  if (std::optional<Cursor> link = at.find("simulated_link"))
    queue.link = readLink(*link);
  return queue;
}

PieceInfo readPiece(const Cursor &at) {
  return {optionalString(at, "name"),
          at["device"].naturalIndex(),
          at["offset"].natural(),
          at["bytes"].natural(),
          at["start"].natural(),
          at["size"].natural(),
          readCopies(at)};
}

BufferInfo readBuffer(const Cursor &at) {
  BufferInfo buffer;
  buffer.name = optionalString(at, "name");
  if (std::optional<Cursor> pieces = at.find("pieces")) {
    buffer.dim = at["dim"].naturalIndex();
    buffer.outer = optionalNatural(at, "outer", 1);
    buffer.pieces = pieces->list(readPiece);
    if (buffer.pieces.empty())
      pieces->fail("is empty; a tensor that is whole has none");
    buffer.device = buffer.pieces.front().device;
    buffer.offset = buffer.pieces.front().offset;
  } else {
    buffer.device = at["device"].naturalIndex();
    buffer.offset = at["offset"].natural();
    buffer.copies = readCopies(at);
  }
  buffer.bytes = at["bytes"].natural();
  buffer.type = readType(at["type"]);
  buffer.shape = at["shape"].list([](const Cursor &n) { return n.natural(); });
  return buffer;
}

ArgumentInfo readArgument(const Cursor &at) {
  ArgumentInfo argument;
  static_cast<BufferInfo &>(argument) = readBuffer(at);
  if (std::optional<Cursor> updatedBy = at.find("updated_by"))
    argument.updatedBy = updatedBy->naturalIndex();
  argument.lendable = optionalFlag(at, "lendable");
  return argument;
}

Program readProgram(const Cursor &root) {
  Program program;
  program.function = optionalString(root, "function");
  program.devices = root["devices"].list(readDevice);
  program.queues = root["queues"].list(readQueue);
  program.arguments = root["arguments"].list(readArgument);
  program.results = root["results"].list(readBuffer);
  if (std::optional<Cursor> processor = root.find("processor"))
    program.processor =
        processor->list([](const Cursor &n) { return n.string(); });
  program.cores = optionalIndex(root, "cores", program.cores);
  program.ends = optionalFlag(root, "ends");
  if (std::optional<Cursor> exchange = root.find("exchange"))
    program.exchange = readExchange(*exchange);
  if (std::optional<Cursor> predicted = root.find("predicted"))
    program.predicted = {optionalNatural(*predicted, "makespan_ns"),
                         optionalNatural(*predicted, "step_ns"),
                         optionalNatural(*predicted, "period_ns"),
                         {optionalNatural(*predicted, "links_used_ns"),
                          optionalNatural(*predicted, "links_waited_ns")},
                         optionalNatural(*predicted, "lower_bound_ns"),
                         optionalString(*predicted, "placer"),
                         optionalString(*predicted, "winner")};
  return program;
}

} // namespace

Expected<Program> Program::parse(std::string_view text) {
  Program program;
  std::string error = baechi::support::json::parse(
      text, "manifest", "baechi-program", {},
      [&](const Cursor &root) { program = readProgram(root); });
  if (!error.empty())
    return Error(error);
  if (Error wrong = program.check())
    return wrong;
  return program;
}
