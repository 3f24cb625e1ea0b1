//===- MeasureKernelsTest.cpp - Rows of the profile -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Conversion/KernelRunner.h"
#include "Baechi/Conversion/Kernels/Common/Dialects.h"
#include "Baechi/Costs/Measure/KernelCosts.h"
#include "gmock/gmock.h"

using namespace baechi;

namespace {
mlir::FailureOr<size_t> measureKernels(
    mlir::ModuleOp module, Profile &profile, const MeasureOptions &options,
    KernelCosts::Progress progress = [](size_t, size_t) {}) {
  llvm::cantFail(hostCosts().adopt(module, profile));
  return hostCosts().measure(module, profile, options, progress);
}

class MeasureKernels : public testing::Test {
protected:
  void SetUp() override {
    mlir::DialectRegistry registry;
    registerKernelDialects(registry);
    context = std::make_unique<mlir::MLIRContext>(registry);
    module = mlir::parseSourceString<mlir::ModuleOp>(R"(
func.func private @product(%a: tensor<16x16xf32>, %b: tensor<16x16xf32>) -> tensor<16x16xf32> attributes {baechi.kernel} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<16x16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<16x16xf32>) -> tensor<16x16xf32>
  %r = linalg.matmul ins(%a, %b : tensor<16x16xf32>, tensor<16x16xf32>) outs(%f : tensor<16x16xf32>) -> tensor<16x16xf32>
  return %r : tensor<16x16xf32>
}
func.func private @gather(%table: tensor<5x6xf32>, %ids: tensor<4000xi32>, %mask: tensor<4000xi1>) -> tensor<4000xf32> attributes {baechi.kernel} {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %e = tensor.empty() : tensor<4000xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      ins(%ids, %mask : tensor<4000xi32>, tensor<4000xi1>) outs(%e : tensor<4000xf32>) {
  ^bb0(%id: i32, %m: i1, %o: f32):
    %row = arith.index_cast %id : i32 to index
    %v = tensor.extract %table[%row, %c0] : tensor<5x6xf32>
    %w = arith.select %m, %v, %zero : f32
    linalg.yield %w : f32
  } -> tensor<4000xf32>
  return %r : tensor<4000xf32>
})",
                                                     context.get());
    ASSERT_TRUE(module);
    options.rounds.secondsEach = 0.001;
  }
  std::vector<std::string> keepDiagnostics(llvm::function_ref<void()> run) {
    std::vector<std::string> texts;
    mlir::ScopedDiagnosticHandler handler(context.get(),
                                          [&](mlir::Diagnostic &diagnostic) {
                                            texts.push_back(diagnostic.str());
                                            return mlir::success();
                                          });
    run();
    return texts;
  }

  std::unique_ptr<mlir::MLIRContext> context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  MeasureOptions options;
};

TEST_F(MeasureKernels, OneRowForEachImplementation) {
  Profile profile;
  std::vector<size_t> steps;
  ASSERT_TRUE(mlir::succeeded(
      measureKernels(*module, profile, options, [&](size_t done, size_t total) {
        EXPECT_EQ(total, 4u);
        steps.push_back(done);
      })));
  EXPECT_TRUE(llvm::is_sorted(steps));
  EXPECT_EQ(steps.front(), 0u);
  EXPECT_EQ(steps.back(), 4u);
  EXPECT_EQ(profile.target, HostJit::hostTarget());
  std::vector<std::string> found;
  for (const ProfileRow &row : profile.rows) {
    found.push_back(row.kernel + "/" + row.implementation);
    EXPECT_EQ(row.kind, "host");
    EXPECT_GT(row.medianNs, 0);
    EXPECT_GE(row.spreadNs, 0);
    EXPECT_GE(row.samples, 1);
    EXPECT_EQ(row.scratchBytes, 0);
  }
  EXPECT_EQ(found, (std::vector<std::string>{
                       "product/onednn", "product/openblas",
                       "product/generated", "gather/generated"}));
  // The module itself is as it was.
  EXPECT_TRUE(module->lookupSymbol<mlir::func::FuncOp>("product"));
}

TEST_F(MeasureKernels, KnownRowsAreKept) {
  Profile profile;
  ASSERT_TRUE(mlir::succeeded(measureKernels(*module, profile, options)));
  profile.rows.pop_back();
  profile.rows[0].medianNs = 7;
  ASSERT_TRUE(mlir::succeeded(measureKernels(*module, profile, options)));
  ASSERT_EQ(profile.rows.size(), 4u);
  EXPECT_EQ(profile.rows[0].medianNs, 7);
  EXPECT_EQ(profile.rows[3].kernel, "gather");
}

