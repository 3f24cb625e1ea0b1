//===- LoweredKernelsTest.cpp - A compile lowers a kernel once ------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/KernelHash.h"
#include "Baechi/Conversion/Kernels/Host/HostKernels.h"
#include "Baechi/Pipelines/Pipelines.h"
#include "Helpers.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <set>

using namespace baechi;
using namespace baechi::test;
using namespace mlir;

namespace {
/// The distinct kernels of \p module, with each of their implementations or
/// with the default one.
std::set<std::string> kernelsOf(ModuleOp module, bool everyImplementation) {
  std::set<std::string> found;
  for (auto kernel : module.getOps<func::FuncOp>())
    if (kernel->hasAttr(BaechiDialect::kKernel))
      for (StringRef implementation : hostImplementations(kernel)) {
        found.insert(kernelHash(kernel) + implementation.str());
        if (!everyImplementation)
          break;
      }
  return found;
}

/// A folder that goes with the test.
struct Folder {
  Folder() {
    EXPECT_FALSE(llvm::sys::fs::createUniqueDirectory("lowered", path));
  }
  ~Folder() { llvm::sys::fs::remove_directories(path); }
  std::string file(llvm::StringRef name) const {
    llvm::SmallString<128> full = path;
    llvm::sys::path::append(full, name);
    return full.str().str();
  }
  llvm::SmallString<128> path;
};

/// Whether other work disturbed a measurement is no matter of the program.
static llvm::json::Value withoutKernelCosts(llvm::json::Object manifest) {
  manifest.erase("kernel_costs");
  return manifest;
}

TEST(LoweredKernels, ScratchMeasuringAndCodeShareOneLowering) {
  Folder folder;
  DriverOptions options = optionsOf("mlp_tiny.mlir", "host:1");
  options.splits = "none"; // else there is one code for each kernel
  options.costs = "measured";
  options.measure = "all"; // else the next compilation may measure more
  options.profile = folder.file("profile.json");
  options.store = folder.file("store");
  Recorder recorder;
  auto cold = compileModel(options, recorder);
  ASSERT_TRUE(cold);
  size_t every = kernelsOf(cold->module(), true).size();
  size_t chosen = kernelsOf(cold->module(), false).size();
  ASSERT_LT(chosen, every) << "no product is there";
  EXPECT_EQ(cold->loweredKernels().bufferized(), every);
  EXPECT_EQ(cold->loweredKernels().finished(), every);
  // What was timed alone is not compiled again.
  RunReport report;
  cold->describe(report);
  EXPECT_EQ(report.kernelsFromStore, chosen);

  // Rows say the scratch, and the store has the code.
  settleProfile(options.profile);
  auto warm = compileModel(options, recorder);
  ASSERT_TRUE(warm);
  EXPECT_EQ(warm->loweredKernels().bufferized(), 0u);
  EXPECT_EQ(withoutKernelCosts(warm->program().manifest),
            withoutKernelCosts(cold->program().manifest));

  options.store = folder.file("another");
  auto compiled = compileModel(options, recorder);
  ASSERT_TRUE(compiled);
  EXPECT_EQ(compiled->loweredKernels().bufferized(), chosen);
  EXPECT_EQ(compiled->loweredKernels().finished(), chosen);
  EXPECT_EQ(recorder.errors + recorder.warnings, "");
}

TEST(LoweredKernels, RowsOfAnotherCompilerSayNoScratch) {
  Folder folder;
  DriverOptions options = optionsOf("mlp_tiny.mlir", "host:1");
  options.profile = folder.file("profile.json");
  Recorder recorder;
  auto first = readModel(options, recorder);
  ASSERT_TRUE(first);
  Profile profile;
  profile.target = "another processor";
  profile.compiler = "another compiler";
  for (auto kernel : first->module().getOps<func::FuncOp>())
    if (kernel->hasAttr(BaechiDialect::kKernel)) {
      profile.rows.push_back(
          {kernel.getName().str(), kernelHash(kernel), "generated", "host"});
      profile.rows.back().scratchBytes = 12345;
    }
  ASSERT_EQ(messageOf(writeProfile(options.profile, profile)), "");
  auto second = readModel(options, recorder);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->loweredKernels().bufferized(),
            first->loweredKernels().bufferized());
  for (auto kernel : second->module().getOps<func::FuncOp>())
    if (auto scratch =
            kernel->getAttrOfType<IntegerAttr>(BaechiDialect::kKernelScratch))
      EXPECT_NE(scratch.getInt(), 12345) << kernel.getName().str();
}

TEST(LoweredKernels, OneModelWholeAndInPiecesShareThem) {
  DialectRegistry registry;
  registerAllDialects(registry);
  MLIRContext context(registry);
  auto lowered = std::make_shared<LoweredKernels>();
  CompileOptions asked;
  asked.splits = "forced:2";
  llvm::Expected<SplitChoice> pieces = splitChoiceOf(asked, 2);
  ASSERT_TRUE(bool(pieces));
  std::set<std::string> distinct;
  size_t together = 0;
  std::vector<std::unique_ptr<HostCompiler>> compilers;
  for (const SplitChoice &choice : {SplitChoice(), *pieces}) {
    auto model = parseSourceFile<ModuleOp>(fixture("mlp_tiny.mlir"), &context);
    ASSERT_TRUE(model);
    auto compiler = HostCompiler::create(std::move(model), HostJitOptions(),
                                         nullptr, choice, lowered);
    ASSERT_TRUE(succeeded(compiler));
    auto own = kernelsOf((*compiler)->module(), false);
    together += own.size();
    distinct.insert(own.begin(), own.end());
    compilers.push_back(std::move(*compiler));
  }
  ASSERT_LT(distinct.size(), together) << "they share none";
  EXPECT_EQ(lowered->bufferized(), distinct.size());
  for (auto &compiler : compilers)
    ASSERT_TRUE(succeeded(compiler->compileKernels()));
  EXPECT_EQ(lowered->bufferized(), distinct.size());
  EXPECT_EQ(lowered->finished(), distinct.size());
}
} // namespace
