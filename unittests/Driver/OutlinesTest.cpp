//===- OutlinesTest.cpp - What cuts of a step need, without its code ------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Driver/Cuts/Outlines.h"
#include "Baechi/Pipelines/Pipelines.h"
#include "Helpers.h"
#include "mlir/Parser/Parser.h"

using namespace baechi;

namespace {
constexpr const char *kProducts = R"(
  func.func @step(%x: tensor<8x64xf32>, %w: tensor<64x64xf32>) -> tensor<8x64xf32> {
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<8x64xf32>
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<8x64xf32>) -> tensor<8x64xf32>
    %a = linalg.matmul ins(%x, %w : tensor<8x64xf32>, tensor<64x64xf32>)
        outs(%z : tensor<8x64xf32>) -> tensor<8x64xf32> loc("first")
    %b = linalg.matmul ins(%a, %w : tensor<8x64xf32>, tensor<64x64xf32>)
        outs(%z : tensor<8x64xf32>) -> tensor<8x64xf32> loc("second")
    return %b : tensor<8x64xf32>
  })";

class OutlinesTest : public testing::Test {
protected:
  OutlinesTest() {
    mlir::DialectRegistry registry;
    registerAllDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    machine = llvm::cantFail(readMachine("host:1@4KiB"));
    forms.setModel(
        mlir::parseSourceString<mlir::ModuleOp>(kProducts, &context));
  }

  std::optional<Neediest> neediest(std::vector<std::string> rules) {
    SplitChoice choice;
    choice.asked = std::move(rules);
    return outlines.neediest(choice);
  }

  mlir::MLIRContext context;
  DriverOptions options;
  placement::Machine machine;
  test::Recorder listener;
  ModelForms forms{{options, machine, listener,
                    std::make_shared<CompileThreads>(1),
                    std::make_shared<LoweredKernels>()}};
  Outlines outlines{forms};
};

TEST_F(OutlinesTest, EqualCutsAreFormedOnce) {
  std::optional<Neediest> whole = neediest({});
  ASSERT_TRUE(whole);
  EXPECT_FALSE(whole->fits());
  EXPECT_EQ(whole->op, nullptr);
  EXPECT_GE(whole->tooLarge.size(), 2u);
  EXPECT_EQ(whole->tooLarge.at(whole->nameOfWhole()), whole->bytes);
  std::optional<Neediest> cut = neediest({"first=0:2"});
  ASSERT_TRUE(cut);
  EXPECT_EQ(outlines.numFormed(), 2u);
  EXPECT_EQ(neediest({"first=0:2"})->bytes, cut->bytes);
  EXPECT_EQ(neediest({})->bytes, whole->bytes);
  EXPECT_EQ(outlines.numFormed(), 2u);
}

TEST_F(OutlinesTest, WhatCannotBeCutSoIsNotFormed) {
  EXPECT_FALSE(forms
                   .quietly([&] {
                     return mlir::success(neediest({"third=0:2"}).has_value());
                   })
                   .succeeded());
  EXPECT_EQ(outlines.numFormed(), 0u);
}

TEST_F(OutlinesTest, DigestsTellNamesApart) {
  std::string renamed = kProducts;
  renamed.replace(renamed.find("\"first\""), 7, "\"other\"");
  auto same = mlir::parseSourceString<mlir::ModuleOp>(kProducts, &context);
  auto other = mlir::parseSourceString<mlir::ModuleOp>(renamed, &context);
  mlir::OwningOpRef<mlir::ModuleOp> copy = forms.model().clone();
  EXPECT_EQ(digestOf(*copy), digestOf(forms.model()));
  EXPECT_NE(digestOf(*other), digestOf(*same));
}
} // namespace
