//===- StoredText.cpp - What a kernel's stored code is found by -----------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Conversion/Kernels/Host/HostKernels.h"
#include "Baechi/Dialect/Baechi.h"
#include "mlir/IR/Verifier.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"
#include <dlfcn.h>

using namespace mlir;
using namespace baechi;

namespace {
/// What changes with the file that holds the function at \p address.
std::string describeFileOf(void *address, bool byContent) {
  Dl_info info;
  llvm::sys::fs::file_status status;
  if (!::dladdr(address, &info) ||
      llvm::sys::fs::status(info.dli_fname, status))
    return "";
  if (byContent)
    if (auto content = llvm::MemoryBuffer::getFile(info.dli_fname))
      return std::to_string(llvm::xxh3_64bits((*content)->getBuffer())) + " ";
  return std::to_string(status.getSize()) + " " +
         std::to_string(
             status.getLastModificationTime().time_since_epoch().count()) +
         " ";
}

} // namespace

const std::string &baechi::describeCompiler() {
  // This project's code, and MLIR's, which may be in a library of its own.
  static const std::string files =
      describeFileOf(reinterpret_cast<void *>(&describeCompiler),
                     /*byContent=*/true) +
      describeFileOf(reinterpret_cast<void *>(&mlir::verify),
                     /*byContent=*/false);
  return files;
}

std::string baechi::storedText(func::FuncOp kernel) {
  std::string text = describeCompiler();
  llvm::raw_string_ostream os(text);
  // Said or not, it is the same code, and the scratch follows from it.
  OwningOpRef<func::FuncOp> said = kernel.clone();
  (*said)->setAttr(
      BaechiDialect::kImplementation,
      StringAttr::get(kernel.getContext(), askedImplementation(kernel)));
  (*said)->removeAttr(BaechiDialect::kKernelScratch);
  (*said)->print(os, OpPrintingFlags().useLocalScope());
  return text;
}
