//===- FindLibraryTest.cpp - Where NVIDIA's libraries are looked for ---===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/FindLibrary.h"
#include "CudaPrograms.h"
#include "drivers/cuda/CudaBlasApi.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>

#include <unistd.h>

using namespace baechi::runtime;
using namespace baechi::runtime::test;
using testing::HasSubstr;
namespace fs = std::filesystem;

namespace {

/// A Python environment and a toolkit, both with cuBLASLt (which is the fake)
/// and with a library that no loader's path has.
class FindLibrary : public testing::Test {
protected:
  void SetUp() override {
    if (!usesFakeCuda())
      GTEST_SKIP() << "the libraries of this machine are not the test's";
    root = fs::path(testing::TempDir()) /
           ("find-library-" + std::to_string(getpid()));
    fs::remove_all(root); // Of a process of before, which has ended by a test.
    package = root / "env/lib/python3.12/site-packages/nvidia/cublas/lib";
    toolkit = root / "cuda/lib64";
    for (const fs::path &folder : {package, toolkit}) {
      fs::create_directories(folder);
      for (const char *name : {"libcublasLt.so.12", "libbaechi_test.so.12"})
        fs::create_symlink(fakecuda::path(), folder / name);
    }
    setenv("VIRTUAL_ENV", (root / "env").c_str(), 1);
    setenv("CUDA_HOME", (root / "cuda").c_str(), 1);
  }
  void TearDown() override {
    fs::remove_all(root);
    unsetenv("VIRTUAL_ENV");
    unsetenv("CUDA_HOME");
  }

  /// In a process of its own, as libraries stay loaded.
  static int load(const char *given) {
    if (given)
      setenv("BAECHI_CUBLASLT_LIBRARY", given, 1);
    else
      unsetenv("BAECHI_CUBLASLT_LIBRARY");
    Expected<const cuda::BlasApi *> api = cuda::loadBlasApi();
    std::cerr << (api ? "found " + std::to_string((*api)->version())
                      : api.error().message())
              << '\n';
    return api ? 0 : 1;
  }

  fs::path root, package, toolkit;
};
using FindLibraryDeathTest = FindLibrary;

TEST_F(FindLibrary, EnvironmentsComeBeforeToolkits) {
  EXPECT_THAT(libraryFolders(),
              testing::IsSupersetOf({package.string(), toolkit.string()}));
  std::vector<std::string> folders = libraryFolders();
  EXPECT_LT(std::find(folders.begin(), folders.end(), package.string()),
            std::find(folders.begin(), folders.end(), toolkit.string()));
  std::string why;
  EXPECT_TRUE(
      findLibrary("BAECHI_NONE", {"libnone.so", "libbaechi_test.so.12"}, why));
  EXPECT_FALSE(findLibrary("BAECHI_NONE", {"libnone.so"}, why));
  EXPECT_THAT(why, HasSubstr("libnone.so"));
}

TEST_F(FindLibraryDeathTest, OfAnEnvironment) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(_exit(load(nullptr)), testing::ExitedWithCode(0), "found [0-9]+");
  // What is named, and nothing else.
  EXPECT_EXIT(_exit(load("/no/such/libcublasLt.so")),
              testing::ExitedWithCode(1),
              "/no/such/libcublasLt.so: .*; install it .pip install "
              "nvidia-cublas., or name its file in BAECHI_CUBLASLT_LIBRARY");
  EXPECT_EXIT(_exit(load("libm.so.6")), testing::ExitedWithCode(1),
              "it has no function cublasLtGetStatusName; name the file of "
              "cuBLASLt 12 or newer in BAECHI_CUBLASLT_LIBRARY");
}

} // namespace
