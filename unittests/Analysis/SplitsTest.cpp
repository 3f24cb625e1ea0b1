//===- SplitsTest.cpp - How operations can be cut into pieces -------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/Splits.h"
#include "Baechi/Dialect/Baechi.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"
#include <numeric>
#include <set>

using namespace baechi;
using namespace mlir;
using Kind = OperationCut::Kind;
using Sizes = llvm::SmallVector<int64_t>;

TEST(Splits, TheFirstPiecesTakeWhatIsLeftOver) {
  EXPECT_EQ(evenPieces(6, 3), (Sizes{2, 2, 2}));
  EXPECT_EQ(evenPieces(8, 3), (Sizes{3, 3, 2}));
  EXPECT_EQ(evenPieces(5, 1), (Sizes{5}));
  EXPECT_EQ(evenPieces(7, 4), (Sizes{2, 2, 2, 1}));
  for (int64_t extent = 1; extent < 40; ++extent)
    for (int64_t pieces = 1; pieces <= extent; ++pieces) {
      Sizes sizes = evenPieces(extent, pieces);
      EXPECT_EQ(std::accumulate(sizes.begin(), sizes.end(), int64_t(0)),
                extent);
      EXPECT_LE(sizes.front() - sizes.back(), 1);
      EXPECT_GE(sizes.back(), 1);
    }
}

TEST(Splits, AnAttributeHasSizes) {
  // The parser takes no empty list; who builds attributes could.
  MLIRContext context;
  context.loadDialect<BaechiDialect>();
  std::string said;
  ScopedDiagnosticHandler handler(
      &context, [&](Diagnostic &diagnostic) { said = diagnostic.str(); });
  auto here = [&] { return emitError(UnknownLoc::get(&context)); };
  EXPECT_FALSE(SplitAttr::getChecked(here, &context, 0, {}));
  EXPECT_EQ(said, "a split needs sizes");
  EXPECT_TRUE(SplitAttr::getChecked(here, &context, 0, {2, 2}));
}

namespace {
/// A function of one operation that is looked at: the one named "op".
class SplitClasses : public testing::Test {
protected:
  SplitClasses() {
    context.loadDialect<arith::ArithDialect, func::FuncDialect,
                        linalg::LinalgDialect, math::MathDialect,
                        tensor::TensorDialect>();
  }

  Operation *parse(const std::string &text) {
    module = parseSourceString<ModuleOp>(text, &context);
    Operation *found = nullptr;
    if (module)
      module->walk([&](Operation *op) {
        if (op->hasAttr("op"))
          found = op;
      });
    EXPECT_TRUE(found) << text;
    return found;
  }

  /// \p operand of the operation, cut along \p dim.
  std::optional<OperationCut> cutUse(Operation *op, unsigned operand,
                                     unsigned dim) {
    OpOperand &use = op->getOpOperand(operand);
    int64_t extent =
        cast<RankedTensorType>(use.get().getType()).getDimSize(dim);
    why.clear();
    return cutAlongUse(op, use, {dim}, extent, why);
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  std::string why;
};

CutPosition at(unsigned dim, int64_t outer = 1, int64_t inner = 1) {
  return {dim, outer, inner};
}

/// Where the elements of a piece lie among all of a tensor's.
std::set<int64_t> elementsOf(ArrayRef<int64_t> shape, CutPosition position,
                             int64_t extent, int64_t start, int64_t size) {
  std::set<int64_t> found;
  int64_t all = std::accumulate(shape.begin(), shape.end(), int64_t(1),
                                std::multiplies<int64_t>());
  for (int64_t number = 0; number < all; ++number) {
    int64_t rest = number;
    for (size_t dim = shape.size(); dim-- > position.dim + 1;)
      rest /= shape[dim];
    int64_t index = rest % shape[position.dim] / position.inner % extent;
    if (index >= start && index < start + size)
      found.insert(number);
  }
  return found;
}
} // namespace

static const char *const kProduct = R"(
func.func @f(%a: tensor<7x5xf32>, %b: tensor<5x9xf32>, %c: tensor<7x9xf32>) -> tensor<7x9xf32> {
  %0 = linalg.matmul {op} ins(%a, %b : tensor<7x5xf32>, tensor<5x9xf32>) outs(%c : tensor<7x9xf32>) -> tensor<7x9xf32>
  return %0 : tensor<7x9xf32>
})";

