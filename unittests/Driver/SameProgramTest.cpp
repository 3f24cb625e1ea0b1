//===- SameProgramTest.cpp - Whoever compiles, the same program -----------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Conversion/Devices/Manifest.h"
#include "Baechi/Pipelines/Pipelines.h"
#include "Helpers.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

using namespace baechi;
using namespace baechi::test;
namespace json = llvm::json;

namespace {
/// What --baechi-compile makes of a model.
json::Object byPasses(const DriverOptions &options) {
  mlir::DialectRegistry registry;
  registerAllDialects(registry);
  mlir::MLIRContext context(registry);
  auto module = mlir::parseSourceFile<mlir::ModuleOp>(options.model, &context);
  EXPECT_TRUE(bool(module));
  mlir::PassManager manager(&context);
  buildCompilePipeline(manager, options, SplitChoice(), "host");
  EXPECT_TRUE(mlir::succeeded(manager.run(*module)));
  json::Value manifest =
      llvm::cantFail(json::parse(manifestIn(*module, "baechi")));
  return std::move(*manifest.getAsObject());
}

/// What the driver makes of it, less what it alone knows.
json::Object byDriver(const DriverOptions &options) {
  Recorder recorder;
  auto compilation = compileModel(options, recorder);
  EXPECT_EQ(recorder.errors, "");
  json::Object manifest = compilation->program().manifest;
  EXPECT_TRUE(manifest.erase("processor"));
  EXPECT_TRUE(manifest.erase("cores"));
  EXPECT_TRUE(manifest.erase("cutting"));
  return manifest;
}

struct Case {
  const char *model;
  const char *machine;
  const char *placer;

  friend void PrintTo(const Case &given, std::ostream *os) {
    *os << given.model << ", " << given.machine << ", " << given.placer;
  }
};

class SameProgram : public testing::TestWithParam<Case> {};

TEST_P(SameProgram, ByPassesAndByTheDriver) {
  DriverOptions options = optionsOf(GetParam().model, GetParam().machine);
  options.placer = GetParam().placer;
  options.splits = "none"; // as passes have it, which compare nothing
  json::Value passes = byPasses(options), driver = byDriver(options);
  EXPECT_GT(passes.getAsObject()->getArray("devices")->size(), 0u);
  // Operator by operator: names, kernels, places, starts and times; messages,
  // their order and groups; arguments, results and predictions.
  EXPECT_EQ(passes, driver)
      << llvm::formatv("{0:2}\n{1:2}", passes, driver).str();
}

INSTANTIATE_TEST_SUITE_P(
    Models, SameProgram,
    testing::Values(Case{"mlp_tiny.mlir", "host:1", "msct"},
                    Case{"mlp_tiny.mlir", "host:2", "mtopo"},
                    Case{"mlp_tiny.mlir", "host:3@64MiB", "metf"},
                    Case{"transformer_tiny.mlir", "host:2", "msct"}),
    [](const testing::TestParamInfo<Case> &info) {
      return llvm::StringRef(info.param.model).split('.').first.str() +
             std::to_string(info.index);
    });
} // namespace