TEST_F(MeasureKernels, RowsOfAnotherHostAreMeasuredAgain) {
  Profile profile;
  ASSERT_TRUE(mlir::succeeded(measureKernels(*module, profile, options)));
  std::string compiler = profile.compiler;
  EXPECT_THAT(compiler, testing::HasSubstr("LLVM "));
  profile.target = "another host";
  for (ProfileRow &row : profile.rows)
    row.medianNs = -1;
  ProfileRow other = profile.rows.front();
  other.kind = "gpu";
  profile.rows.push_back(other);
  std::vector<std::string> warnings = keepDiagnostics([&] {
    ASSERT_TRUE(mlir::succeeded(measureKernels(*module, profile, options)));
  });
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_EQ(warnings[0], "the profile was measured on 'another host' by '" +
                             compiler + "' but this host is '" +
                             HostJit::hostTarget() + "' by '" + compiler +
                             "'; its rows of kind 'host' are measured again");
  EXPECT_EQ(profile.target, HostJit::hostTarget());
  ASSERT_EQ(profile.rows.size(), 5u);
  EXPECT_EQ(profile.rows[0].kind, "gpu");
  for (const ProfileRow &row : llvm::drop_begin(profile.rows))
    EXPECT_GT(row.medianNs, 0);
}

TEST_F(MeasureKernels, RowsOfAnotherCompilerAreMeasuredAgain) {
  Profile profile;
  ASSERT_TRUE(mlir::succeeded(measureKernels(*module, profile, options)));
  profile.compiler = "kernels 1, LLVM 1.0";
  profile.rows[0].medianNs = -1;
  std::vector<std::string> warnings = keepDiagnostics([&] {
    ASSERT_TRUE(mlir::succeeded(measureKernels(*module, profile, options)));
  });
  EXPECT_EQ(warnings.size(), 1u);
  EXPECT_GT(profile.rows[0].medianNs, 0);
}

TEST_F(MeasureKernels, KernelsThatOperandsMayBreakAreLeftOut) {
  module = mlir::parseSourceString<mlir::ModuleOp>(R"(
func.func private @divide(%a: tensor<4xi32>, %b: tensor<4xi32>) -> tensor<4xi32> attributes {baechi.kernel} {
  %r = arith.divsi %a, %b : tensor<4xi32>
  return %r : tensor<4xi32>
}
func.func private @shifted(%a: tensor<4xf32>, %i: tensor<i64>) -> tensor<f32> attributes {baechi.kernel} {
  %c9 = arith.constant 9 : i64
  %id = tensor.extract %i[] : tensor<i64>
  %below = arith.subi %id, %c9 : i64
  %at = arith.index_cast %below : i64 to index
  %v = tensor.extract %a[%at] : tensor<4xf32>
  %r = tensor.from_elements %v : tensor<f32>
  return %r : tensor<f32>
}
func.func private @loop(%a: tensor<i64>) -> tensor<i64> attributes {baechi.kernel} {
  %c9 = arith.constant 9 : i64
  %r = scf.while (%t = %a) : (tensor<i64>) -> tensor<i64> {
    %v = tensor.extract %t[] : tensor<i64>
    %more = arith.cmpi slt, %v, %c9 : i64
    scf.condition(%more) %t : tensor<i64>
  } do {
  ^bb0(%t: tensor<i64>):
    scf.yield %t : tensor<i64>
  }
  return %r : tensor<i64>
}
func.func private @empty(%a: tensor<0xf32>, %i: tensor<i64>) -> tensor<f32> attributes {baechi.kernel} {
  %id = tensor.extract %i[] : tensor<i64>
  %at = arith.index_cast %id : i64 to index
  %v = tensor.extract %a[%at] : tensor<0xf32>
  %r = tensor.from_elements %v : tensor<f32>
  return %r : tensor<f32>
}
func.func private @huge(%a: tensor<1099511627776xf32>) -> tensor<1099511627776xf32> attributes {baechi.kernel} {
  %r = arith.negf %a : tensor<1099511627776xf32>
  return %r : tensor<1099511627776xf32>
}
func.func private @from_the_end(%a: tensor<200xf32>, %i: tensor<90xi8>) -> tensor<90xf32> attributes {baechi.kernel} {
  %zero = arith.constant 0 : index
  %size = arith.constant 200 : index
  %e = tensor.empty() : tensor<90xf32>
  %r = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      ins(%i : tensor<90xi8>) outs(%e : tensor<90xf32>) {
  ^bb0(%id: i8, %o: f32):
    %at = arith.index_cast %id : i8 to index
    %negative = arith.cmpi slt, %at, %zero : index
    %moved = arith.addi %at, %size : index
    %k = arith.select %negative, %moved, %at : index
    %v = tensor.extract %a[%k] : tensor<200xf32>
    linalg.yield %v : f32
  } -> tensor<90xf32>
  return %r : tensor<90xf32>
})",
                                                   context.get());
  ASSERT_TRUE(module);
  Profile profile;
  std::vector<std::string> warnings = keepDiagnostics([&] {
    ASSERT_TRUE(mlir::succeeded(measureKernels(*module, profile, options)));
  });
  ASSERT_EQ(warnings.size(), 5u);
  const char *kernels[] = {"divide", "shifted", "loop", "empty", "huge"};
  for (auto [kernel, warning] : llvm::zip_equal(kernels, warnings))
    EXPECT_EQ(
        warning.find("kernel '" + std::string(kernel) + "' is not measured: "),
        0u)
        << warning;
  for (const std::string &warning : warnings)
    EXPECT_TRUE(
        llvm::StringRef(warning).ends_with("; its cost will be an estimate"))
        << warning;
  ASSERT_EQ(profile.rows.size(), 1u);
  EXPECT_EQ(profile.rows[0].kernel, "from_the_end");
}
} // namespace
