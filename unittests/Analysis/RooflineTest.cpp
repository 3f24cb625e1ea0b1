//===- RooflineTest.cpp - Estimates of operators -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/Roofline.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

using namespace baechi;
using namespace mlir;

namespace {
/// The work of the operation that the step returns.
Work workOfReturned(StringRef program) {
  MLIRContext context;
  context.loadDialect<BaechiDialect, func::FuncDialect, arith::ArithDialect,
                      linalg::LinalgDialect, scf::SCFDialect,
                      tensor::TensorDialect>();
  auto module = parseSourceString<ModuleOp>(program, &context);
  auto step = module->lookupSymbol<func::FuncOp>("step");
  return workOf(
      step.getBody().front().getTerminator()->getOperand(0).getDefiningOp());
}
} // namespace

TEST(Roofline, TheLargerOfTheTwoBounds) {
  Roofline device{"host", 100e9, 10e9, 500};
  EXPECT_EQ(device.timeNs({0, 0}), 500);
  EXPECT_EQ(device.timeNs({100e3, 0}), 1500);
  EXPECT_EQ(device.timeNs({100e3, 20e3}), 2500);
  EXPECT_EQ(device.timeNs({1, 0}), 501); // rounded up
}

TEST(Roofline, StructuredOperationsCountTheirLoops) {
  Work work = workOfReturned(R"(
    func.func @step(%a: tensor<2x3xf32>, %b: tensor<3x5xf32>, %c: tensor<2x5xf32>) -> tensor<2x5xf32> {
      %0 = linalg.matmul ins(%a, %b : tensor<2x3xf32>, tensor<3x5xf32>) outs(%c : tensor<2x5xf32>) -> tensor<2x5xf32>
      return %0 : tensor<2x5xf32>
    })");
  EXPECT_EQ(work.flops, 2 * 2 * 3 * 5);
  EXPECT_EQ(work.bytes, 4 * (6 + 15 + 10 + 10));
}

TEST(Roofline, KernelsAreCountedBehindTheirCalls) {
  Work work = workOfReturned(R"(
    func.func private @kernel(%a: tensor<8xf16>) -> tensor<8xf16> attributes {baechi.kernel} {
      %lo = arith.constant 0 : index
      %hi = arith.constant 10 : index
      %step = arith.constant 2 : index
      %0 = scf.for %i = %lo to %hi step %step iter_args(%x = %a) -> tensor<8xf16> {
        %1 = linalg.exp ins(%x : tensor<8xf16>) outs(%x : tensor<8xf16>) -> tensor<8xf16>
        scf.yield %1 : tensor<8xf16>
      }
      return %0 : tensor<8xf16>
    }
    func.func @step(%a: tensor<8xf16>) -> tensor<8xf16> {
      %0 = call @kernel(%a) : (tensor<8xf16>) -> tensor<8xf16>
      return %0 : tensor<8xf16>
    })");
  EXPECT_EQ(work.flops, 5 * 8);
  EXPECT_EQ(work.bytes, 2 * 8 * 2);
}

TEST(Roofline, Parse) {
  std::string error;
  auto rooflines = parseRooflines("host:50:10.5:200,gpu:1e3:600:0", error);
  ASSERT_TRUE(rooflines) << error;
  ASSERT_EQ(rooflines->size(), 2u);
  EXPECT_EQ((*rooflines)[0].kind, "host");
  EXPECT_EQ((*rooflines)[0].bytesPerSecond, 10.5e9);
  EXPECT_EQ((*rooflines)[1].flopsPerSecond, 1e12);
  EXPECT_EQ((*rooflines)[1].launchNs, 0);
  for (const char *text :
       {"", ",", "host", "host:1:1", ":1:1:1", "host:x:1:1", "host:0:1:1",
        "host:1:-1:1", "host:nan:1:1", "host:1:1:-1", "host:1:1:1:1",
        "host:1:1:1,", "host:1:1:0.5"}) {
    error.clear();
    EXPECT_FALSE(parseRooflines(text, error)) << text;
    EXPECT_NE(error.find("is not KIND:GFLOPS:GBS:LAUNCH_NS"),
              std::string::npos);
  }
}
