//===- ManifestTest.cpp - Reading program manifests -----------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Runtime/Program.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <random>

using namespace baechi::runtime;
using nlohmann::json;
using testing::HasSubstr;

namespace {

/// As docs/program-format.md shows it, in small.
const char *example = R"({
  "format": "baechi-program", "version": 1, "function": "step",
  "devices": [
    {"name": "host0", "kind": "host", "entry": "baechi_step_host0",
     "arena_bytes": 8192, "memory": 1000000,
     "operators": [{"name": "l0/matmul", "kernel": "matmul_8x8",
                    "start_ns": 10, "time_ns": 41000}]},
    {"name": "host1", "kind": "host", "entry": "baechi_step_host1",
     "arena_bytes": 4096, "memory": 1000000, "operators": []}],
  "queues": [{"from": 0, "to": 1, "messages": [
    {"name": "h", "bytes": 256, "start_ns": 41000, "end_ns": 45000, "group": 2}]}],
  "arguments": [
    {"name": "w", "device": 0, "offset": 0, "bytes": 256, "type": "f32",
     "shape": [8, 8], "updated_by": 1},
    {"name": "x", "device": 0, "offset": 256, "bytes": 16, "type": "i1",
     "shape": [16], "updated_by": null}],
  "results": [
    {"name": "loss", "device": 1, "offset": 64, "bytes": 4, "type": "f32",
     "shape": []},
    {"name": "w'", "device": 0, "offset": 0, "bytes": 256, "type": "f32",
     "shape": [8, 8]}],
  "processor": ["avx2", "fma"],
  "cores": 2,
  "predicted": {"makespan_ns": 90000, "lower_bound_ns": 80000,
                "placer": "msct", "winner": "etf"}})";

TEST(Manifest, ReadsTheExample) {
  Expected<Program> program = Program::parse(example);
  ASSERT_TRUE(bool(program)) << program.error().message();
  EXPECT_EQ((std::vector<std::string>{"avx2", "fma"}), program->processor);
  EXPECT_EQ(2, program->cores);
  EXPECT_EQ("step", program->function);
  ASSERT_EQ(2u, program->devices.size());
  const DeviceInfo &device = program->devices[0];
  EXPECT_EQ("host0", device.name);
  EXPECT_EQ("host", device.kind);
  EXPECT_EQ("baechi_step_host0", device.entry);
  EXPECT_EQ(8192, device.arenaBytes);
  EXPECT_EQ(1000000, device.memory);
  ASSERT_EQ(1u, device.operators.size());
  EXPECT_EQ("l0/matmul", device.operators[0].name);
  EXPECT_EQ("matmul_8x8", device.operators[0].kernel);
  EXPECT_EQ(10, device.operators[0].startNs);
  EXPECT_EQ(41000, device.operators[0].timeNs);
  ASSERT_EQ(1u, program->queues.size());
  EXPECT_EQ(0, program->queues[0].from);
  EXPECT_EQ(1, program->queues[0].to);
  ASSERT_EQ(1u, program->queues[0].messages.size());
  EXPECT_EQ("h", program->queues[0].messages[0].name);
  EXPECT_EQ(256, program->queues[0].messages[0].bytes);
  EXPECT_EQ(41000, program->queues[0].messages[0].startNs);
  EXPECT_EQ(45000, program->queues[0].messages[0].endNs);
  EXPECT_EQ(2, program->queues[0].messages[0].group);
  ASSERT_EQ(2u, program->arguments.size());
  EXPECT_EQ(1, program->arguments[0].updatedBy);
  EXPECT_EQ(std::nullopt, program->arguments[1].updatedBy);
  EXPECT_EQ(ElementType::I1, program->arguments[1].type);
  ASSERT_EQ(2u, program->results.size());
  EXPECT_EQ(64, program->results[0].offset);
  EXPECT_TRUE(program->results[0].shape.empty());
  EXPECT_EQ(90000, program->predicted.makespanNs);
  EXPECT_EQ(80000, program->predicted.lowerBoundNs);
  EXPECT_EQ("msct", program->predicted.placer);
  EXPECT_EQ("etf", program->predicted.winner);
}

