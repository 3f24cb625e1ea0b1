//===- WholeStepTest.cpp - The step of a partitioned program --------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/WholeStep.h"
#include "Baechi/Analysis/PlacementProblem.h"
#include "Baechi/Placement/Io/Files.h"
#include "Baechi/Transforms/PlanWatch.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "gtest/gtest.h"

using namespace baechi;
using namespace mlir;

namespace {
/// Two chains that meet, an update in place, a constant that both devices read,
/// and a region that captures a value.
constexpr llvm::StringLiteral kStep = R"(
func.func private @update(%w: tensor<64xf32>, %g: tensor<64xf32>) -> (tensor<64xf32> {baechi.may_alias = array<i64: 0>}) attributes {baechi.kernel} {
  return %w : tensor<64xf32>
}
func.func @step(%x: tensor<64xf32>, %w: tensor<64xf32> {baechi.updated_by = 0 : i64}) -> (tensor<64xf32>, tensor<64xf32>) {
  %one = arith.constant dense<1.0> : tensor<64xf32>
  %a = "x.a"(%x, %one) {baechi.cost = #baechi.cost<time_ns = {host = 100000}, scratch = 64>, baechi.pin = "host0"} : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %b = "x.b"(%x, %w, %one) {baechi.cost = #baechi.cost<time_ns = {host = 100000}, scratch = 0>, baechi.pin = "host1"} : (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %c = "x.c"(%a, %b) {baechi.cost = #baechi.cost<time_ns = {host = 50000}, scratch = 0>, baechi.pin = "host0"} : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  %n = func.call @update(%w, %c) {baechi.cost = #baechi.cost<time_ns = {host = 1000}, scratch = 0>} : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
  return %n, %c : tensor<64xf32>, tensor<64xf32>
}
)";

struct WholeStepTest : public ::testing::Test {
  WholeStepTest() {
    context
        .loadDialect<BaechiDialect, func::FuncDialect, arith::ArithDialect>();
    context.allowUnregisteredDialects();
  }

  OwningOpRef<ModuleOp> parse() {
    return parseSourceString<ModuleOp>(kStep, &context);
  }

  LogicalResult partition(ModuleOp module) {
    PlaceAndPlanOptions options;
    options.machine = "host:2@1MiB";
    options.budget = "0";
    PassManager manager(&context);
    manager.addPass(createPlaceAndPlan(options, nullptr, PlanWatch()));
    return manager.run(module);
  }

  static std::string graphText(ModuleOp module) {
    FailureOr<StepGraph> graph = buildStepGraph(module);
    if (failed(graph))
      return "no graph";
    // Where operators are to be is no part of what is executed.
    for (placement::Operator &op : graph->graph.ops)
      op.pin.reset();
    std::string text;
    placement::formatGraph(graph->graph, text);
    return text;
  }

  MLIRContext context;
};

TEST_F(WholeStepTest, HasTheGraphThatWasPlaced) {
  OwningOpRef<ModuleOp> module = parse();
  ASSERT_TRUE(module);
  std::string before = graphText(*module);
  ASSERT_NE(before, "no graph");
  ASSERT_TRUE(succeeded(partition(*module)));
  OwningOpRef<ModuleOp> whole = wholeStep(*module);
  ASSERT_TRUE(whole);
  EXPECT_TRUE(succeeded(whole->verify()));
  EXPECT_EQ(before, graphText(*whole));
}

TEST_F(WholeStepTest, AStepThatIsWholeHasNoDevices) {
  OwningOpRef<ModuleOp> module = parse();
  ASSERT_TRUE(module);
  ScopedDiagnosticHandler quiet(&context, [](Diagnostic &) {});
  EXPECT_FALSE(wholeStep(*module));
}
} // namespace
