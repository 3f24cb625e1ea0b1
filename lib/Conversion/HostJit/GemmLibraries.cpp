//===- GemmLibraries.cpp - Libraries that multiply matrices -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Conversion/HostJit/GemmLibraries.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/TargetParser/Host.h"
#include <cstdlib>
#include <dlfcn.h>
#include <mutex>
#include <optional>

using namespace baechi;

namespace {
constexpr llvm::StringLiteral kOpenBlasObjects[] = {"libopenblas.so.0"};
constexpr llvm::StringLiteral kOpenBlasSymbols[] = {"cblas_sgemm"};
constexpr llvm::StringLiteral kOneDnnObjects[] = {"libdnnl.so.2",
                                                  "libgomp.so.1"};
constexpr llvm::StringLiteral kOneDnnSymbols[] = {"dnnl_sgemm",
                                                  "omp_set_num_threads"};
const GemmLibrary kLibraries[] = {
    {"openblas", "OpenBLAS", "libopenblas0-pthread", kOpenBlasObjects,
     kOpenBlasSymbols},
    {"onednn", "oneDNN", "libdnnl2", kOneDnnObjects, kOneDnnSymbols}};

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

/// An opened library, or why it could not be.
struct Opened {
  void *handle = nullptr;
  llvm::SmallVector<void *> symbols;
  std::string error;
};

Opened open(const GemmLibrary &library) {
  // Read while the libraries load. One thread: the devices are the parallelism,
  // and each has a core of its own.
  ScopedDefault blasThreads("OPENBLAS_NUM_THREADS", "1");
  std::optional<ScopedDefault> core;
  llvm::StringMap<bool> features = llvm::sys::getHostCPUFeatures();
  if (features.lookup("avx512f") && features.lookup("avx512bw") &&
      features.lookup("avx512dq") && features.lookup("avx512vl"))
    core.emplace("OPENBLAS_CORETYPE", "SkylakeX");

  Opened opened;
  const char *file = library.objects.front().data();
  opened.handle = ::dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (!opened.handle) {
    opened.error = ::dlerror();
    return opened;
  }
  // Those of the libraries that it depends on are found, too.
  for (llvm::StringLiteral symbol : library.symbols) {
    opened.symbols.push_back(::dlsym(opened.handle, symbol.data()));
    if (!opened.symbols.back())
      opened.error =
          (llvm::Twine(file) + " lacks its function " + symbol).str();
  }
  if (auto *setThreads = reinterpret_cast<void (*)(int)>(
          ::dlsym(opened.handle, "openblas_set_num_threads")))
    setThreads(1);
  return opened;
}

const Opened &openedOnce(const GemmLibrary &library) {
  static Opened all[std::size(kLibraries)];
  static std::once_flag once[std::size(kLibraries)];
  size_t index = &library - kLibraries;
  std::call_once(once[index], [&] { all[index] = open(library); });
  return all[index];
}
} // namespace

llvm::ArrayRef<GemmLibrary> baechi::gemmLibraries() { return kLibraries; }

const GemmLibrary *baechi::findGemmLibrary(llvm::StringRef implementation) {
  const auto *found =
      llvm::find_if(kLibraries, [&](const GemmLibrary &library) {
        return library.implementation == implementation;
      });
  return found == std::end(kLibraries) ? nullptr : found;
}

llvm::Expected<llvm::SmallVector<void *>>
baechi::loadGemmLibrary(const GemmLibrary &library) {
  const Opened &opened = openedOnce(library);
  if (opened.error.empty())
    return opened.symbols;
  return llvm::createStringError(
      "cannot load " + library.title +
      ", which kernels with the implementation '" + library.implementation +
      "' call: " + opened.error + "; install it (Debian: " + library.package +
      ") or use implementation 'generated'");
}

std::string baechi::gemmLibraryVersion(const GemmLibrary &library) {
  const Opened &opened = openedOnce(library);
  if (!opened.error.empty())
    return "";
  if (auto *describe = reinterpret_cast<const char *(*)()>(
          ::dlsym(opened.handle, "openblas_get_config"))) {
    // "OpenBLAS 0.3.21 DYNAMIC_ARCH …"; very old ones begin with the options.
    auto [name, rest] = llvm::StringRef(describe()).split(' ');
    if (name == library.title)
      return rest.split(' ').first.str();
  }
  // How dnnl_version_t begins.
  struct Version {
    int major, minor, patch;
  };
  if (auto *version = reinterpret_cast<const Version *(*)()>(
          ::dlsym(opened.handle, "dnnl_version")))
    return llvm::formatv("{0}.{1}.{2}", version()->major, version()->minor,
                         version()->patch);
  return "unknown";
}

std::string baechi::openBlasCore() {
  const Opened &opened = openedOnce(*findGemmLibrary("openblas"));
  auto *name = reinterpret_cast<const char *(*)()>(
      opened.handle ? ::dlsym(opened.handle, "openblas_get_corename")
                    : nullptr);
  return name ? name() : "";
}