TEST(Manifest, ElementTypes) {
  std::vector<std::pair<const char *, int64_t>> types = {
      {"f64", 8}, {"f32", 4}, {"f16", 2}, {"bf16", 2}, {"i64", 8},
      {"i32", 4}, {"i16", 2}, {"i8", 1},  {"i1", 1}};
  for (auto [name, bytes] : types) {
    auto type = parseElementType(name);
    ASSERT_TRUE(type) << name;
    EXPECT_EQ(name, elementName(*type));
    EXPECT_EQ(bytes, elementBytes(*type)) << name;
  }
  EXPECT_FALSE(parseElementType("f8"));
}

/// The example with one value replaced, or removed where it is "remove".
struct Bad {
  const char *name;
  const char *pointer;
  const char *value;
  const char *error;
};

void PrintTo(const Bad &bad, std::ostream *os) { *os << bad.name; }

class BadManifestTest : public testing::TestWithParam<Bad> {};

TEST_P(BadManifestTest, IsRefused) {
  const Bad &bad = GetParam();
  json manifest = json::parse(example);
  json::json_pointer pointer(bad.pointer);
  ASSERT_TRUE(pointer.empty() || manifest.contains(pointer));
  if (std::string(bad.value) == "remove")
    manifest.at(pointer.parent_pointer()).erase(pointer.back());
  else
    manifest.at(pointer) = json::parse(bad.value);
  Expected<Program> program = Program::parse(manifest.dump());
  ASSERT_FALSE(bool(program));
  EXPECT_EQ(bad.error, program.error().message());
}

