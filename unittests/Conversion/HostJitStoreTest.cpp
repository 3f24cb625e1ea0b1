//===- HostJitStoreTest.cpp - Compiled code that a folder keeps -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Io/Files.h"
#include "HostJitFixture.h"
#include "llvm/Support/FileSystem.h"
#include <sys/stat.h>
#include <unistd.h>

using namespace baechi;
using namespace baechi::test;

namespace {
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
} // namespace
