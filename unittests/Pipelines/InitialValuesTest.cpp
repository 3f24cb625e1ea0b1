//===- InitialValuesTest.cpp - First values of docs/import.md -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Pipelines/InitialValues.h"
#include "Baechi/Dialect/Baechi.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"
#include <cstring>

using namespace baechi;
using namespace mlir;

namespace {
/// The first value of a step's only argument, its type and attributes given.
class InitialValues : public testing::Test {
protected:
  InitialValues() { context.loadDialect<BaechiDialect, func::FuncDialect>(); }

  FailureOr<Array> valueOf(const std::string &type,
                           const std::string &init = "") {
    std::string attrs = init.empty() ? "" : " {baechi.init = " + init + "}";
    auto module = parseSourceString<ModuleOp>(
        "func.func @step(%x: " + type + attrs + ") { return }", &context);
    invented = false;
    auto step = module->lookupSymbol<func::FuncOp>("step");
    return initialValue(step, borderArguments(step)->front(), invented);
  }

  template <typename T>
  std::vector<T> numbersOf(const std::string &type, const std::string &init) {
    FailureOr<Array> array = valueOf(type, init);
    if (failed(array))
      return {};
    std::vector<T> numbers(array->data.size() / sizeof(T));
    std::memcpy(numbers.data(), array->data.data(), array->data.size());
    return numbers;
  }

  MLIRContext context;
  bool invented = false;
};

using Bits = std::vector<uint32_t>;
} // namespace

TEST_F(InitialValues, RandomBits) {
  EXPECT_EQ(randomBits(1, 0), 0x6e789e6aa1b965f4u);
  EXPECT_EQ(randomBits(1, 1), 0xbeeb8da1658eec67u);
  EXPECT_EQ(randomBits(1, 2), 0xbfc846100bfc1e42u);
  EXPECT_EQ(randomBits(1, 3), 0xb3466f8a7b81a989u);
  EXPECT_EQ(randomBits(7, 0), 0xc584133ac916ab3cu);
  EXPECT_EQ(randomBits(7, 3), 0xe3830d21dc859216u);
  EXPECT_EQ(randomBits(~uint64_t(0), 0), 0u);
  EXPECT_EQ(randomBits(~uint64_t(0), 1), 0x5692161d100b05e5u);
}

TEST_F(InitialValues, Uniform) {
  std::string init = "{kind = \"uniform\", low = -0.1 : f32, high = 0.1 : f32, "
                     "seed = 7 : i64}";
  Bits expected = {0x3d5e7372, 0x3b972c50, 0x3d43dc3e, 0x3d9f3815};
  EXPECT_EQ(numbersOf<uint32_t>("tensor<4xf32>", init), expected);
  // The shape does not matter, the order of elements does.
  EXPECT_EQ(numbersOf<uint32_t>("tensor<2x2xf32>", init), expected);
  EXPECT_FALSE(invented);
  // The same number in other types: 0.0543... as bf16, f16, f64.
  EXPECT_EQ(numbersOf<uint16_t>("tensor<bf16>", init),
            std::vector<uint16_t>{0x3d5e});
  EXPECT_EQ(numbersOf<uint16_t>("tensor<f16>", init),
            std::vector<uint16_t>{0x2af4});
  float first;
  std::memcpy(&first, &expected[0], sizeof(first));
  EXPECT_EQ(numbersOf<double>("tensor<f64>", init), std::vector<double>{first});
}

TEST_F(InitialValues, RandInt) {
  std::string init =
      "{kind = \"randint\", low = 0 : i64, high = 1000 : i64, seed = 9 : i64}";
  EXPECT_EQ(numbersOf<int32_t>("tensor<2x4xi32>", init),
            (std::vector<int32_t>{390, 950, 932, 522, 629, 195, 622, 425}));
  EXPECT_EQ(numbersOf<int64_t>("tensor<2xi64>", init),
            (std::vector<int64_t>{390, 950}));
  EXPECT_EQ(numbersOf<float>("tensor<2xf32>", init),
            (std::vector<float>{390, 950}));
  for (int32_t number : numbersOf<int32_t>(
           "tensor<1000xi32>", "{kind = \"randint\", low = -3 : i64, high = 4 "
                               ": i64, seed = 5 : i64}")) {
    EXPECT_GE(number, -3);
    EXPECT_LT(number, 4);
  }
}

TEST_F(InitialValues, Constant) {
  EXPECT_EQ(numbersOf<float>("tensor<2xf32>",
                             "{kind = \"constant\", value = 0.5 : f32}"),
            (std::vector<float>{0.5, 0.5}));
  EXPECT_EQ(numbersOf<int32_t>("tensor<i32>",
                               "{kind = \"constant\", value = 3 : i64}"),
            std::vector<int32_t>{3});
  EXPECT_EQ(numbersOf<int8_t>("tensor<3xi1>",
                              "{kind = \"constant\", value = 1.0 : f32}"),
            (std::vector<int8_t>{1, 1, 1}));
  EXPECT_TRUE(numbersOf<float>("tensor<0xf32>",
                               "{kind = \"constant\", value = 0.5 : f32}")
                  .empty());
}

TEST_F(InitialValues, WithoutAnInitialValueOneIsInvented) {
  FailureOr<Array> array = valueOf("tensor<3xi32>");
  ASSERT_TRUE(succeeded(array));
  EXPECT_TRUE(invented);
  EXPECT_EQ(array->type, "i32");
  EXPECT_EQ(array->shape, std::vector<int64_t>{3});
  EXPECT_EQ(array->data, std::vector<char>(12, 0));
  for (float number : numbersOf<float>("tensor<100xf32>", "")) {
    EXPECT_GE(number, -0.1f);
    EXPECT_LT(number, 0.1f);
  }
}

TEST_F(InitialValues, ErrorsNameTheArgument) {
  std::string said;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    said = diagnostic.str();
    return success();
  });
  EXPECT_TRUE(failed(valueOf("tensor<4xcomplex<f32>>")));
  EXPECT_EQ(said, "argument 0 has type 'tensor<4xcomplex<f32>>', which has no "
                  "initial value");
  EXPECT_TRUE(failed(valueOf("f32")));
  EXPECT_TRUE(failed(valueOf("tensor<?xf32>")));
  EXPECT_EQ(said,
            "argument 0 has type 'tensor<?xf32>', which has no initial value");
  EXPECT_TRUE(failed(valueOf(
      "tensor<4xi32>",
      "{kind = \"randint\", low = 5 : i64, high = 5 : i64, seed = 1 : i64}")));
  EXPECT_EQ(said, "argument 0: 'baechi.init' has no integers from 5 up to, not "
                  "including, 5");
}
