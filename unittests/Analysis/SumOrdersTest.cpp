//===- SumOrdersTest.cpp - In which order a step's sums are added up ------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/SumOrders.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"
#include <numeric>
#include <random>

using namespace baechi;
using namespace mlir;

namespace {
constexpr const char *kZero = "0.000000e+00 : f32";

SumOrder inTurn(std::vector<int64_t> extents,
                std::optional<size_t> continues = {}) {
  SumOrder order;
  order.extents = std::move(extents);
  order.how = "turn";
  order.inTurn = true;
  if (continues)
    order.continues = continues;
  else
    order.start = kZero;
  return order;
}

SumOrder inLanes(std::vector<int64_t> extents) {
  SumOrder order = inTurn(std::move(extents));
  order.how = "lanes";
  order.inTurn = order.extents.size() > 1;
  return order;
}

SumOrders one(std::vector<SumOrder> orders) {
  SumOrders sums;
  sums.sums[0] = {"sum", std::move(orders)};
  return sums;
}

std::string why(std::vector<SumOrder> whole, std::vector<SumOrder> pieces) {
  return whyBitsMayDiffer(one(std::move(whole)), one(std::move(pieces)));
}

constexpr const char *kOther = "'sum' may be added up in another order";
} // namespace

TEST(SumOrders, PiecesOfParallelDimensionsAddUpTheSame) {
  SumOrder sum = inTurn({6, 4});
  EXPECT_EQ(why({sum}, {sum}), "");
  EXPECT_EQ(why({sum}, {sum, sum, sum}), "");
  EXPECT_EQ(why({inLanes({64})}, {inLanes({64}), inLanes({64})}), "");
  EXPECT_EQ(why({sum}, {inTurn({4, 6})}), kOther);
  EXPECT_EQ(why({sum}, {inLanes({6, 4})}), kOther);
  SumOrder ofTensor = sum;
  ofTensor.start = "";
  EXPECT_EQ(why({sum}, {ofTensor}), kOther);
}

TEST(SumOrders, PiecesMayContinueEachOtherAlongTheOutermostLoop) {
  SumOrder whole = inTurn({6, 4});
  EXPECT_EQ(why({whole}, {inTurn({3, 4}), inTurn({3, 4}, 0)}), "");
  EXPECT_EQ(
      why({whole}, {inTurn({1, 4}), inTurn({2, 4}, 0), inTurn({3, 4}, 1)}), "");
  // Of each element of the result one chain.
  EXPECT_EQ(why({whole}, {inTurn({3, 4}), inTurn({3, 4}), inTurn({3, 4}, 0),
                          inTurn({3, 4}, 1)}),
            "");
  // A term is lacking, or there is one more.
  EXPECT_EQ(why({whole}, {inTurn({3, 4}), inTurn({2, 4}, 0)}), kOther);
  EXPECT_EQ(why({whole}, {inTurn({3, 4}), inTurn({4, 4}, 0)}), kOther);
  // The inner loop is cut, or two continue one.
  EXPECT_EQ(why({whole}, {inTurn({6, 2}), inTurn({6, 2}, 0)}), kOther);
  EXPECT_EQ(
      why({whole}, {inTurn({2, 4}), inTurn({4, 4}, 0), inTurn({4, 4}, 0)}),
      kOther);
  // Each begins anew, and is added to the others.
  EXPECT_EQ(why({whole}, {inTurn({3, 4}), inTurn({3, 4})}), kOther);
  // Lanes of the one loop that there is are not one after the other.
  SumOrder lanes = inLanes({32}), rest = lanes;
  rest.start = "";
  rest.continues = 0;
  EXPECT_EQ(why({inLanes({64})}, {lanes, rest}), kOther);
}

TEST(SumOrders, WhatIsNotKnownOrNotThereIsSaid) {
  SumOrder unknown = inTurn({8});
  unknown.how = "? it has no body of scalars 0";
  SumOrder other = unknown;
  other.how = "? it has no body of scalars 1";
  EXPECT_EQ(why({unknown}, {other}), kOther);
  SumOrders none, some = one({inTurn({8})});
  EXPECT_EQ(whyBitsMayDiffer(some, none), kOther);
  EXPECT_EQ(whyBitsMayDiffer(none, some), "'sum' is added up in pieces alone");
  none.unnumbered = "made";
  EXPECT_EQ(whyBitsMayDiffer(some, none),
            "'made' adds up what the program does not");
  EXPECT_EQ(whyBitsMayDiffer(none, some),
            "'made' adds up what the program does not");
}

/// Floats added up as orders say.
static float added(float start, ArrayRef<float> terms) {
  return std::accumulate(terms.begin(), terms.end(), start);
}

