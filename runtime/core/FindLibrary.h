//===- FindLibrary.h - Libraries wherever they were installed ---*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_CORE_FINDLIBRARY_H
#define BAECHI_RUNTIME_CORE_FINDLIBRARY_H

#include <dlfcn.h>
#include <string>
#include <vector>

namespace baechi::runtime {

/// Folders in which NVIDIA's libraries may lie beside the loader's own, in this
/// order: `nvidia/*/lib` of the Python environments that the process has loaded
/// anything from and of VIRTUAL_ENV, then of the toolkits that CUDA_HOME,
/// CUDA_PATH and CUDA_ROOT name and /usr/local/cuda.
std::vector<std::string> libraryFolders();

/// Opens a library: the one that the environment variable `variable` names, and
/// no other; or else the first of `names` that the process has loaded already,
/// that the loader finds, or that one of libraryFolders() has. Null if none:
/// `why` then says what the loader says of the last one.
void *findLibrary(const char *variable, const std::vector<std::string> &names,
                  std::string &why);

/// Finds the functions of a library.
struct FindFunctions {
  void *library;
  /// The first that it does not have; null: it has all.
  const char *missing = nullptr;

  template <typename Function>
  void operator()(Function &function, const char *name) {
    function = reinterpret_cast<Function>(dlsym(library, name));
    if (!function && !missing)
      missing = name;
  }
};

} // namespace baechi::runtime

#endif // BAECHI_RUNTIME_CORE_FINDLIBRARY_H