TEST_F(SplitClasses, ParallelLoopsCutResults) {
  Operation *op = parse(kProduct);
  // Rows: the second factor is read whole.
  auto rows = cutUse(op, 0, 0);
  ASSERT_TRUE(rows) << why;
  EXPECT_EQ(rows->kind, Kind::Parallel);
  EXPECT_EQ(rows->extent, 7);
  EXPECT_EQ(rows->loop, 0u);
  EXPECT_EQ(rows->operands[0], at(0));
  EXPECT_EQ(rows->operands[1], std::nullopt);
  EXPECT_EQ(rows->operands[2], at(0));
  EXPECT_EQ(rows->results[0], at(0));
  EXPECT_TRUE(rows->combiners.empty());
  // The same class from the other end.
  auto fromResult = cutAlongResult(op->getResult(0), at(1), 9, why);
  ASSERT_TRUE(fromResult) << why;
  EXPECT_EQ(fromResult->operands[0], std::nullopt);
  EXPECT_EQ(fromResult->operands[1], at(1));
}

TEST_F(SplitClasses, ReductionsHaveTheirCombiner) {
  auto sum = cutUse(parse(kProduct), 0, 1);
  ASSERT_TRUE(sum) << why;
  EXPECT_EQ(sum->kind, Kind::Reduction);
  EXPECT_EQ(sum->extent, 5);
  EXPECT_EQ(sum->operands[0], at(1));
  EXPECT_EQ(sum->operands[1], at(0));
  EXPECT_EQ(sum->operands[2], std::nullopt);
  EXPECT_EQ(sum->results[0], std::nullopt);
  ASSERT_EQ(sum->combiners.size(), 1u);
  EXPECT_TRUE(isa<arith::AddFOp>(sum->combiners[0]));

  for (const char *name : {"addi", "muli", "maxsi", "minsi", "maxui", "minui",
                           "andi", "ori", "xori"}) {
    std::string text =
        std::string(R"(
func.func @f(%a: tensor<7x5xi32>, %c: tensor<7xi32>) -> tensor<7xi32> {
  %0 = linalg.reduce { arith.)") +
        name +
        R"( } ins(%a : tensor<7x5xi32>) outs(%c : tensor<7xi32>) dimensions = [1] {op}
  return %0 : tensor<7xi32>
})";
    auto cut = cutUse(parse(text), 0, 1);
    ASSERT_TRUE(cut) << name << ": " << why;
    EXPECT_EQ(cut->kind, Kind::Reduction);
    EXPECT_EQ(cut->combiners[0]->getName().getStringRef(),
              std::string("arith.") + name);
  }
}

TEST_F(SplitClasses, WhatIsNotAssociativeStaysWhole) {
  Operation *op = parse(R"(
func.func @f(%a: tensor<7x5xf32>, %c: tensor<7xf32>) -> tensor<7xf32> {
  %0 = linalg.reduce { arith.subf } ins(%a : tensor<7x5xf32>) outs(%c : tensor<7xf32>) dimensions = [1] {op}
  return %0 : tensor<7xf32>
})");
  EXPECT_FALSE(cutUse(op, 0, 1));
  EXPECT_EQ(why,
            "it reduces the dimension by more than one associative operation");
  EXPECT_TRUE(cutUse(op, 0, 0)) << why;
}

