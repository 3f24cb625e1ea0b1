//===- Toolkit.cpp - Finding and running the CUDA Toolkit -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Internal.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"

using namespace mlir;
using namespace baechi;

static std::string join(StringRef folder, StringRef rest) {
  SmallString<128> path(folder);
  llvm::sys::path::append(path, rest);
  return path.str().str();
}

static bool hasPtxas(StringRef folder) {
  return llvm::sys::fs::can_execute(join(folder, "bin/ptxas"));
}

/// The toolkit's folder; empty when there is none.
static std::string findRoot(StringRef folder) {
  if (!folder.empty())
    return hasPtxas(folder) ? folder.str() : "";
  for (const char *variable : {"CUDA_HOME", "CUDA_PATH", "CUDA_ROOT"})
    if (const char *value = std::getenv(variable); value && hasPtxas(value))
      return value;
  if (auto onPath = llvm::sys::findProgramByName("ptxas")) {
    StringRef bin = llvm::sys::path::parent_path(*onPath);
    return llvm::sys::path::parent_path(bin).str();
  }
  return hasPtxas("/usr/local/cuda") ? "/usr/local/cuda" : "";
}

FailureOr<CudaToolkit> CudaToolkit::find(StringRef folder, Location location) {
  CudaToolkit toolkit;
  toolkit.root = findRoot(folder);
  if (toolkit.root.empty()) {
    InFlightDiagnostic error = emitError(location);
    if (folder.empty())
      error << "GPU code needs ptxas of the CUDA Toolkit, which is not found; "
               "install it and set CUDA_HOME to its folder, or put ptxas on "
               "PATH";
    else
      error << "there is no bin/ptxas in the CUDA Toolkit's folder '" << folder
            << "'";
    return error;
  }
  toolkit.ptxas = join(toolkit.root, "bin/ptxas");
  toolkit.fatbinary = join(toolkit.root, "bin/fatbinary");
  for (const std::string &file :
       {toolkit.fatbinary,
        join(toolkit.root, "nvvm/libdevice/libdevice.10.bc")})
    if (!llvm::sys::fs::exists(file))
      return emitError(location)
             << "the CUDA Toolkit lacks '" << file
             << "'; install it whole, or set CUDA_HOME to one that is";
  return toolkit;
}
