//===- HostJitTest.cpp - Compiling, linking and their errors -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Conversion/HostJit/GemmLibraries.h"
#include "HostJitFixture.h"

using namespace baechi;
using namespace baechi::test;

namespace {
int32_t twice(int32_t value) { return 2 * value; }

TEST_F(HostJitTest, PartsLinkToEachOtherAndToTheProcess) {
  HostJitOptions options;
  options.threads = 3;
  options.symbols["host_twice"] = reinterpret_cast<void *>(&twice);
  create(std::move(options));
  // Functions in several parts share constants and call each other.
  EXPECT_EQ(add(R"(
llvm.mlir.global private constant @three(3 : i32) : i32
llvm.mlir.global external @offset(0 : i32) : i32
llvm.func @host_twice(i32) -> i32
llvm.func @sqrtf(f32) -> f32
llvm.func @a(%x: i32) -> i32 {
  %p = llvm.mlir.addressof @three : !llvm.ptr
  %c = llvm.load %p : !llvm.ptr -> i32
  %r = llvm.add %x, %c : i32
  llvm.return %r : i32
}
llvm.func @b(%x: i32) -> i32 {
  %p = llvm.mlir.addressof @three : !llvm.ptr
  %c = llvm.load %p : !llvm.ptr -> i32
  %y = llvm.call @a(%x) : (i32) -> i32
  %r = llvm.mul %y, %c : i32
  llvm.return %r : i32
}
llvm.func @shift(%x: i32) {
  %p = llvm.mlir.addressof @offset : !llvm.ptr
  llvm.store %x, %p : i32, !llvm.ptr
  llvm.return
}
llvm.func @shifted(%x: i32) -> i32 {
  %p = llvm.mlir.addressof @offset : !llvm.ptr
  %c = llvm.load %p : !llvm.ptr -> i32
  %r = llvm.add %x, %c : i32
  llvm.return %r : i32
}
llvm.func @c(%x: i32) -> i32 {
  %y = llvm.call @b(%x) : (i32) -> i32
  %r = llvm.call @host_twice(%y) : (i32) -> i32
  llvm.return %r : i32
}
llvm.func @d(%x: f32) -> f32 {
  %r = llvm.call @sqrtf(%x) : (f32) -> f32
  llvm.return %r : f32
})"),
            "");
  EXPECT_EQ(get<int32_t(int32_t)>("c")(4), 42);
  EXPECT_EQ(get<float(float)>("d")(9), 3);
  // A variable exists once.
  get<void(int32_t)>("shift")(5);
  EXPECT_EQ(get<int32_t(int32_t)>("shifted")(4), 9);
  // Later modules call earlier ones.
  EXPECT_EQ(add(R"(
llvm.func @c(i32) -> i32
llvm.func @e(%x: i32) -> i32 {
  %r = llvm.call @c(%x) : (i32) -> i32
  llvm.return %r : i32
})"),
            "");
  EXPECT_EQ(get<int32_t(int32_t)>("e")(4), 42);
}

TEST_F(HostJitTest, ErrorsNameTheSymbol) {
  create();
  EXPECT_THAT(lookupError("nothing"),
              testing::HasSubstr("no host code for 'nothing'"));
  EXPECT_EQ(add(R"(
llvm.func @baechi_missing()
llvm.func @caller() {
  llvm.call @baechi_missing() : () -> ()
  llvm.return
})"),
            "");
  EXPECT_THAT(lookupError("caller"), testing::HasSubstr("baechi_missing"));
  // A kernel would call it for the library's.
  EXPECT_THAT(
      add("llvm.func @exp(%x: f64) -> f64 {\n  llvm.return %x : f64\n}"),
      testing::HasSubstr("the module defines 'exp', which is also a "
                         "library's function that compiled code may "
                         "call: give it another name"));
  std::string function = "llvm.func @once() {\n  llvm.return\n}";
  EXPECT_EQ(add(function), "");
  EXPECT_THAT(add(function), testing::HasSubstr("once"));
}

TEST_F(HostJitTest, OtherDialectsAreAnError) {
  create();
  EXPECT_THAT(
      add("func.func @f() {\n  return\n}"),
      testing::HasSubstr("only the LLVM dialect is compiled; the module "
                         "has a 'func.func'"));
}

TEST_F(HostJitTest, WhatDoesNotTranslateIsAnError) {
  create();
  EXPECT_THAT(add(R"(
llvm.func @f() {
  llvm.call_intrinsic "llvm.no.such.intrinsic"() : () -> ()
  llvm.return
})"),
              testing::HasSubstr("cannot translate to LLVM IR: "));
}

TEST_F(HostJitTest, ThreadSanitizer) {
  HostJitOptions options;
  options.sanitizer = HostJitOptions::Sanitizer::Thread;
  create(std::move(options));
  EXPECT_EQ(add(R"(
llvm.func @store(%p: !llvm.ptr, %v: i32) {
  llvm.store %v, %p : i32, !llvm.ptr
  llvm.return
})"),
            "");
#if __has_feature(thread_sanitizer)
  int32_t value = 0;
  get<void(int32_t *, int32_t)>("store")(&value, 7);
  EXPECT_EQ(value, 7);
#else
  // The code does report to ThreadSanitizer, which is not here.
  EXPECT_THAT(lookupError("store"), testing::HasSubstr("__tsan_"));
#endif
}

int zeroDivisors = 0;
void countZeroDivisor() { ++zeroDivisors; }

TEST_F(HostJitTest, DivisionsDoNotEndTheProcess) {
  HostJitOptions options;
  options.symbols["baechi_divided_by_zero"] =
      reinterpret_cast<void *>(&countZeroDivisor);
  create(std::move(options));
  EXPECT_EQ(add(R"(
llvm.func @sdiv(%a: i32, %b: i32) -> i32 {
  %r = llvm.sdiv %a, %b : i32
  llvm.return %r : i32
}
llvm.func @srem(%a: i64, %b: i64) -> i64 {
  %r = llvm.srem %a, %b : i64
  llvm.return %r : i64
}
llvm.func @udiv(%a: i8, %b: i8) -> i8 {
  %r = llvm.udiv %a, %b : i8
  llvm.return %r : i8
}
llvm.func @zero(%a: i32) -> i32 {
  %zero = llvm.mlir.constant(0 : i32) : i32
  %r = llvm.urem %a, %zero : i32
  llvm.return %r : i32
}
llvm.func @vector(%a: vector<4xi32>, %b: vector<4xi32>) -> vector<4xi32> {
  %r = llvm.sdiv %a, %b : vector<4xi32>
  llvm.return %r : vector<4xi32>
})"),
            "");
  zeroDivisors = 0;
  EXPECT_EQ(get<int32_t(int32_t, int32_t)>("sdiv")(-7, 2), -3);
  EXPECT_EQ(get<int32_t(int32_t, int32_t)>("sdiv")(INT32_MIN, -1), INT32_MIN);
  EXPECT_EQ(get<int64_t(int64_t, int64_t)>("srem")(INT64_MIN, -1), 0);
  EXPECT_EQ(get<int64_t(int64_t, int64_t)>("srem")(-7, -1), 0);
  EXPECT_EQ(get<uint8_t(uint8_t, uint8_t)>("udiv")(200, 255), 0);
  EXPECT_EQ(get<uint8_t(uint8_t, uint8_t)>("udiv")(200, 3), 66);
  using Four __attribute__((vector_size(16))) = int32_t;
  auto *divide = get<Four(Four, Four)>("vector");
  Four quotient = divide({8, INT32_MIN, 9, -9}, {2, -1, -1, 4});
  EXPECT_EQ(quotient[0], 4);
  EXPECT_EQ(quotient[1], INT32_MIN);
  EXPECT_EQ(quotient[2], -9);
  EXPECT_EQ(quotient[3], -2);
  EXPECT_EQ(zeroDivisors, 0);

  get<int32_t(int32_t, int32_t)>("sdiv")(7, 0);
  EXPECT_EQ(zeroDivisors, 1);
  get<int64_t(int64_t, int64_t)>("srem")(7, 0);
  get<uint8_t(uint8_t, uint8_t)>("udiv")(7, 0);
  get<int32_t(int32_t)>("zero")(7);
  EXPECT_EQ(zeroDivisors, 4);
  // Once for the vector, and the other quotients are right.
  quotient = divide({8, 1, 9, 2}, {2, 0, 3, 0});
  EXPECT_EQ(quotient[0], 4);
  EXPECT_EQ(quotient[2], 3);
  EXPECT_EQ(zeroDivisors, 5);
}

TEST_F(HostJitTest, WithoutASessionDivisionsReportToNobody) {
  create();
  EXPECT_EQ(add(R"(
llvm.func @sdiv(%a: i32, %b: i32) -> i32 {
  %r = llvm.sdiv %a, %b : i32
  llvm.return %r : i32
})"),
            "");
  get<int32_t(int32_t, int32_t)>("sdiv")(7, 0);
}

TEST(OpenBlasTest, UsesTheWidestVectors) {
  if (HostJit::hostTarget().find("avx512vl") != std::string::npos &&
      !std::getenv("OPENBLAS_CORETYPE")) {
    EXPECT_EQ(openBlasCore(), "SkylakeX");
  }
  EXPECT_EQ(std::getenv("OPENBLAS_NUM_THREADS"), nullptr);
}
} // namespace
