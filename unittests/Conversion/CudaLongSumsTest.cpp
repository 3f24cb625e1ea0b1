//===- CudaLongSumsTest.cpp - Long sums of GPU code beside float64 -===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Equal numbers are the worst there are: what is added is rounded in the same
// direction each time. The code of launches is run by loops over its blocks and
// threads (CudaKernelsTest.cpp), whose order of additions is the device's.
//
//===----------------------------------------------------------------------===//

#include "Baechi/Conversion/Kernels/Cuda/CudaKernels.h"
#include "KernelRunner.h"

using namespace mlir;
using namespace baechi;
using namespace baechi::test;

namespace {
/// GPU code of a module of kernels, run on the host.
Kernels emulated(const std::string &text, bool descending) {
  return Kernels(
      text, registerCudaKernelDialects,
      [&](ModuleOp kernels) { return emulateCudaKernels(kernels, descending); },
      [](StringRef kernel) { return kernel.str(); });
}

/// Runs a kernel in both orders of threads; every result must be near `wanted`,
/// and the same bits.
template <typename... Arrays>
void expectSums(const std::string &text, StringRef name, size_t results,
                double wanted, double tolerance, const Arrays &...arrays) {
  Array<float> up(results), down(results);
  emulated(text, /*descending=*/false).call(name, arrays..., up);
  emulated(text, /*descending=*/true).call(name, arrays..., down);
  for (size_t i = 0; i < results; ++i) {
    ASSERT_NEAR(up[i] / wanted, 1, tolerance) << name.str() << " at " << i;
    ASSERT_EQ(up[i], down[i]) << name.str() << " at " << i;
  }
}

constexpr double kNear = 5e-6;
constexpr float kTenth = 0.1f;
} // namespace

TEST(CudaLongSums, OfAllElements) {
  constexpr size_t terms = 4096 * 1024;
  expectSums(R"(
    func.func private @sum(%x: tensor<4096x1024xf32>) -> tensor<f32> attributes {baechi.kernel} {
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<f32>
      %s = linalg.fill ins(%zero : f32) outs(%e : tensor<f32>) -> tensor<f32>
      %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> ()>],
                           iterator_types = ["reduction", "reduction"]}
          ins(%x : tensor<4096x1024xf32>) outs(%s : tensor<f32>) {
      ^bb0(%in: f32, %out: f32):
        %a = arith.addf %out, %in : f32
        linalg.yield %a : f32
      } -> tensor<f32>
      return %r : tensor<f32>
    })",
             "sum", 1, terms * double(kTenth), kNear,
             Array<float>(terms, kTenth));
}

/// So many outputs that a thread has thousands of terms.
TEST(CudaLongSums, OfManyColumns) {
  constexpr size_t terms = 40000, outputs = 4300;
  expectSums(R"(
    func.func private @sum(%x: tensor<40000x2xf32>, %y: tensor<4300xf32>) -> tensor<4300xf32> attributes {baechi.kernel} {
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<4300xf32>
      %s = linalg.fill ins(%zero : f32) outs(%e : tensor<4300xf32>) -> tensor<4300xf32>
      %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, 0)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i)>],
                           iterator_types = ["parallel", "reduction"]}
          ins(%x, %y : tensor<40000x2xf32>, tensor<4300xf32>) outs(%s : tensor<4300xf32>) {
      ^bb0(%a: f32, %b: f32, %out: f32):
        %c = arith.addf %a, %b : f32
        %d = arith.addf %out, %c : f32
        linalg.yield %d : f32
      } -> tensor<4300xf32>
      return %r : tensor<4300xf32>
    })",
             "sum", outputs, terms * double(kTenth + kTenth), kNear,
             Array<float>(2 * terms, kTenth), Array<float>(outputs, kTenth));
}

/// Two numbers are added one after the other: nothing that lanes could share.
TEST(CudaLongSums, OfOneThread) {
  constexpr size_t terms = 100000;
  expectSums(R"(
    func.func private @sum(%x: tensor<2x100000xf32>, %s: tensor<2xf32>) -> tensor<2xf32> attributes {baechi.kernel} {
      %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
                           iterator_types = ["parallel", "reduction"]}
          ins(%x : tensor<2x100000xf32>) outs(%s : tensor<2xf32>) {
      ^bb0(%in: f32, %out: f32):
        %a = arith.addf %out, %in : f32
        %b = arith.addf %in, %a : f32
        linalg.yield %b : f32
      } -> tensor<2xf32>
      return %r : tensor<2xf32>
    })",
             "sum", 2, 2 * terms * double(kTenth) + 1, kNear,
             Array<float>(2 * terms, kTenth), Array<float>(2, 1.0f));
}