const Bad badManifests[] = {
    {"NegativeCores", "/cores", "-2",
     "manifest: cores: must not be negative, but is -2"},
    {"NotAnObject", "", "[]", "manifest: must be an object, not array"},
    {"NoFormat", "/format", "remove",
     "manifest: the member 'format' is missing: add it"},
    {"OtherFormat", "/format", "\"baechi-graph\"",
     "manifest: format: is 'baechi-graph', but this must be a baechi-program "
     "file"},
    {"OtherVersion", "/version", "2",
     "manifest: version: is 2, but only version 1 is known"},
    {"NoDevices", "/devices", "[]", "the program has no devices"},
    {"DevicesNotAList", "/devices", "{}",
     "manifest: devices: must be an array, not object"},
    {"DeviceNotAnObject", "/devices/1", "7",
     "manifest: devices[1]: must be an object, not number"},
    {"DeviceWithoutName", "/devices/1/name", "\"\"",
     "device 1 '': the name is empty"},
    {"DevicesOfOneName", "/devices/1/name", "\"host0\"",
     "device 1 'host0': another device has the same name"},
    {"KindNotAString", "/devices/0/kind", "1",
     "manifest: devices[0] 'host0'.kind: must be a string, not number"},
    {"EmptyEntry", "/devices/0/entry", "\"\"",
     "device 0 'host0': the entry symbol is empty"},
    {"NoArenaBytes", "/devices/0/arena_bytes", "remove",
     "manifest: devices[0] 'host0': the member 'arena_bytes' is missing: add "
     "it"},
    {"NegativeArena", "/devices/0/arena_bytes", "-1",
     "manifest: devices[0] 'host0'.arena_bytes: must not be negative, but is "
     "-1"},
    {"FractionalArena", "/devices/0/arena_bytes", "10.5",
     "manifest: devices[0] 'host0'.arena_bytes: must be an integer, not 10.5"},
    {"HugeArena", "/devices/0/arena_bytes", "18446744073709551615",
     "manifest: devices[0] 'host0'.arena_bytes: 18446744073709551615 does not "
     "fit 64 bits: check its unit"},
    {"NoOperators", "/devices/0/operators", "remove",
     "manifest: devices[0] 'host0': the member 'operators' is missing: add it"},
    {"OperatorWithoutName", "/devices/0/operators/0/name", "remove",
     "manifest: devices[0] 'host0'.operators[0]: the member 'name' is missing: "
     "add it"},
    {"OperatorTimeNegative", "/devices/0/operators/0/time_ns", "-4",
     "manifest: devices[0] 'host0'.operators[0] 'l0/matmul'.time_ns: must not "
     "be negative, but is -4"},
    {"QueueFromNowhere", "/queues/0/from", "2",
     "queue 0: there is no device 2"},
    {"QueueToNowhere", "/queues/0/to", "99", "queue 0: there is no device 99"},
    {"QueuePositionTooLarge", "/queues/0/to", "4294967296",
     "manifest: queues[0].to: 4294967296 does not fit 32 bits"},
    {"QueueToItself", "/queues/0/to", "0",
     "queue 0: it leads from device host0 to itself"},
    {"MessageWithoutBytes", "/queues/0/messages/0/bytes", "remove",
     "manifest: queues[0].messages[0] 'h': the member 'bytes' is missing: add "
     "it"},
    {"MessageGroupNegative", "/queues/0/messages/0/group", "-2",
     "manifest: queues[0].messages[0] 'h'.group: must not be negative, but is "
     "-2"},
    {"MessageBackInTime", "/queues/0/messages/0/end_ns", "1",
     "queue 0, message 0 'h': it ends before it starts"},
    {"ArgumentNowhere", "/arguments/0/device", "2",
     "argument 0 'w': there is no device 2"},
    {"ArgumentMisaligned", "/arguments/1/offset", "257",
     "argument 1 'x': offset 257 is not a multiple of 64"},
    {"ArgumentBytes", "/arguments/0/bytes", "255",
     "argument 0 'w': 255 bytes are given, but type and shape make 256"},
    {"ArgumentType", "/arguments/0/type", "\"f8\"",
     "manifest: arguments[0] 'w'.type: is 'f8', but must be one of f64 f32 f16 "
     "bf16 i64 i32 i16 i8 i1"},
    {"ArgumentShapeNegative", "/arguments/0/shape", "[-8, -8]",
     "manifest: arguments[0] 'w'.shape[0]: must not be negative, but is -8"},
    {"ArgumentShapeOverflows", "/arguments/0/shape", "[4294967296, 4294967296]",
     "argument 0 'w': the shape is too large or negative"},
    {"ArgumentOutsideArena", "/arguments/0/offset", "8000",
     "argument 0 'w': offset 8000 and 256 bytes exceed the 8192 bytes of the "
     "arena of device host0"},
    {"ArgumentOffsetOverflows", "/arguments/0/offset", "9223372036854775744",
     "argument 0 'w': offset 9223372036854775744 and 256 bytes exceed the 8192 "
     "bytes of the arena of device host0"},
    {"ArgumentsOverlap", "/arguments/1/offset", "192",
     "argument 1 'x': it overlaps argument 0 'w'"},
    {"UpdatedByNothing", "/arguments/0/updated_by", "2",
     "argument 0 'w': it is updated by result 2, which does not exist"},
    {"UpdatedByNegative", "/arguments/0/updated_by", "-1",
     "manifest: arguments[0] 'w'.updated_by: must not be negative, but is -1"},
    {"UpdatedByOtherShape", "/arguments/0/updated_by", "0",
     "argument 0 'w': it is updated by result 0 'loss' of another type or "
     "shape"},
    {"ResultOutsideArena", "/results/0/offset", "4096",
     "result 0 'loss': offset 4096 and 4 bytes exceed the 4096 bytes of the "
     "arena of device host1"},
    {"ResultNowhere", "/results/0/device", "5",
     "result 0 'loss': there is no device 5"},
    {"ResultsMissing", "/results", "remove",
     "manifest: the member 'results' is missing: add it"},
    {"PredictionNotAnObject", "/predicted", "3",
     "manifest: predicted: must be an object, not number"},
    {"VersionNotANumber", "/version", "\"one\"",
     "manifest: version: must be an integer, not string"},
};

INSTANTIATE_TEST_SUITE_P(Manifest, BadManifestTest,
                         testing::ValuesIn(badManifests), [](const auto &info) {
                           return std::string(info.param.name);
                         });

/// "w" of the example in pieces: columns of 3 and 5, updated in the same.
json inPieces() {
  json manifest = json::parse(example);
  auto cut = [](json &tensor) {
    tensor.erase("device");
    tensor.erase("offset");
    tensor["dim"] = 1;
    tensor["pieces"] = json::parse(R"([
      {"name": "w.piece0", "device": 0, "offset": 64, "bytes": 96, "start": 0, "size": 3},
      {"name": "w.piece1", "device": 1, "offset": 0, "bytes": 160, "start": 3, "size": 5}])");
  };
  cut(manifest["arguments"][0]);
  cut(manifest["results"][1]);
  return manifest;
}

