//===- RooflineTest.cpp - Estimates of operators -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Costs/Roofline.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
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
  context.allowUnregisteredDialects();
  context.loadDialect<BaechiDialect, func::FuncDialect, arith::ArithDialect,
                      linalg::LinalgDialect, math::MathDialect, scf::SCFDialect,
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

namespace {
/// The operations of a loop that counts from 3 as `condition` of its counter
/// and
/// `%bound` (11) says, in steps of `step`.
double flopsOfCounting(llvm::StringRef condition, llvm::StringRef step) {
  std::string text = R"(
    #scalar = affine_map<() -> ()>
    func.func private @kernel(%a: tensor<8xf32>) -> tensor<8xf32> attributes {baechi.kernel} {
      %first = arith.constant dense<3> : tensor<i32>
      %bound = arith.constant 11 : i32
      %step = arith.constant )" +
                     step.str() + R"( : i32
      %r:2 = scf.while (%i = %first, %x = %a) : (tensor<i32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<i32>) {
        %e = tensor.empty() : tensor<i1>
        %b = linalg.generic {indexing_maps = [#scalar, #scalar], iterator_types = []} ins(%i : tensor<i32>) outs(%e : tensor<i1>) {
        ^bb0(%in: i32, %o: i1):
          %c = arith.cmpi )" +
                     condition.str() + R"( : i32
          linalg.yield %c : i1
        } -> tensor<i1>
        %go = tensor.extract %b[] : tensor<i1>
        scf.condition(%go) %x, %i : tensor<8xf32>, tensor<i32>
      } do {
      ^bb0(%x: tensor<8xf32>, %i: tensor<i32>):
        %y = math.exp %x : tensor<8xf32>
        %n = tensor.extract %i[] : tensor<i32>
        %m = arith.addi %step, %n : i32
        %next = tensor.from_elements %m : tensor<i32>
        scf.yield %next, %y : tensor<i32>, tensor<8xf32>
      }
      return %r#0 : tensor<8xf32>
    }
    func.func @step(%a: tensor<8xf32>) -> tensor<8xf32> {
      %0 = call @kernel(%a) : (tensor<8xf32>) -> tensor<8xf32>
      return %0 : tensor<8xf32>
    })";
  // Beside what counts.
  return workOfReturned(text).flops;
}
} // namespace

TEST(Roofline, LoopsThatCountTakeTheirTrips) {
  // Of each of 8 trips: 8 exponentials, a comparison, an addition.
  EXPECT_EQ(flopsOfCounting("slt, %in, %bound", "1"), 8 * 10);
  EXPECT_EQ(flopsOfCounting("sgt, %bound, %in", "1"), 8 * 10);
  EXPECT_EQ(flopsOfCounting("sle, %in, %bound", "1"), 9 * 10);
  EXPECT_EQ(flopsOfCounting("slt, %in, %bound", "3"), 3 * 10);
  EXPECT_EQ(flopsOfCounting("sge, %in, %step", "-5"), 2 * 10);
  EXPECT_EQ(flopsOfCounting("sgt, %in, %bound", "-1"), 0);
  // Nothing is known of how often these run.
  EXPECT_EQ(flopsOfCounting("ne, %in, %bound", "1"), 10);
  EXPECT_EQ(flopsOfCounting("slt, %in, %bound", "-1"), 10);
}

TEST(Roofline, StridedReadsTouchWhatTheMapReaches) {
  // 1-D convolution, stride 3, two taps: of 12 elements the third of each
  // three is never read.
  Work work = workOfReturned(R"(
    func.func @step(%x: tensor<12xf32>, %k: tensor<2xf32>, %o: tensor<4xf32>) -> tensor<4xf32> {
      %0 = linalg.generic {indexing_maps = [affine_map<(o, k) -> (3 * o + k)>, affine_map<(o, k) -> (k)>, affine_map<(o, k) -> (o)>],
                           iterator_types = ["parallel", "reduction"]}
          ins(%x, %k : tensor<12xf32>, tensor<2xf32>) outs(%o : tensor<4xf32>) {
      ^bb0(%a: f32, %b: f32, %c: f32):
        %m = arith.mulf %a, %b : f32
        %n = arith.addf %m, %c : f32
        linalg.yield %n : f32
      } -> tensor<4xf32>
      return %0 : tensor<4xf32>
    })");
  EXPECT_EQ(work.flops, 2 * 4 * 2);
  EXPECT_EQ(work.bytes, 4 * (8 + 2 + 4 + 4));
}