/// Outputs that a block's threads share, whose rows are one block's.
TEST(CudaLongSums, WithinABlock) {
  constexpr size_t terms = 40000, outputs = 64, rows = 2;
  expectSums(R"(
    func.func private @sum(%x: tensor<2x40000x64xf32>) -> tensor<2x64xf32> attributes {baechi.kernel} {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<2x64xf32>
      %all = scf.for %i = %c0 to %c2 step %c1 iter_args(%made = %e) -> tensor<2x64xf32> {
        %row = tensor.extract_slice %x[%i, 0, 0] [1, 40000, 64] [1, 1, 1] : tensor<2x40000x64xf32> to tensor<40000x64xf32>
        %to = tensor.extract_slice %made[%i, 0] [1, 64] [1, 1] : tensor<2x64xf32> to tensor<64xf32>
        %s = linalg.fill ins(%zero : f32) outs(%to : tensor<64xf32>) -> tensor<64xf32>
        %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i)>],
                             iterator_types = ["parallel", "reduction"]}
            ins(%row : tensor<40000x64xf32>) outs(%s : tensor<64xf32>) {
        ^bb0(%in: f32, %out: f32):
          %a = arith.addf %out, %in : f32
          linalg.yield %a : f32
        } -> tensor<64xf32>
        %next = tensor.insert_slice %r into %made[%i, 0] [1, 64] [1, 1] : tensor<64xf32> into tensor<2x64xf32>
        scf.yield %next : tensor<2x64xf32>
      }
      return %all : tensor<2x64xf32>
    })",
             "sum", rows * outputs, terms * double(kTenth), kNear,
             Array<float>(rows * terms * outputs, kTenth));
}

/// Of generated tiles, whose sums several blocks share: a filter's gradient.
TEST(CudaLongSums, OfAProduct) {
  constexpr size_t images = 200, rows = 1000, terms = images * rows;
  expectSums(R"(
    func.func private @product(%x: tensor<200x1002x2xf32>, %y: tensor<200x1000x2xf32>) -> tensor<3x2x2xf32> attributes {baechi.kernel} {
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<3x2x2xf32>
      %s = linalg.fill ins(%zero : f32) outs(%e : tensor<3x2x2xf32>) -> tensor<3x2x2xf32>
      %r = linalg.generic {indexing_maps = [affine_map<(i, c, d, n, h) -> (n, h + i, c)>, affine_map<(i, c, d, n, h) -> (n, h, d)>,
                                            affine_map<(i, c, d, n, h) -> (i, c, d)>],
                           iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction"]}
          ins(%x, %y : tensor<200x1002x2xf32>, tensor<200x1000x2xf32>) outs(%s : tensor<3x2x2xf32>) {
      ^bb0(%a: f32, %b: f32, %out: f32):
        %m = arith.mulf %a, %b : f32
        %t = arith.addf %out, %m : f32
        linalg.yield %t : f32
      } -> tensor<3x2x2xf32>
      return %r : tensor<3x2x2xf32>
    })",
             "product", 12, terms * double(kTenth), 2e-5,
             Array<float>(images * (rows + 2) * 2, kTenth),
             Array<float>(terms * 2, 1.0f));
}

/// Infinity stays what it is.
TEST(CudaLongSums, KeepWhatIsNoNumber) {
  constexpr size_t terms = 100000;
  const char *text = R"(
    func.func private @sum(%x: tensor<100000xf32>, %s: tensor<f32>) -> tensor<f32> attributes {baechi.kernel} {
      %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>],
                           iterator_types = ["reduction"]}
          ins(%x : tensor<100000xf32>) outs(%s : tensor<f32>) {
      ^bb0(%in: f32, %out: f32):
        %a = arith.addf %out, %in : f32
        %b = arith.addf %in, %a : f32
        linalg.yield %b : f32
      } -> tensor<f32>
      return %r : tensor<f32>
    })";
  Kernels code = emulated(text, /*descending=*/false);
  Array<float> x(terms, kTenth), start(1), sum(1);
  x[77777] = INFINITY;
  code.call("sum", x, start, sum);
  EXPECT_EQ(sum[0], INFINITY);
  x[5] = -INFINITY;
  code.call("sum", x, start, sum);
  EXPECT_TRUE(std::isnan(sum[0]));
  Array<float> zeros(terms, -0.0f), negative(1, -0.0f);
  code.call("sum", zeros, negative, sum);
  EXPECT_TRUE(std::signbit(sum[0]));
}
