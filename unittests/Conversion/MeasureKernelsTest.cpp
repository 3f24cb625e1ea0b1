//===- MeasureKernelsTest.cpp - Rows of the profile -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Conversion/MeasureKernels.h"
#include "KernelRunner.h"

using namespace baechi;

namespace {
class MeasureKernels : public testing::Test {
protected:
  void SetUp() override {
    mlir::DialectRegistry registry;
    registerHostKernelDialects(registry);
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
    options.secondsPerRow = 0.001;
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
        EXPECT_EQ(total, 3u);
        steps.push_back(done);
      })));
  EXPECT_EQ(steps, (std::vector<size_t>{0, 1, 2, 3}));
  EXPECT_EQ(profile.target, HostJit::hostTarget());
  std::vector<std::string> found;
  for (const ProfileRow &row : profile.rows) {
    found.push_back(row.kernel + "/" + row.implementation);
    EXPECT_EQ(row.kind, "host");
    EXPECT_GT(row.medianNs, 0);
    EXPECT_GE(row.spreadNs, 0);
    EXPECT_GE(row.samples, options.samplesPerRow);
    EXPECT_EQ(row.scratchBytes, 0);
  }
  EXPECT_EQ(found,
            (std::vector<std::string>{"product/openblas", "product/generated",
                                      "gather/generated"}));
  // The module itself is as it was.
  EXPECT_TRUE(module->lookupSymbol<mlir::func::FuncOp>("product"));
}

TEST_F(MeasureKernels, KnownRowsAreKept) {
  Profile profile;
  ASSERT_TRUE(mlir::succeeded(measureKernels(*module, profile, options)));
  profile.rows.pop_back();
  profile.rows[0].medianNs = 7;
  ASSERT_TRUE(mlir::succeeded(measureKernels(*module, profile, options)));
  ASSERT_EQ(profile.rows.size(), 3u);
  EXPECT_EQ(profile.rows[0].medianNs, 7);
  EXPECT_EQ(profile.rows[2].kernel, "gather");
}
} // namespace
