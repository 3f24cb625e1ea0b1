//===- CuttablesTest.cpp - What of a model can be cut by its name ---------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Driver/Cuts/Cuttables.h"
#include "Baechi/Analysis/Program.h"
#include "Baechi/Pipelines/Pipelines.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

using namespace baechi;

namespace {
/// A step that adds what operators of these names make.
std::string sumOf(llvm::StringRef first, llvm::StringRef second) {
  std::string text = R"(
    func.func @step(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
      %e = tensor.empty() : tensor<8x8xf32>
      %a = linalg.exp ins(%x : tensor<8x8xf32>)
          outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32> loc("FIRST")
      %b = linalg.log ins(%x : tensor<8x8xf32>)
          outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32> loc("SECOND")
      %c = linalg.add ins(%a, %b : tensor<8x8xf32>, tensor<8x8xf32>)
          outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32> loc("sum")
      return %c : tensor<8x8xf32>
    })";
  text.replace(text.find("FIRST"), 5, first.str());
  text.replace(text.find("SECOND"), 6, second.str());
  return text;
}

class CuttablesTest : public testing::Test {
protected:
  CuttablesTest() {
    mlir::DialectRegistry registry;
    registerAllDialects(registry);
    context.appendDialectRegistry(registry);
  }

  /// What can be cut with the last operator of \p formed, by the names that
  /// \p model has.
  std::vector<std::string>
  makersOfLast(const std::string &model, const std::string &formed,
               llvm::ArrayRef<std::string> rules = {}) {
    auto before = mlir::parseSourceString<mlir::ModuleOp>(model, &context);
    auto after = mlir::parseSourceString<mlir::ModuleOp>(formed, &context);
    EXPECT_TRUE(before && after);
    Cuttables cuttables(*findStep(*before));
    mlir::Operation *last = operatorsOf(*findStep(*after)).back();
    std::vector<std::string> names;
    for (const Cuttable &each : cuttables.ofMakers(last, rules))
      names.push_back(each.name);
    return names;
  }

  mlir::MLIRContext context;
};

using Names = std::vector<std::string>;

TEST_F(CuttablesTest, MakersOfOneNameAreTwo) {
  std::string model = sumOf("f", "f");
  EXPECT_EQ(makersOfLast(model, model), (Names{"f", "f#1"}));
  EXPECT_EQ(makersOfLast(model, model, {"f=0:2"}), Names{"f#1"});
}

TEST_F(CuttablesTest, PiecesAreOfOneMaker) {
  EXPECT_EQ(makersOfLast(sumOf("f", "g"), sumOf("f.piece0", "f.piece1")),
            Names{"f"});
}
} // namespace
