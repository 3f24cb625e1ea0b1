//===- HostJitTest.cpp - Compiling, linking and their errors -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Conversion/HostJit/GemmLibraries.h"
#include "Baechi/Conversion/Kernels/Common/Dialects.h"
#include "Baechi/Placement/Io/Files.h"
#include "KernelRunner.h"
#include "llvm/Support/FileSystem.h"
#include <sys/stat.h>
#include <unistd.h>

using namespace baechi;
using testing::Test;

namespace {
class HostJitTest : public Test {
protected:
  HostJitTest() {
    mlir::DialectRegistry registry;
    registerKernelDialects(registry);
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

/// A store in a folder of its own.
class HostJitStoreTest : public HostJitTest {
protected:
  void SetUp() override {
    llvm::SmallString<128> made;
    ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("store", made));
    folder = made.str().str();
  }
  void TearDown() override { llvm::sys::fs::remove_directories(folder); }

  /// Compiles two functions, one of which calls the other, unless the store has
  /// them; how many it had.
  size_t compile(const std::string &constant = "1") {
    HostJitOptions options;
    options.store = folder + "/kernels";
    create(std::move(options));
    std::pair<std::string, std::string> functions[] = {{"inner", R"(
llvm.func @inner(%x: i32) -> i32 {
  %one = llvm.mlir.constant()" + constant + R"( : i32) : i32
  %r = llvm.add %x, %one : i32
  llvm.return %r : i32
})"},
                                                       {"outer", R"(
llvm.func @outer(%x: i32) -> i32 {
  %y = llvm.call @inner(%x) : (i32) -> i32
  %r = llvm.mul %y, %y : i32
  llvm.return %r : i32
})"}};
    std::string missing;
    HostCode code;
    for (const auto &[name, text] : functions) {
      std::string key = jit->storeKey(text);
      auto stored = jit->addStored(key);
      EXPECT_TRUE(static_cast<bool>(stored));
      if (!*stored) {
        code.keys[name] = key;
        missing += text;
      }
    }
    if (code.keys.size() == 1 && code.keys.contains("outer"))
      missing += "llvm.func @inner(i32) -> i32";
    auto module =
        mlir::parseSourceString<mlir::ModuleOp>(missing, context.get());
    EXPECT_EQ(llvm::toString(jit->add(*module, code)), "");
    EXPECT_EQ(get<int32_t(int32_t)>("outer")(4), constant == "1" ? 25 : 36);
    llvm::StringRef text = warnings = jit->takeStoreWarnings();
    numWarnings = text.count('\n');
    return 2 - code.keys.size();
  }
  std::vector<std::string> objects() {
    std::vector<std::string> paths;
    std::error_code code;
    for (llvm::sys::fs::directory_iterator at(folder + "/kernels", code), end;
         at != end && !code; at.increment(code))
      if (llvm::StringRef(at->path()).contains("llvmcache-"))
        paths.push_back(at->path());
    return paths;
  }

  std::string folder, warnings;
  size_t numWarnings = 0;
};

TEST_F(HostJitStoreTest, FunctionsAreCompiledOnce) {
  EXPECT_EQ(compile(), 0u);
  EXPECT_EQ(objects().size(), 2u);
  EXPECT_EQ(compile(), 2u);
  // One of the two changes.
  EXPECT_EQ(compile("2"), 1u);
  EXPECT_EQ(objects().size(), 3u);
  EXPECT_EQ(compile("2"), 2u);
  EXPECT_EQ(compile(), 2u);
  EXPECT_EQ(warnings, "");

  // A function without a key keeps its module from the store.
  HostCode code;
  code.keys["a"] = jit->storeKey("a");
  auto module = mlir::parseSourceString<mlir::ModuleOp>(
      "llvm.func @a() { llvm.return }\nllvm.func @b() { llvm.return }",
      context.get());
  EXPECT_EQ(llvm::toString(jit->add(*module, code)), "");
  get<void()>("a")();
  EXPECT_EQ(objects().size(), 3u);
}

TEST_F(HostJitStoreTest, DamagedObjectsAreCompiledAgain) {
  compile();
  std::vector<std::string> paths = objects();
  ASSERT_EQ(paths.size(), 2u);
  for (const std::string &path : paths) {
    std::string bytes;
    ASSERT_EQ(placement::readTextFile(path, bytes), "");
    bytes[100] ^= 1;
    ASSERT_EQ(placement::writeTextFile(path, bytes), "");
  }
  EXPECT_EQ(compile(), 0u);
  EXPECT_EQ(numWarnings, 2u);
  EXPECT_THAT(warnings, testing::HasSubstr("kernels/llvmcache-"));
  EXPECT_THAT(warnings, testing::HasSubstr(
                            ": damaged, or of another name; compiled again"));
  EXPECT_EQ(compile(), 2u);
  EXPECT_EQ(warnings, "");

  ASSERT_EQ(placement::writeTextFile(paths[0], "short"), "");
  ASSERT_EQ(placement::writeTextFile(paths[1], ""), "");
  EXPECT_EQ(compile(), 0u);
  EXPECT_EQ(numWarnings, 2u);

  // A folder in the place can be neither read nor replaced.
  ASSERT_FALSE(llvm::sys::fs::remove(paths[0]));
  ASSERT_FALSE(llvm::sys::fs::create_directory(paths[0]));
  EXPECT_EQ(compile(), 1u);
  EXPECT_THAT(warnings,
              testing::HasSubstr(": not used: it is no regular file"));
  EXPECT_THAT(warnings,
              testing::HasSubstr(": cannot be written: Is a directory"));
}

TEST_F(HostJitStoreTest, AnotherKernelsFileIsNotRun) {
  compile("1");
  std::vector<std::string> ones = objects();
  compile("2");
  // The new function's place takes what another one's file holds.
  for (const std::string &path : objects())
    if (!llvm::is_contained(ones, path))
      for (const std::string &other : ones)
        ASSERT_FALSE(llvm::sys::fs::copy_file(other, path));
  EXPECT_EQ(compile("2"), 1u);
  EXPECT_THAT(warnings, testing::HasSubstr("of another name"));
  EXPECT_EQ(compile("2"), 2u);
}

TEST_F(HostJitStoreTest, OnlyRegularFilesAreOpened) {
  compile();
  std::vector<std::string> paths = objects();
  ASSERT_EQ(paths.size(), 2u);
  std::string elsewhere = folder + "/elsewhere";
  ASSERT_EQ(std::rename(paths[0].c_str(), elsewhere.c_str()), 0);
  ASSERT_EQ(::symlink(elsewhere.c_str(), paths[0].c_str()), 0);
  ASSERT_EQ(::unlink(paths[1].c_str()), 0);
  ASSERT_EQ(::mkfifo(paths[1].c_str(), 0600), 0);
  EXPECT_EQ(compile(), 0u);
  EXPECT_EQ(numWarnings, 2u);
  EXPECT_THAT(warnings, testing::HasSubstr("it is no regular file"));
  // What was in the way is replaced; what the link led to is not touched.
  EXPECT_EQ(compile(), 2u);
  EXPECT_TRUE(llvm::sys::fs::exists(elsewhere));

  ASSERT_EQ(::unlink(paths[0].c_str()), 0);
  ASSERT_EQ(::symlink("/dev/zero", paths[0].c_str()), 0);
  ASSERT_EQ(::truncate(paths[1].c_str(), off_t(1) << 40), 0); // a hole
  EXPECT_EQ(compile(), 0u);
  EXPECT_THAT(warnings, testing::HasSubstr("more than the"));
  EXPECT_EQ(compile(), 2u);
}

TEST_F(HostJitStoreTest, WhatOthersMayChangeIsNotRun) {
  compile();
  for (const std::string &path : objects())
    ASSERT_FALSE(
        llvm::sys::fs::setPermissions(path, llvm::sys::fs::perms(0666)));
  EXPECT_EQ(compile(), 0u);
  EXPECT_EQ(numWarnings, 2u);
  EXPECT_THAT(warnings, testing::HasSubstr(
                            ": not used: others may write it (mode 666);"));
  EXPECT_EQ(compile(), 2u);
  for (const std::string &path : objects())
    ASSERT_FALSE(
        llvm::sys::fs::setPermissions(path, llvm::sys::fs::perms(0660)));
  EXPECT_EQ(compile(), 0u);
  EXPECT_EQ(numWarnings, 2u);

  auto openingError = [](const std::string &store) {
    HostJitOptions options;
    options.store = store;
    return llvm::toString(HostJit::create(std::move(options)).takeError());
  };
  for (unsigned mode : {0777, 0770}) {
    ASSERT_FALSE(llvm::sys::fs::setPermissions(folder + "/kernels",
                                               llvm::sys::fs::perms(mode)));
    EXPECT_THAT(openingError(folder + "/kernels"),
                testing::HasSubstr("holds code, but others may write it"));
  }
  if (::geteuid() == 0) {
    // The administrator does not run what others made, either.
    ASSERT_EQ(::chmod((folder + "/kernels").c_str(), 0700), 0);
    ASSERT_EQ(::chown((folder + "/kernels").c_str(), 12345, 12345), 0);
    EXPECT_THAT(
        openingError(folder + "/kernels"),
        testing::HasSubstr("holds code, but it belongs to another user;"));
    ASSERT_EQ(::chown((folder + "/kernels").c_str(), 0, 0), 0);
    for (const std::string &path : objects())
      ASSERT_EQ(::chown(path.c_str(), 12345, 12345), 0);
    EXPECT_EQ(compile(), 0u);
    EXPECT_THAT(warnings, testing::HasSubstr("it belongs to another user;"));
  }
  ASSERT_EQ(placement::writeTextFile(folder + "/file", ""), "");
  EXPECT_THAT(openingError(folder + "/file"),
              testing::HasSubstr("file' is not a folder"));
  EXPECT_THAT(openingError(folder + "/file/kernels"),
              testing::HasSubstr("kernels' cannot be made: Not a directory"));
}

TEST(OpenBlasTest, UsesTheWidestVectors) {
  if (HostJit::hostTarget().find("avx512vl") != std::string::npos &&
      !std::getenv("OPENBLAS_CORETYPE")) {
    EXPECT_EQ(openBlasCore(), "SkylakeX");
  }
  EXPECT_EQ(std::getenv("OPENBLAS_NUM_THREADS"), nullptr);
}
} // namespace