TEST_F(SplitClasses, WindowsBeginACutAndLeaveOtherDimensions) {
  Operation *op = parse(R"(
func.func @f(%x: tensor<6x9x11x3xf32>, %k: tensor<3x3x3x4xf32>, %c: tensor<6x7x9x4xf32>) -> tensor<6x7x9x4xf32> {
  %0 = linalg.conv_2d_nhwc_hwcf {op} ins(%x, %k : tensor<6x9x11x3xf32>, tensor<3x3x3x4xf32>) outs(%c : tensor<6x7x9x4xf32>) -> tensor<6x7x9x4xf32>
  return %0 : tensor<6x7x9x4xf32>
})");
  for (unsigned dim : {1, 2}) {
    EXPECT_FALSE(cutUse(op, 0, dim));
    EXPECT_EQ(why, "it reads windows along the dimension");
    // From the result, whose pieces read overlapping parts.
    auto rows =
        cutAlongResult(op->getResult(0), at(dim), dim == 1 ? 7 : 9, why);
    ASSERT_TRUE(rows) << why;
    EXPECT_FALSE(rows->operands[0]);
    const CutWindow *window = rows->windowOf(0);
    ASSERT_TRUE(window);
    EXPECT_EQ(window->dim, dim);
    EXPECT_EQ(window->first(4), 4);
    EXPECT_EQ(window->length(3), 5);
    EXPECT_FALSE(rows->windowOf(1));
  }
  auto batch = cutUse(op, 0, 0);
  ASSERT_TRUE(batch) << why;
  EXPECT_EQ(batch->results[0], at(0));
  auto filters = cutUse(op, 1, 3);
  ASSERT_TRUE(filters) << why;
  EXPECT_EQ(filters->results[0], at(3));
  auto channels = cutUse(op, 0, 3);
  ASSERT_TRUE(channels) << why;
  EXPECT_EQ(channels->kind, Kind::Reduction);
}

TEST_F(SplitClasses, PositionsAreWithinThePiecesReach) {
  // It reads another tensor by its loop's index, and computes with that.
  Operation *op = parse(R"(
#id = affine_map<(i) -> (i)>
func.func @f(%x: tensor<7xf32>, %t: tensor<7x3xf32>, %e: tensor<7xf32>) -> tensor<7xf32> {
  %0 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]} ins(%x : tensor<7xf32>) outs(%e : tensor<7xf32>) attrs = {op} {
  ^bb0(%a: f32, %out: f32):
    %one = arith.constant 1 : index
    %i = linalg.index 0 : index
    %n = arith.index_cast %i : index to i32
    %f = arith.sitofp %n : i32 to f32
    %g = tensor.extract %t[%i, %one] : tensor<7x3xf32>
    %s = arith.mulf %f, %g : f32
    linalg.yield %s : f32
  } -> tensor<7xf32>
  return %0 : tensor<7xf32>
})");
  auto cut = cutUse(op, 0, 0);
  ASSERT_TRUE(cut) << why;
  EXPECT_EQ(cut->kind, Kind::Parallel);
  auto table = cast<func::FuncOp>(op->getParentOp()).getArgument(1);
  ASSERT_EQ(cut->captures.size(), 1u);
  EXPECT_EQ(cut->captures.find(table)->second, at(0));
  // From what the body reads: the same class along one dimension, none along
  // the other.
  OpOperand *read = nullptr;
  for (OpOperand &use : table.getUses())
    read = &use;
  EXPECT_TRUE(cutAlongUse(op, *read, at(0), 7, why)) << why;
  EXPECT_FALSE(cutAlongUse(op, *read, at(1), 3, why));
  EXPECT_EQ(why, "its body reads the tensor at computed positions");
}

