//===- AnnotateCostsTest.cpp - Costs from a profile in memory -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/KernelHash.h"
#include "Baechi/Costs/Profile.h"
#include "Baechi/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "gtest/gtest.h"

using namespace baechi;
using namespace mlir;

namespace {
constexpr const char *program = R"(
func.func private @kernel(%x: tensor<16xf32>) -> tensor<16xf32> attributes {baechi.kernel} {
  %0 = arith.addf %x, %x : tensor<16xf32>
  return %0 : tensor<16xf32>
}
func.func private @other(%x: tensor<16xf32>) -> tensor<16xf32> attributes {baechi.kernel} {
  %0 = arith.mulf %x, %x : tensor<16xf32>
  return %0 : tensor<16xf32>
}
func.func @step(%x: tensor<16xf32>) -> tensor<16xf32> {
  %0 = call @kernel(%x) : (tensor<16xf32>) -> tensor<16xf32>
  %1 = call @other(%0) : (tensor<16xf32>) -> tensor<16xf32>
  return %1 : tensor<16xf32>
})";

class ProfiledCosts : public testing::Test {
protected:
  ProfiledCosts() {
    context
        .loadDialect<BaechiDialect, func::FuncDialect, arith::ArithDialect>();
    module = parseSourceString<ModuleOp>(program, &context);
  }

  func::FuncOp kernel(StringRef name) {
    return module->lookupSymbol<func::FuncOp>(name);
  }

  void addRow(StringRef name, StringRef implementation, StringRef kind,
              int64_t ns) {
    ProfileRow row;
    row.kernel = name.str();
    row.hash = kernelHash(kernel(name));
    row.implementation = implementation.str();
    row.kind = kind.str();
    row.medianNs = ns;
    profile.rows.push_back(row);
  }

  /// Annotates, and returns the time of call \p position on \p kind.
  int64_t timeOf(int position, StringRef kind) {
    PassManager manager(&context);
    manager.addPass(createAnnotateCosts(&profile));
    EXPECT_TRUE(succeeded(manager.run(*module)));
    auto calls = kernel("step").getOps<func::CallOp>();
    Operation *call = *std::next(calls.begin(), position);
    auto cost = call->getAttrOfType<CostAttr>(BaechiDialect::kCost);
    return cost.getTimeNs().getAs<IntegerAttr>(kind).getInt();
  }

  std::string implementationOf(StringRef name) {
    auto attr =
        kernel(name)->getAttrOfType<StringAttr>(BaechiDialect::kImplementation);
    return attr ? attr.str() : "";
  }

  /// The diagnostics of \p run.
  std::string diagnosticOf(llvm::function_ref<void()> run) {
    std::string text;
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      text += diagnostic.str();
      return success();
    });
    run();
    return text;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  Profile profile;
};
} // namespace

TEST_F(ProfiledCosts, AMeasuredTimeReplacesTheEstimate) {
  addRow("kernel", "generated", "host", 123456);
  EXPECT_EQ(timeOf(0, "host"), 123456);
  EXPECT_EQ(implementationOf("kernel"), "generated");
  // No row: 128 bytes at 10 GB/s and 200 ns. Nor for the other kind.
  EXPECT_EQ(timeOf(1, "host"), 213);
  EXPECT_EQ(implementationOf("other"), "");
  EXPECT_EQ(timeOf(0, "cuda"), 5001);
}

TEST_F(ProfiledCosts, TheFastestRowWinsAndIsNamed) {
  addRow("kernel", "generated", "host", 300);
  addRow("kernel", "openblas", "host", 100);
  addRow("kernel", "cublas", "cuda", 7);
  EXPECT_EQ(timeOf(0, "host"), 100);
  EXPECT_EQ(implementationOf("kernel"), "openblas");
  EXPECT_EQ(timeOf(0, "cuda"), 7);
}

TEST_F(ProfiledCosts, AChosenImplementationIsKept) {
  kernel("kernel")->setAttr(BaechiDialect::kImplementation,
                            StringAttr::get(&context, "generated"));
  addRow("kernel", "generated", "host", 300);
  addRow("kernel", "openblas", "host", 100);
  EXPECT_EQ(timeOf(0, "host"), 300);
  EXPECT_EQ(implementationOf("kernel"), "generated");
}

