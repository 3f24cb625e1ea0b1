//===- StepEstimateTest.cpp - What a step's kernels may take --------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Costs/Measure/StepEstimate.h"
#include "Baechi/Analysis/KernelHash.h"
#include "Baechi/Conversion/Kernels/Common/Dialects.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

using namespace baechi;

namespace {
constexpr const char *kStep = R"(
func.func private @negate(%a: tensor<1000xf32>) -> tensor<1000xf32> attributes {baechi.kernel} {
  %r = arith.negf %a : tensor<1000xf32>
  return %r : tensor<1000xf32>
}
func.func private @add(%a: tensor<1000xf32>) -> tensor<1000xf32> attributes {baechi.kernel} {
  %r = arith.addf %a, %a : tensor<1000xf32>
  return %r : tensor<1000xf32>
}
func.func @main(%a: tensor<1000xf32>) -> tensor<1000xf32> {
  %b = call @negate(%a) : (tensor<1000xf32>) -> tensor<1000xf32>
  %c = call @add(%b) : (tensor<1000xf32>) -> tensor<1000xf32>
  %d = call @add(%c) : (tensor<1000xf32>) -> tensor<1000xf32>
  return %d : tensor<1000xf32>
})";

TEST(StepEstimate, TakesRowsAndElseTheRoofline) {
  mlir::DialectRegistry registry;
  registerKernelDialects(registry);
  mlir::MLIRContext context(registry);
  auto module = mlir::parseSourceString<mlir::ModuleOp>(kStep, &context);
  ASSERT_TRUE(module);
  auto hashOf = [&](llvm::StringRef name) {
    return kernelHash(module->lookupSymbol<mlir::func::FuncOp>(name));
  };
  Profile profile;
  StepEstimate assumed(*module, "host", profile);
  // 8,000 bytes at 10 GB/s and a launch of 200 ns.
  EXPECT_EQ(assumed.of(hashOf("negate")).ns, 1000);
  EXPECT_EQ(assumed.of(hashOf("add")).calls, 2U);
  EXPECT_EQ(assumed.stepNs(), 3000);

  ProfileRow row{"add", hashOf("add"), "generated", "host", 7000};
  row.stepNs = 5000;
  profile.rows.push_back(row);
  EXPECT_EQ(StepEstimate(*module, "host", profile).stepNs(), 11000);
  EXPECT_EQ(StepEstimate(*module, "cuda", profile).of(row.hash).calls, 2U);
  EXPECT_NE(StepEstimate(*module, "cuda", profile).of(row.hash).ns, 5000);
  profile.rows[0].disturbed = true;
  EXPECT_EQ(StepEstimate(*module, "host", profile).stepNs(), 3000);
}
} // namespace