TEST_F(SplitClasses, WhatMovesElementsKeepsOtherDimensions) {
  Operation *pad = parse(R"(
func.func @f(%x: tensor<7x5xf32>) -> tensor<7x8xf32> {
  %zero = arith.constant 0.0 : f32
  %0 = tensor.pad %x low[0, 1] high[0, 2] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f32
  } {op} : tensor<7x5xf32> to tensor<7x8xf32>
  return %0 : tensor<7x8xf32>
})");
  EXPECT_TRUE(cutUse(pad, 0, 0)) << why;
  EXPECT_FALSE(cutUse(pad, 0, 1));
  EXPECT_EQ(why, "it pads the dimension");

  Operation *concat = parse(R"(
func.func @f(%x: tensor<7x5xf32>, %y: tensor<7x2xf32>) -> tensor<7x7xf32> {
  %0 = tensor.concat dim(1) %x, %y {op} : (tensor<7x5xf32>, tensor<7x2xf32>) -> tensor<7x7xf32>
  return %0 : tensor<7x7xf32>
})");
  auto rows = cutUse(concat, 0, 0);
  ASSERT_TRUE(rows) << why;
  EXPECT_EQ(rows->operands[1], at(0));
  EXPECT_FALSE(cutUse(concat, 1, 1));
  EXPECT_EQ(why, "it joins tensors along the dimension");

  Operation *slice = parse(R"(
func.func @f(%x: tensor<7x5x3xf32>) -> tensor<7x3xf32> {
  %0 = tensor.extract_slice %x[0, 2, 0] [7, 1, 3] [1, 1, 1] {op} : tensor<7x5x3xf32> to tensor<7x3xf32>
  return %0 : tensor<7x3xf32>
})");
  auto last = cutUse(slice, 0, 2);
  ASSERT_TRUE(last) << why;
  EXPECT_EQ(last->results[0], at(1));
  EXPECT_FALSE(cutUse(slice, 0, 1));
  EXPECT_EQ(why, "it takes or writes only a part of the dimension");
}

TEST_F(SplitClasses, ReshapedPiecesHaveTheSameElements) {
  Operation *op = parse(R"(
func.func @f(%x: tensor<3x5x2x4xf32>) -> tensor<15x8xf32> {
  %0 = tensor.collapse_shape %x [[0, 1], [2, 3]] {op} : tensor<3x5x2x4xf32> into tensor<15x8xf32>
  return %0 : tensor<15x8xf32>
})");
  const Sizes source{3, 5, 2, 4}, result{15, 8};
  for (unsigned dim = 0; dim < 4; ++dim) {
    auto cut = cutUse(op, 0, dim);
    ASSERT_TRUE(cut) << why;
    int64_t start = 0;
    for (int64_t size : evenPieces(source[dim], 2)) {
      EXPECT_EQ(elementsOf(source, *cut->operands[0], source[dim], start, size),
                elementsOf(result, *cut->results[0], source[dim], start, size))
          << "dimension " << dim << " from " << start;
      start += size;
    }
    // And back.
    auto back =
        cutAlongResult(op->getResult(0), *cut->results[0], source[dim], why);
    ASSERT_TRUE(back) << why;
    EXPECT_EQ(back->operands[0], at(dim));
  }
  // Fifteen rows are no pieces of three or five.
  EXPECT_FALSE(cutAlongResult(op->getResult(0), at(0), 15, why));
  EXPECT_EQ(why, "it reshapes the dimension into parts that are no pieces");
}

TEST_F(SplitClasses, TensorsWithoutElementsOrShapeStayWhole) {
  Operation *empty = parse(R"(
func.func @f(%x: tensor<0x5xf32>) -> tensor<0x5xf32> {
  %0 = math.exp %x {op} : tensor<0x5xf32>
  return %0 : tensor<0x5xf32>
})");
  EXPECT_FALSE(cutUse(empty, 0, 1));
  EXPECT_EQ(why, "its tensors have no static shape, or no elements");
  Operation *dynamic = parse(R"(
func.func @f(%x: tensor<?x5xf32>) -> tensor<?x5xf32> {
  %0 = math.exp %x {op} : tensor<?x5xf32>
  return %0 : tensor<?x5xf32>
})");
  EXPECT_FALSE(cutUse(dynamic, 0, 1));
  EXPECT_EQ(why, "its tensors have no static shape, or no elements");
}
