//===- baechi-opt.cpp - mlir-opt with dialect and passes -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Pipelines/Pipelines.h"
#include "Baechi/Placement/Io/Files.h"
#include "Baechi/Transforms/Passes.h"
#include "Version.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace mlir;
namespace placement = baechi::placement;

/// A file's text, whose places are told by its own name where it is compressed;
/// null: \p error says why.
static std::unique_ptr<llvm::MemoryBuffer> read(const std::string &input,
                                                std::string &error) {
  if (!placement::isCompressed(input))
    return openInputFile(input, &error);
  std::string text;
  error = placement::readTextFile(input, text);
  return error.empty() ? llvm::MemoryBuffer::getMemBufferCopy(text, input)
                       : nullptr;
}

/// mlir-opt's work on and into files that may be compressed.
static LogicalResult optimizeCompressed(const std::string &input,
                                        const std::string &output,
                                        DialectRegistry &registry) {
  std::string error, text;
  std::unique_ptr<llvm::MemoryBuffer> source = read(input, error);
  bool compress = placement::isCompressed(output);
  std::unique_ptr<llvm::ToolOutputFile> file;
  if (source && !compress)
    file = openOutputFile(output, &error);
  if (!error.empty()) {
    llvm::errs() << error << "\n";
    return failure();
  }
  llvm::raw_string_ostream made(text);
  llvm::raw_ostream &to =
      compress ? static_cast<llvm::raw_ostream &>(made) : file->os();
  if (failed(MlirOptMain(to, std::move(source), registry,
                         MlirOptMainConfig::createFromCLOptions())))
    return failure();
  if (!compress) {
    file->keep();
    return success();
  }
  error = placement::writeTextFile(output, text);
  if (error.empty())
    return success();
  llvm::errs() << error << "\n";
  return failure();
}

int main(int argc, char **argv) {
  baechi::tellVersion();
  mlir::registerAllPasses();
  baechi::registerAllPasses();
  DialectRegistry registry;
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  baechi::registerAllDialects(registry);
  auto [input, output] = registerAndParseCLIOptions(
      argc, argv, "Baechi placement compiler\n", registry);
  if (placement::isCompressed(input) || placement::isCompressed(output))
    return asMainReturnCode(optimizeCompressed(input, output, registry));
  return asMainReturnCode(MlirOptMain(argc, argv, input, output, registry));
}
