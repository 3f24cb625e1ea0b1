//===- OpenBlas.cpp - OpenBLAS, loaded when it is needed -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Conversion/OpenBlas.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/TargetParser/Host.h"
#include <cstdlib>
#include <dlfcn.h>
#include <optional>

using namespace baechi;

namespace {
constexpr const char *kLibrary = "libopenblas.so.0";

/// Sets an environment variable for as long as it lives, unless it has a value.
class ScopedDefault {
public:
  ScopedDefault(const char *name, const char *value)
      : name(name), added(!std::getenv(name)) {
    if (added)
      ::setenv(name, value, /*overwrite=*/0);
  }
  ~ScopedDefault() {
    if (added)
      ::unsetenv(name);
  }

private:
  const char *name;
  bool added;
};

llvm::Expected<OpenBlas> load() {
  auto failure = [](const llvm::Twine &reason) {
    return llvm::createStringError(
        "cannot load OpenBLAS, which kernels with the implementation "
        "'openblas' call: " +
        reason +
        "; install it (Debian: libopenblas0-pthread) or use "
        "implementation 'generated'");
  };

  // Both are read while the library loads. One thread: the devices are the
  // parallelism, and each has a core of its own.
  ScopedDefault threads("OPENBLAS_NUM_THREADS", "1");
  std::optional<ScopedDefault> core;
  llvm::StringMap<bool> features = llvm::sys::getHostCPUFeatures();
  if (features.lookup("avx512f") && features.lookup("avx512bw") &&
      features.lookup("avx512dq") && features.lookup("avx512vl"))
    core.emplace("OPENBLAS_CORETYPE", "SkylakeX");
  void *library = ::dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return failure(::dlerror());

  void *sgemm = ::dlsym(library, "cblas_sgemm");
  void *setThreads = ::dlsym(library, "openblas_set_num_threads");
  void *coreName = ::dlsym(library, "openblas_get_corename");
  if (!sgemm || !setThreads || !coreName)
    return failure(llvm::Twine(kLibrary) + " lacks a function of OpenBLAS");
  reinterpret_cast<void (*)(int)>(setThreads)(1);
  return OpenBlas{sgemm, reinterpret_cast<const char *(*)()>(coreName)()};
}
} // namespace

llvm::Expected<OpenBlas> baechi::loadOpenBlas() {
  // Kept as text: an Expected is consumed by its first reader.
  static auto loaded = [] {
    std::pair<OpenBlas, std::string> result;
    if (auto blas = load())
      result.first = *blas;
    else
      result.second = llvm::toString(blas.takeError());
    return result;
  }();
  if (!loaded.second.empty())
    return llvm::createStringError(loaded.second);
  return loaded.first;
}
