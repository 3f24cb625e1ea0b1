//===- Manifest.cpp - Reading a program manifest --------------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Runtime/Program.h"

#include <nlohmann/json.hpp>

using namespace baechi::runtime;
using nlohmann::json;

namespace {

/// Thrown and caught in this file: why a manifest cannot be read.
struct Invalid {
  std::string message;
};

/// A value of the file together with its place, for messages.
class Node {
public:
  Node(const json &value, std::string path)
      : value(value), path(std::move(path)) {}

  [[noreturn]] void fail(const std::string &expected) const {
    std::string got = value.dump(-1, ' ', true, json::error_handler_t::replace);
    if (got.size() > 40)
      got = got.substr(0, 40) + "...";
    throw Invalid{(path.empty() ? "manifest" : path) + ": expected " +
                  expected + ", got " + got};
  }

  /// The member of that name; null when it is absent.
  Node get(const std::string &key) const {
    static const json null;
    if (!value.is_object())
      fail("an object");
    auto it = value.find(key);
    return Node(it == value.end() ? null : *it,
                path.empty() ? key : path + "." + key);
  }

  bool isNull() const { return value.is_null(); }

  std::string string() const {
    if (!value.is_string())
      fail("a string");
    return value.get<std::string>();
  }

  /// A non-negative integer of at most 63 bits.
  int64_t integer() const {
    if (!value.is_number_integer() || value.get<int64_t>() < 0)
      fail("a non-negative integer");
    return value.get<int64_t>();
  }

  /// A non-negative integer of at most 31 bits.
  int32_t position() const {
    int64_t number = integer();
    if (number > INT32_MAX)
      fail("a position");
    return static_cast<int32_t>(number);
  }

  template <typename Read>
  auto list(Read read) const -> std::vector<decltype(read(*this))> {
    if (!value.is_array())
      fail("a list");
    std::vector<decltype(read(*this))> items;
    items.reserve(value.size());
    for (size_t i = 0; i < value.size(); ++i)
      items.push_back(
          read(Node(value[i], path + "[" + std::to_string(i) + "]")));
    return items;
  }

private:
  const json &value;
  std::string path;
};

std::string optionalString(const Node &node) {
  return node.isNull() ? std::string() : node.string();
}
int64_t optionalInteger(const Node &node) {
  return node.isNull() ? 0 : node.integer();
}

ElementType readType(const Node &node) {
  if (std::optional<ElementType> type = parseElementType(node.string()))
    return *type;
  node.fail("one of f64 f32 f16 bf16 i64 i32 i16 i8 i1");
}

int32_t optionalPosition(const Node &node, int32_t otherwise) {
  return node.isNull() ? otherwise : node.position();
}

OperatorInfo readOperator(const Node &node) {
  return {node.get("name").string(), optionalString(node.get("kernel")),
          optionalInteger(node.get("start_ns")),
          optionalInteger(node.get("time_ns")),
          optionalPosition(node.get("id"), -1)};
}

DeviceInfo readDevice(const Node &node) {
  return {
      node.get("name").string(),    node.get("kind").string(),
      node.get("entry").string(),   node.get("arena_bytes").integer(),
      node.get("memory").integer(), node.get("operators").list(readOperator)};
}

MessageInfo readMessage(const Node &node) {
  return {optionalString(node.get("name")),
          node.get("bytes").integer(),
          optionalInteger(node.get("start_ns")),
          optionalInteger(node.get("end_ns")),
          node.get("group").isNull() ? -1 : node.get("group").integer(),
          optionalPosition(node.get("operator"), -1),
          optionalPosition(node.get("output"), 0)};
}

QueueInfo readQueue(const Node &node) {
  return {node.get("from").position(), node.get("to").position(),
          node.get("messages").list(readMessage)};
}

BufferInfo readBuffer(const Node &node) {
  BufferInfo buffer;
  buffer.name = optionalString(node.get("name"));
  buffer.device = node.get("device").position();
  buffer.offset = node.get("offset").integer();
  buffer.bytes = node.get("bytes").integer();
  buffer.type = readType(node.get("type"));
  buffer.shape =
      node.get("shape").list([](const Node &n) { return n.integer(); });
  return buffer;
}

ArgumentInfo readArgument(const Node &node) {
  ArgumentInfo argument;
  static_cast<BufferInfo &>(argument) = readBuffer(node);
  if (Node updatedBy = node.get("updated_by"); !updatedBy.isNull())
    argument.updatedBy = updatedBy.position();
  return argument;
}

Program readProgram(const Node &root) {
  Node format = root.get("format"), version = root.get("version");
  if (format.string() != "baechi-program")
    format.fail("\"baechi-program\"");
  if (version.integer() != 1)
    version.fail("1, the version that this build reads");
  Program program;
  program.function = optionalString(root.get("function"));
  program.devices = root.get("devices").list(readDevice);
  program.queues = root.get("queues").list(readQueue);
  program.arguments = root.get("arguments").list(readArgument);
  program.results = root.get("results").list(readBuffer);
  if (Node processor = root.get("processor"); !processor.isNull())
    program.processor =
        processor.list([](const Node &n) { return n.string(); });
  if (Node cores = root.get("cores"); !cores.isNull())
    program.cores = cores.position();
  if (Node predicted = root.get("predicted"); !predicted.isNull())
    program.predicted = {optionalInteger(predicted.get("makespan_ns")),
                         optionalInteger(predicted.get("step_ns")),
                         optionalInteger(predicted.get("lower_bound_ns")),
                         optionalString(predicted.get("placer")),
                         optionalString(predicted.get("winner"))};
  return program;
}

} // namespace

Expected<Program> Program::parse(std::string_view text) {
  try {
    json root = json::parse(text);
    Program program = readProgram(Node(root, ""));
    if (Error error = program.check())
      return error;
    return program;
  } catch (const Invalid &invalid) {
    return Error(invalid.message);
  } catch (const json::exception &exception) {
    return Error(std::string("manifest: not JSON: ") + exception.what());
  }
}