TEST(SumOrders, WhatIsSaidToHaveTheSameBitsHas) {
  std::mt19937 random(7);
  auto below = [&](int64_t n) {
    return std::uniform_int_distribution<int64_t>(0, n - 1)(random);
  };
  std::normal_distribution<float> normal;
  int same = 0, others = 0;
  for (int trial = 0; trial < 2000; ++trial) {
    int64_t outer = 2 + below(6), inner = 1 + below(4);
    std::vector<float> terms(outer * inner);
    for (float &term : terms)
      term = normal(random);
    float whole = added(0, terms), pieces = 0;
    std::vector<SumOrder> orders;
    // Some continue the piece before, others begin anew and are added to it.
    for (int64_t from = 0; from < outer;) {
      int64_t size = 1 + below(outer - from);
      ArrayRef<float> part = ArrayRef(terms).slice(from * inner, size * inner);
      bool continues = !orders.empty() && below(4) != 0;
      orders.push_back(continues ? inTurn({size, inner}, orders.size() - 1)
                                 : inTurn({size, inner}));
      pieces = continues ? added(pieces, part) : pieces + added(0, part);
      from += size;
    }
    if (why({inTurn({outer, inner})}, orders).empty()) {
      EXPECT_EQ(whole, pieces);
      ++same;
    } else {
      others += whole != pieces;
    }
  }
  // Both happen, so that neither answer can be given always.
  EXPECT_GT(same, 500);
  EXPECT_GT(others, 50);
}

namespace {
class SumsOfSteps : public testing::Test {
protected:
  SumsOfSteps() {
    context.loadDialect<arith::ArithDialect, func::FuncDialect,
                        linalg::LinalgDialect, tensor::TensorDialect>();
  }

  SumOrders read(const std::string &body) {
    std::string text = "#t = affine_map<(i, k) -> (k, i)>\n"
                       "#r = affine_map<(i, k) -> (i)>\n" +
                       body + "\n#s = loc(fused<\"baechi.sum 0\">[\"x\"])\n";
    OwningOpRef<ModuleOp> module =
        parseSourceString<ModuleOp>(text, ParserConfig(&context));
    EXPECT_TRUE(module);
    return module ? sumOrdersOf(*module->getOps<func::FuncOp>().begin())
                  : SumOrders();
  }

  /// Sums over the first dimension of \p terms rows, from \p from on.
  static std::string sum(const std::string &result, const std::string &of,
                         int64_t terms, const std::string &from) {
    return "  " + result +
           " = linalg.generic {indexing_maps = [#t, #r], iterator_types = "
           "[\"parallel\", \"reduction\"]} ins(" +
           of + " : tensor<" + std::to_string(terms) + "x5xf32>) outs(" + from +
           " : tensor<5xf32>) {\n  ^bb0(%a: f32, %b: f32):\n"
           "    %c = arith.addf %a, %b : f32 loc(#s)\n"
           "    linalg.yield %c : f32\n  } -> tensor<5xf32>\n";
  }

  static std::string step(const std::string &body, const std::string &result) {
    return "func.func @step(%x: tensor<6x5xf32>, %y: tensor<3x5xf32>, "
           "%z: tensor<3x5xf32>) -> tensor<5xf32> {\n"
           "  %0 = arith.constant dense<0.0> : tensor<5xf32>\n" +
           body + "  return " + result + " : tensor<5xf32>\n}";
  }

  MLIRContext context;
};
} // namespace

TEST_F(SumsOfSteps, AreReadOfOperations) {
  SumOrders whole = read(step(sum("%1", "%x", 6, "%0"), "%1"));
  ASSERT_EQ(whole.sums.size(), 1u);
  const SumOrder &order = whole.sums[0].orders.front();
  EXPECT_EQ(order.extents, std::vector<int64_t>{6});
  EXPECT_EQ(order.how, "turn");
  EXPECT_TRUE(order.inTurn);
  EXPECT_EQ(order.start, kZero);

  SumOrders chained =
      read(step(sum("%1", "%y", 3, "%0") + sum("%2", "%z", 3, "%1"), "%2"));
  EXPECT_EQ(whyBitsMayDiffer(whole, chained), "");
  SumOrders apart =
      read(step(sum("%1", "%y", 3, "%0") + sum("%2", "%z", 3, "%0"), "%2"));
  EXPECT_NE(whyBitsMayDiffer(whole, apart), "");
}

TEST(SumOrders, SaysOfASumWithoutANameThatItHasNone) {
  SumOrders whole = one({inTurn({6})}), pieces = one({inLanes({6})});
  whole.sums[0].name = pieces.sums[0].name = "";
  EXPECT_EQ(whyBitsMayDiffer(whole, pieces),
            "a sum without a name may be added up in another order");
  EXPECT_EQ(whyBitsMayDiffer({}, pieces),
            "a sum without a name is added up in pieces alone");
}