TEST(Manifest, ReadsTensorsInPieces) {
  Expected<Program> program = Program::parse(inPieces().dump());
  ASSERT_TRUE(bool(program)) << program.error().message();
  const ArgumentInfo &argument = program->arguments[0];
  ASSERT_EQ(2u, argument.pieces.size());
  EXPECT_EQ("w.piece1", argument.pieces[1].name);
  EXPECT_EQ(1, argument.pieces[1].device);
  PieceRows rows = rowsOf(argument, argument.pieces[1]);
  EXPECT_EQ(8, rows.rows);
  EXPECT_EQ(32, rows.stride);
  EXPECT_EQ(12, rows.start);
  EXPECT_EQ(20, rows.length);
  EXPECT_EQ(2u, argument.parts().size());
  EXPECT_EQ(1u, program->arguments[1].parts().size());
}

TEST(Manifest, RefusesPiecesThatAreNoWhole) {
  const std::vector<Bad> bad = {
      {"Gap", "/arguments/0/pieces/1/start", "4",
       "argument 0 'w', piece 1: it has 5 elements from 4 on; the next is 3 of "
       "8"},
      {"TooLong", "/arguments/0/pieces/1/size", "6",
       "argument 0 'w', piece 1: it has 6 elements from 3 on; the next is 3 of "
       "8"},
      {"TooShort", "/arguments/0/pieces/1", "remove",
       "argument 0 'w': its pieces have 3 of 8 elements"},
      {"Bytes", "/results/1/pieces/0/bytes", "128",
       "result 1 'w\'', piece 0: 128 bytes are given, but its elements make "
       "96"},
      {"Dimension", "/arguments/0/dim", "2",
       "argument 0 'w': it has no dimension 2 to be cut along"},
      {"Device", "/arguments/0/pieces/1/device", "2",
       "argument 0 'w', piece 1: there is no device 2"},
      {"Outside", "/arguments/0/pieces/1/offset", "4096",
       "argument 0 'w', piece 1: offset 4096 and 160 bytes exceed the 4096 "
       "bytes"},
      {"Overlap", "/arguments/0/pieces/0/offset", "192",
       "argument 1 'x': it overlaps argument 0 'w.piece0'"},
      {"None", "/arguments/0/pieces", "[]",
       "arguments[0] 'w'.pieces: is empty; a tensor that is whole has none"},
  };
  for (const Bad &each : bad) {
    json manifest = inPieces();
    json::json_pointer pointer(each.pointer);
    json &parent = manifest.at(pointer.parent_pointer());
    if (std::string(each.value) == "remove")
      parent.erase(parent.size() - 1);
    else
      manifest.at(pointer) = json::parse(each.value);
    Expected<Program> program = Program::parse(manifest.dump());
    ASSERT_FALSE(bool(program)) << each.name;
    EXPECT_THAT(program.error().message(), HasSubstr(each.error)) << each.name;
  }
  json manifest = inPieces();
  manifest["results"][1] = json::parse(example)["results"][1];
  EXPECT_THAT(Program::parse(manifest.dump()).error().message(),
              HasSubstr("which is in other pieces"));
  manifest = inPieces();
  manifest["arguments"][0]["outer"] = 3;
  EXPECT_THAT(Program::parse(manifest.dump()).error().message(),
              HasSubstr("a dimension of 8 does not have 3 equal parts"));
}

TEST(Manifest, NotJson) {
  for (const char *text : {"", "{", "nonsense", "{\"format\": \"\xff\"}"}) {
    Expected<Program> program = Program::parse(text);
    ASSERT_FALSE(bool(program)) << text;
    EXPECT_THAT(program.error().message(),
                HasSubstr("manifest: not valid JSON"));
  }
}

TEST(Manifest, DamageIsNeverFatal) {
  std::mt19937 random(1);
  for (int i = 0; i < 3000; ++i) {
    std::string text = example;
    for (int k = 0; k < 3; ++k) {
      size_t at = random() % text.size();
      if (random() % 2)
        text[at] = "0-9{}[]\":,e."[random() % 12];
      else
        text.erase(at, random() % 20);
    }
    Expected<Program> program = Program::parse(text);
    // Whatever is accepted keeps the rules.
    EXPECT_TRUE(program ? !program->check()
                        : !program.error().message().empty());
  }
}

} // namespace