TEST(Roofline, BroadcastsDiagonalsAndUnreadInits) {
  // A scalar row broadcast, a diagonal, an init that is only written; the
  // cast and the position are no arithmetic.
  Work work = workOfReturned(R"(
    func.func @step(%x: tensor<8x8xf16>, %r: tensor<1xf32>, %o: tensor<8xf32>) -> tensor<8xf32> {
      %0 = linalg.generic {indexing_maps = [affine_map<(i) -> (i, i)>, affine_map<(i) -> (0)>, affine_map<(i) -> (i)>],
                           iterator_types = ["parallel"]}
          ins(%x, %r : tensor<8x8xf16>, tensor<1xf32>) outs(%o : tensor<8xf32>) {
      ^bb0(%a: f16, %b: f32, %c: f32):
        %wide = arith.extf %a : f16 to f32
        %i = linalg.index 0 : index
        %j = arith.addi %i, %i : index
        %n = arith.mulf %wide, %b : f32
        linalg.yield %n : f32
      } -> tensor<8xf32>
      return %0 : tensor<8xf32>
    })");
  EXPECT_EQ(work.flops, 8);
  EXPECT_EQ(work.bytes, 8 * 2 + 4 + 8 * 4);
}

TEST(Roofline, KernelsReadOnlyTheirSlicesAndRows) {
  // A slice of 2 of 100 rows; a gather of 3 rows of 4 elements of 100.
  Work work = workOfReturned(R"(
    func.func private @kernel(%t: tensor<100x4xf32>, %u: tensor<100x4xf32>, %unread: tensor<100xf32>, %at: tensor<3xi32>) -> (tensor<3x4xf32>, tensor<2x4xf32>) attributes {baechi.kernel} {
      %e = tensor.empty() : tensor<3x4xf32>
      %0 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
          ins(%at : tensor<3xi32>) outs(%e : tensor<3x4xf32>) {
      ^bb0(%r: i32, %c: f32):
        %row = arith.index_cast %r : i32 to index
        %column = linalg.index 1 : index
        %v = tensor.extract %t[%row, %column] : tensor<100x4xf32>
        linalg.yield %v : f32
      } -> tensor<3x4xf32>
      %1 = tensor.extract_slice %u[10, 0] [2, 4] [1, 1] : tensor<100x4xf32> to tensor<2x4xf32>
      return %0, %1 : tensor<3x4xf32>, tensor<2x4xf32>
    }
    func.func @step(%t: tensor<100x4xf32>, %u: tensor<100x4xf32>, %x: tensor<100xf32>, %at: tensor<3xi32>) -> tensor<3x4xf32> {
      %0:2 = call @kernel(%t, %u, %x, %at) : (tensor<100x4xf32>, tensor<100x4xf32>, tensor<100xf32>, tensor<3xi32>) -> (tensor<3x4xf32>, tensor<2x4xf32>)
      return %0#0 : tensor<3x4xf32>
    })");
  EXPECT_EQ(work.flops, 0);
  EXPECT_EQ(work.bytes, 4 * (3 * 4 + 2 * 4 + 3 + 3 * 4 + 2 * 4));
}

TEST(Roofline, AlternativesCountTheLargerAndNoLoopRunsNegatively) {
  Work work = workOfReturned(R"(
    func.func @step(%c: i1, %x: tensor<8xf32>) -> tensor<8xf32> {
      %lo = arith.constant 9 : index
      %hi = arith.constant 3 : index
      %0 = scf.if %c -> tensor<8xf32> {
        %1 = math.fma %x, %x, %x : tensor<8xf32>
        scf.yield %1 : tensor<8xf32>
      } else {
        %1 = arith.addf %x, %x : tensor<8xf32>
        %2 = scf.for %i = %lo to %hi step %lo iter_args(%y = %1) -> tensor<8xf32> {
          %3 = math.exp %y : tensor<8xf32>
          scf.yield %3 : tensor<8xf32>
        }
        scf.yield %2 : tensor<8xf32>
      }
      return %0 : tensor<8xf32>
    })");
  EXPECT_EQ(work.flops, 2 * 8);
}

namespace {
std::vector<RooflineSample> measured(const Roofline &truth) {
  std::vector<RooflineSample> samples;
  for (double bytes : {1e3, 2e4, 3e5, 4e6})
    for (double intensity : {0.1, 1.0, 30.0, 400.0}) {
      Work work{bytes * intensity, bytes};
      samples.push_back({work, double(truth.timeNs(work))});
    }
  return samples;
}
} // namespace

