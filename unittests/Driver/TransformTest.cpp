//===- TransformTest.cpp - Passes over a model's text ---------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Driver/Input/Transform.h"
#include "Baechi/Driver/Input/Errors.h"
#include "Helpers.h"
#include "gmock/gmock.h"

using namespace baechi;
using namespace baechi::test;
using testing::HasSubstr;

namespace {
constexpr char kTwice[] = "func.func @step(%x: tensor<4xf32>) -> tensor<4xf32> "
                          "{\n  %0 = arith.addf %x, %x : tensor<4xf32>\n"
                          "  return %0 : tensor<4xf32>\n}\n";

TEST(Transform, GivesAModuleAfterItsPassesInEachForm) {
  Recorder recorder;
  auto module = transformModel(
      {"twice.mlir", kTwice, "builtin.module()", "mlir"}, recorder);
  ASSERT_TRUE(bool(module));
  EXPECT_THAT(*module, HasSubstr("loc(\"twice.mlir\":2:8)"));
  auto graph = transformModel(
      {"twice.mlir", kTwice,
       "builtin.module(baechi-form-kernels,baechi-annotate-costs)", "graph"},
      recorder);
  ASSERT_TRUE(bool(graph));
  EXPECT_THAT(*graph, HasSubstr("\"format\":\"baechi-graph\""));
  EXPECT_EQ(recorder.errors, "");
}

TEST(Transform, TakesOperationsOfEveryDialect) {
  Recorder recorder;
  auto module =
      transformModel({"x.mlir", "module {\n  emitc.include \"a.h\"\n}\n",
                      "builtin.module()", "mlir"},
                     recorder);
  ASSERT_TRUE(bool(module)) << recorder.errors;
  EXPECT_THAT(*module, HasSubstr("emitc.include \"a.h\""));
}

TEST(Transform, SaysWhatIsWrong) {
  Recorder recorder;
  EXPECT_THAT(
      messageOf(
          transformModel({"x.mlir", kTwice, "", "pdf"}, recorder).takeError()),
      HasSubstr("unknown form 'pdf' of a module (mlir, graph, "));
  EXPECT_THAT(messageOf(transformModel(
                            {"x.mlir", kTwice, "builtin.module(oops)", "mlir"},
                            recorder)
                            .takeError()),
              HasSubstr("'oops' does not refer to a registered pass"));
  EXPECT_EQ(recorder.errors, "");

  llvm::Error error =
      transformModel({"x.mlir", kTwice, "func.func()", "mlir"}, recorder)
          .takeError();
  EXPECT_TRUE(error.isA<DiagnosedError>());
  llvm::consumeError(std::move(error));
  EXPECT_THAT(recorder.errors, HasSubstr("can't run 'func.func' pass manager"));

  error =
      transformModel({"x.mlir", "oops", "builtin.module()", "mlir"}, recorder)
          .takeError();
  EXPECT_TRUE(error.isA<DiagnosedError>());
  llvm::consumeError(std::move(error));
  EXPECT_THAT(recorder.errors, HasSubstr("x.mlir:1:1: error: "));
}
} // namespace
