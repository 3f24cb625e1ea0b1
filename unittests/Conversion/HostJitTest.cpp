//===- HostJitTest.cpp - Compiling, linking and their errors -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Conversion/OpenBlas.h"
#include "KernelRunner.h"

using namespace baechi;
using testing::Test;

namespace {
class HostJitTest : public Test {
protected:
  HostJitTest() {
    mlir::DialectRegistry registry;
    registerHostKernelDialects(registry);
    context = std::make_unique<mlir::MLIRContext>(registry);
  }
  void create(HostJitOptions options = {}) {
    auto created = HostJit::create(std::move(options));
    ASSERT_TRUE(static_cast<bool>(created));
    jit = std::move(*created);
  }
  /// Empty when it went well.
  std::string add(const std::string &text) {
    auto module = mlir::parseSourceString<mlir::ModuleOp>(text, context.get());
    return module ? llvm::toString(jit->add(*module)) : "does not parse";
  }
  template <typename Function> Function *get(llvm::StringRef name) {
    auto address = jit->lookup(name);
    if (address)
      return reinterpret_cast<Function *>(*address);
    ADD_FAILURE() << llvm::toString(address.takeError());
    return nullptr;
  }
  std::string lookupError(llvm::StringRef name) {
    auto address = jit->lookup(name);
    return address ? "" : llvm::toString(address.takeError());
  }
  std::unique_ptr<mlir::MLIRContext> context;
  std::unique_ptr<HostJit> jit;
};

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

TEST(OpenBlasTest, UsesTheWidestVectors) {
  auto blas = loadOpenBlas();
  ASSERT_TRUE(static_cast<bool>(blas)) << llvm::toString(blas.takeError());
  if (HostJit::hostTarget().find("avx512vl") != std::string::npos &&
      !std::getenv("OPENBLAS_CORETYPE")) {
    EXPECT_EQ(blas->core, "SkylakeX");
  }
  EXPECT_EQ(std::getenv("OPENBLAS_NUM_THREADS"), nullptr);
}
} // namespace