TEST(Roofline, OperationsWithoutBodies) {
  Work softmax = workOfReturned(R"(
    func.func @step(%x: tensor<4x8xf32>, %o: tensor<4x8xf32>) -> tensor<4x8xf32> {
      %0 = linalg.softmax dimension(1) ins(%x : tensor<4x8xf32>) outs(%o : tensor<4x8xf32>) -> tensor<4x8xf32>
      return %0 : tensor<4x8xf32>
    })");
  EXPECT_EQ(softmax.flops, 5 * 32);
  EXPECT_EQ(softmax.bytes, 2 * 4 * 32);
  Work pack = workOfReturned(R"(
    func.func @step(%x: tensor<8x8xf32>, %o: tensor<2x2x4x4xf32>) -> tensor<2x2x4x4xf32> {
      %0 = linalg.pack %x inner_dims_pos = [0, 1] inner_tiles = [4, 4] into %o : tensor<8x8xf32> -> tensor<2x2x4x4xf32>
      return %0 : tensor<2x2x4x4xf32>
    })");
  EXPECT_EQ(pack.flops, 0);
  EXPECT_EQ(pack.bytes, 2 * 4 * 64);
  Work unpack = workOfReturned(R"(
    func.func @step(%x: tensor<2x2x4x4xf32>, %o: tensor<8x8xf32>) -> tensor<8x8xf32> {
      %0 = linalg.unpack %x inner_dims_pos = [0, 1] inner_tiles = [4, 4] into %o : tensor<2x2x4x4xf32> -> tensor<8x8xf32>
      return %0 : tensor<8x8xf32>
    })");
  EXPECT_EQ(unpack.flops, 0);
  EXPECT_EQ(unpack.bytes, 2 * 4 * 64);
}

TEST(Roofline, ProductsOfUnregisteredDialects) {
  auto dot = [](const std::string &numbers) {
    return workOfReturned(
        R"(
      func.func @step(%a: tensor<2x3x4xf32>, %b: tensor<2x4x5xf32>) -> tensor<2x3x5xf32> {
        %0 = "stablehlo.dot_general"(%a, %b) <{)" +
        numbers +
        R"(}> : (tensor<2x3x4xf32>, tensor<2x4x5xf32>) -> tensor<2x3x5xf32>
        return %0 : tensor<2x3x5xf32>
      })");
  };
  Work read = dot("dot_dimension_numbers = #stablehlo.dot<"
                  "lhs_batching_dimensions = [0], "
                  "rhs_batching_dimensions = [0], "
                  "lhs_contracting_dimensions = [2], "
                  "rhs_contracting_dimensions = [1]>");
  EXPECT_EQ(read.flops, 2 * 2 * 3 * 5 * 4);
  EXPECT_EQ(read.bytes, 4 * (24 + 40 + 30));
  // One an element where the dimensions cannot be read.
  EXPECT_EQ(dot("").flops, 30);
  EXPECT_EQ(dot("dot_dimension_numbers = #stablehlo.dot<"
                "lhs_contracting_dimensions = [7]>")
                .flops,
            30);
  Work tosa = workOfReturned(R"(
    func.func @step(%a: tensor<2x3x4xf32>, %b: tensor<2x4x5xf32>, %z: tensor<1xf32>) -> tensor<2x3x5xf32> {
      %0 = "tosa.matmul"(%a, %b, %z, %z) : (tensor<2x3x4xf32>, tensor<2x4x5xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<2x3x5xf32>
      return %0 : tensor<2x3x5xf32>
    })");
  EXPECT_EQ(tosa.flops, 2 * 2 * 3 * 5 * 4);
}

TEST(RooflineFit, FindsThePeaksThatMadeTheTimes) {
  Roofline truth{"host", 80e9, 12e9, 700}, assumed{"host", 1e9, 1e9, 0};
  std::vector<RooflineSample> samples = measured(truth);
  auto fit = fitRoofline(samples, assumed);
  ASSERT_TRUE(fit);
  EXPECT_EQ(fit->roofline.kind, "host");
  EXPECT_NEAR(fit->roofline.flopsPerSecond / truth.flopsPerSecond, 1, 0.01);
  EXPECT_NEAR(fit->roofline.bytesPerSecond / truth.bytesPerSecond, 1, 0.01);
  EXPECT_NEAR(fit->roofline.launchNs, 700, 5);
  EXPECT_LT(fit->medianError, 0.01);
}

TEST(RooflineFit, APeakThatNothingReachesIsAssumed) {
  Roofline truth{"host", 80e9, 12e9, 700}, assumed{"host", 33e9, 44e9, 0};
  std::vector<RooflineSample> samples = measured(truth), copies;
  for (const RooflineSample &sample : samples)
    if (sample.work.flops <= sample.work.bytes)
      copies.push_back({{0, sample.work.bytes}, sample.ns});
  auto fit = fitRoofline(copies, assumed);
  ASSERT_TRUE(fit);
  EXPECT_EQ(fit->roofline.flopsPerSecond, 33e9);
  EXPECT_NEAR(fit->roofline.bytesPerSecond / truth.bytesPerSecond, 1, 0.01);
}

TEST(RooflineFit, TooFewSamplesAreNoFit) {
  Roofline truth{"host", 80e9, 12e9, 700};
  std::vector<RooflineSample> samples = measured(truth);
  samples.resize(3);
  samples.push_back({{1, 1}, 0}); // took no time
  samples.push_back({{1, 0}, 9}); // moved nothing
  EXPECT_FALSE(fitRoofline(samples, truth));
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
