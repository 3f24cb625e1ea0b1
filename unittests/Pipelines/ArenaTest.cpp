//===- ArenaTest.cpp - Planned arenas against what steps touch -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/MachineAttr.h"
#include "Baechi/Analysis/Program.h"
#include "Baechi/Pipelines/HostCompiler.h"
#include "Baechi/Pipelines/Pipelines.h"
#include "Baechi/Placement/Io/Files.h"
#include "Baechi/Runtime/Abi.h"
#include "Baechi/Runtime/Session.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"
#include <algorithm>
#include <array>

using namespace baechi;
using namespace mlir;

namespace {
using Entry = int32_t (*)(baechi_context *, char *);

/// What the entries of a program see, device by device.
struct Watched {
  Entry entry = nullptr;
  char *arena = nullptr;
  /// 1 where an argument lies, which has its value before the step.
  std::vector<char> isArgument;
};
std::array<Watched, 2> watched;
char fill;

template <size_t device>
int32_t watchedEntry(baechi_context *context, char *arena) {
  Watched &state = watched[device];
  state.arena = arena;
  for (size_t i = 0; i < state.isArgument.size(); ++i)
    if (!state.isArgument[i])
      arena[i] = fill;
  return state.entry(context, arena);
}
constexpr std::array<Entry, 2> entries = {watchedEntry<0>, watchedEntry<1>};

class Arena : public testing::TestWithParam<std::tuple<const char *, int>> {
protected:
  void compile() {
    auto [name, devices] = GetParam();
    DialectRegistry registry;
    registerAllDialects(registry);
    context = std::make_unique<MLIRContext>(registry,
                                            MLIRContext::Threading::DISABLED);
    auto model = parseSourceFile<ModuleOp>(
        std::string(BAECHI_SOURCE_DIR) + "/test/fixtures/" + name + ".mlir",
        context.get());
    ASSERT_TRUE(model);
    HostJitOptions options;
    for (const runtime::AbiSymbol &symbol : runtime::abiSymbols())
      options.symbols[symbol.name] = symbol.address;
    auto created = HostCompiler::create(std::move(model), options);
    ASSERT_TRUE(succeeded(created));
    compiler = std::move(*created);
    ASSERT_TRUE(succeeded(compiler->annotate(nullptr)));
    placement::Machine machine;
    ASSERT_EQ(
        placement::readMachineSpec("host:" + std::to_string(devices), machine),
        "");
    // Cut in the middle, so that every device has work to plan memory for.
    CompileOptions placing;
    placing.placer = "mtopo";
    placing.budget = "0";
    auto program = compiler->compile(machine, placing, "arena");
    ASSERT_TRUE(succeeded(program));
    manifest = program->manifestText();
  }

  /// Runs a step on arenas that were filled with `byte` around the arguments;
  /// returns for each device which bytes are no longer so.
  std::vector<std::vector<bool>> run(char byte) {
    fill = byte;
    auto program = runtime::Program::parse(manifest);
    EXPECT_TRUE(program) << program.error().message();
    for (auto [device, info] : llvm::enumerate(program->devices)) {
      watched[device].isArgument.assign(info.arenaBytes, 0);
      watched[device].entry =
          reinterpret_cast<Entry>(cantFail(compiler->jit().lookup(info.entry)));
    }
    for (const runtime::ArgumentInfo &argument : program->arguments)
      std::fill_n(watched[argument.device].isArgument.begin() + argument.offset,
                  argument.bytes, 1);
    std::vector<std::string> names;
    for (const runtime::DeviceInfo &info : program->devices)
      names.push_back(info.entry);
    auto session = runtime::Session::create(
        *program, [&](const std::string &name) -> void * {
          auto found = llvm::find(names, name);
          return found == names.end()
                     ? nullptr
                     : reinterpret_cast<void *>(entries[found - names.begin()]);
        });
    EXPECT_TRUE(session) << session.error().message();
    runtime::Error error = (*session)->step();
    EXPECT_FALSE(error) << error.message();
    std::vector<std::vector<bool>> touched;
    for (auto [device, info] : llvm::enumerate(program->devices)) {
      const Watched &state = watched[device];
      std::vector<bool> &bytes = touched.emplace_back(info.arenaBytes);
      for (int64_t i = 0; i < info.arenaBytes; ++i)
        bytes[i] = state.isArgument[i] || state.arena[i] != byte;
    }
    return touched;
  }

  std::unique_ptr<MLIRContext> context;
  std::unique_ptr<HostCompiler> compiler;
  std::string manifest;
};
} // namespace

/// The planned peak is the high-water mark: nothing of an arena is for nothing.
/// A buffer may happen to hold the byte that the arena was filled with, so
/// there are two.
TEST_P(Arena, HighWaterMarkIsThePlannedPeak) {
  ASSERT_NO_FATAL_FAILURE(compile());
  auto first = run('\xa5'), second = run('\x5a');
  auto program = runtime::Program::parse(manifest);
  ASSERT_TRUE(program);
  for (auto [device, info] : llvm::enumerate(program->devices)) {
    int64_t mark = 0;
    for (int64_t i = 0; i < info.arenaBytes; ++i)
      if (first[device][i] || second[device][i])
        mark = i + 1;
    EXPECT_EQ(llvm::alignTo(mark, kAlignment), uint64_t(info.arenaBytes))
        << info.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, Arena,
                         testing::Combine(testing::Values("mlp_tiny",
                                                          "transformer_tiny"),
                                          testing::Values(1, 2)),
                         [](const auto &info) {
                           return std::string(std::get<0>(info.param)) + "_" +
                                  std::to_string(std::get<1>(info.param));
                         });