/// cuDNN's row is taken where that was measured to be faster, alone, and the
/// workspace is allowed; with its engine.
TEST_F(ProfiledCosts, ConvolutionsOfGpusTakeTheFaster) {
  auto use = [&](StringRef math, int64_t workspace, bool always = false) {
    kernel("kernel")->setAttr(
        BaechiDialect::kCudaConvolution,
        CudaConvolutionAttr::get(&context, math, workspace, always, {}));
    timeOf(0, "cuda");
    return kernel("kernel")->getAttrOfType<CudaConvolutionAttr>(
        BaechiDialect::kCudaConvolution);
  };
  addRow("kernel", "generated", "cuda", 30);
  addRow("kernel", "cudnn", "cuda", 40);
  addRow("kernel", "cudnn-tf32", "cuda", 10);
  for (int64_t row : {1, 2}) {
    profile.rows[row].scratchBytes = 100 + row;
    profile.rows[row].algorithm.assign(24, row);
  }
  EXPECT_FALSE(use("fp32", 1000).callsLibrary());
  EXPECT_EQ(timeOf(0, "cuda"), 30);
  EXPECT_EQ(use("tf32", 1000),
            CudaConvolutionAttr::get(
                &context, "tf32", 102, false,
                DenseI64ArrayAttr::get(&context, profile.rows[2].algorithm)));
  EXPECT_EQ(timeOf(0, "cuda"), 10);
  // Again, of what is chosen.
  EXPECT_EQ(timeOf(0, "cuda"), 10);
  EXPECT_FALSE(use("tf32", 101).callsLibrary());
  EXPECT_EQ(timeOf(0, "cuda"), 30);
  EXPECT_TRUE(use("fp32", 1000, /*always=*/true).getEngine());
  EXPECT_EQ(timeOf(0, "cuda"), 40);
  // The library has no engine: its row says nothing else.
  profile.rows[2].algorithm.clear();
  EXPECT_FALSE(use("tf32", 1000).callsLibrary());
  EXPECT_FALSE(use("bf16", 1000).callsLibrary());
  // Kernels that do not say anything are generated code.
  kernel("kernel")->removeAttr(BaechiDialect::kCudaConvolution);
  EXPECT_EQ(timeOf(0, "cuda"), 30);
}

/// A product's time is that of its math, and its algorithm that of the row,
/// where the workspace is allowed.
TEST_F(ProfiledCosts, ProductsOfGpusAreFoundByTheirMath) {
  auto use = [&](StringRef math, int64_t workspace) {
    kernel("kernel")->setAttr(
        BaechiDialect::kCudaProduct,
        CudaProductAttr::get(&context, math, workspace, {}));
    timeOf(0, "cuda");
    return kernel("kernel")->getAttrOfType<CudaProductAttr>(
        BaechiDialect::kCudaProduct);
  };
  addRow("kernel", "cublaslt", "cuda", 20);
  addRow("kernel", "cublaslt-tf32", "cuda", 10);
  for (int64_t row : {0, 1}) {
    profile.rows[row].scratchBytes = 100 + row;
    profile.rows[row].algorithm.assign(8, row);
  }
  EXPECT_EQ(use("fp32", 1000),
            CudaProductAttr::get(
                &context, "fp32", 100,
                DenseI64ArrayAttr::get(&context, profile.rows[0].algorithm)));
  EXPECT_EQ(timeOf(0, "cuda"), 20);
  EXPECT_EQ(use("tf32", 101).getAlgorithm().asArrayRef(),
            ArrayRef(profile.rows[1].algorithm));
  EXPECT_EQ(timeOf(0, "cuda"), 10);
  EXPECT_FALSE(use("tf32", 99).getAlgorithm());
  use("bf16", 1000);
  EXPECT_EQ(timeOf(0, "cuda"), 5001);
}

/// A kernel that is timed alone changes its argument in place. In steps it has
/// copied what it had to.
TEST_F(ProfiledCosts, CopiesAreInWhatStepsTook) {
  context.loadDialect<tensor::TensorDialect>();
  module = parseSourceString<ModuleOp>(R"(
func.func private @put(%r: tensor<8xf32>, %t: tensor<100x8xf32>) -> (tensor<100x8xf32> {baechi.may_alias = array<i64: 1>}) attributes {baechi.kernel} {
  %0 = tensor.insert_slice %r into %t[3, 0] [1, 8] [1, 1] : tensor<8xf32> into tensor<100x8xf32>
  return %0 : tensor<100x8xf32>
}
func.func @step(%r: tensor<8xf32>, %t: tensor<100x8xf32>) -> tensor<100x8xf32> {
  %0 = call @put(%r, %t) : (tensor<8xf32>, tensor<100x8xf32>) -> tensor<100x8xf32>
  return %0 : tensor<100x8xf32>
})",
                                       &context);
  addRow("put", "generated", "host", 1000);
  // 3200 bytes are read and written, at 10 GB/s.
  EXPECT_EQ(timeOf(0, "host"), 1640);
  profile.rows[0].stepNs = 1500;
  EXPECT_EQ(timeOf(0, "host"), 1500);
}

TEST_F(ProfiledCosts, AKindThatIsOnlyInTheProfileIsAdded) {
  addRow("kernel", "generated", "tpu", 42);
  EXPECT_EQ(timeOf(0, "tpu"), 42);
}

TEST_F(ProfiledCosts, TimesAreIntegers) {
  Builder builder(&context);
  auto times = builder.getDictionaryAttr(
      builder.getNamedAttr("host", builder.getF32FloatAttr(1)));
  EXPECT_EQ(diagnosticOf([&] {
              EXPECT_TRUE(failed(CostAttr::verify(
                  [&] { return emitError(UnknownLoc::get(&context)); }, times,
                  0, ArrayAttr())));
            }),
            "the time of kind 'host' must be an integer of ns");
}
