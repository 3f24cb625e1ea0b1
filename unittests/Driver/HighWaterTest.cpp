//===- HighWaterTest.cpp - Arenas are as large as what is written ---------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Helpers.h"

using namespace baechi;
using namespace baechi::test;

namespace {

/// What tensors are rounded up to in an arena.
constexpr size_t line = 64;

/// The program with a result for each device that is all of its arena.
CompiledProgram withArenas(const CompiledProgram &program) {
  CompiledProgram changed;
  changed.manifest = llvm::json::Object(program.manifest);
  llvm::json::Array &results = *changed.manifest.getArray("results");
  for (auto [d, value] :
       llvm::enumerate(*program.manifest.getArray("devices"))) {
    int64_t bytes = *value.getAsObject()->getInteger("arena_bytes");
    results.push_back(llvm::json::Object{{"name", "arena" + std::to_string(d)},
                                         {"device", static_cast<int64_t>(d)},
                                         {"offset", 0},
                                         {"bytes", bytes},
                                         {"type", "i8"},
                                         {"shape", llvm::json::Array{bytes}}});
  }
  return changed;
}

/// Arenas are zeros at the start: the bytes up to the last that is none after
/// some steps, as the arena counts them.
size_t highWaterMark(const Array &arena) {
  size_t bytes = arena.data.size();
  while (bytes > 0 && arena.data[bytes - 1] == 0)
    --bytes;
  return (bytes + line - 1) / line * line;
}

/// A model, the machine, and whether it must be made to fit.
using Case = std::tuple<const char *, const char *, bool>;

class HighWater : public testing::TestWithParam<Case> {};

TEST_P(HighWater, IsThePlannedPeak) {
  auto [model, machine, isFitted] = GetParam();
  Recorder recorder;
  DriverOptions options = optionsOf(model, machine);
  options.placer = "msct";
  std::unique_ptr<Compilation> compilation = compileModel(options, recorder);
  ASSERT_TRUE(compilation);
  bool waits = false;
  const llvm::json::Object &manifest = compilation->program().manifest;
  for (const llvm::json::Value &device : *manifest.getArray("devices"))
    waits |= device.getAsObject()->getString("kind") != "host" &&
             *device.getAsObject()->getInteger("arena_bytes") > 0;
  EXPECT_EQ(compilation->program().memoryFit.has_value() || waits, isFitted);
  CompiledProgram whole = withArenas(compilation->program());
  auto execution = Execution::create(compilation->compiler().jit(), whole,
                                     /*watchdog=*/60);
  ASSERT_TRUE(bool(execution)) << messageOf(execution.takeError());
  ASSERT_EQ(messageOf(setAll(*compilation, **execution)), "");
  for (int step = 0; step < 2; ++step)
    ASSERT_EQ(messageOf((*execution)->step(/*counted=*/true)), "");
  const runtime::Program &program = (*execution)->program();
  size_t first = program.results.size() - program.devices.size();
  for (size_t d = 0; d < program.devices.size(); ++d) {
    if (program.devices[d].arenaBytes == 0)
      continue;
    auto arena = (*execution)->result(first + d);
    ASSERT_TRUE(bool(arena)) << messageOf(arena.takeError());
    EXPECT_EQ(highWaterMark(*arena),
              static_cast<size_t>(program.devices[d].arenaBytes))
        << program.devices[d].name;
    EXPECT_LE(program.devices[d].arenaBytes, program.devices[d].memory);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Fixtures, HighWater,
    testing::Values(
        Case{"mlp_tiny.mlir", "host:1", false},
        Case{"mlp_tiny.mlir", "host:2", false},
        Case{"transformer_tiny.mlir", "host:1", false},
        Case{"transformer_tiny.mlir", "host:1@60KiB", true},
        Case{"transformer_tiny.mlir", "host:1@36KiB+pool:1MiB", true},
        Case{"transformer_tiny.mlir", "host:1@36KiB+disk:1MiB", true}));

} // namespace
