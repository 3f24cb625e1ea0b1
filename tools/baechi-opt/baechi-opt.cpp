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

/// mlir-opt's work on a compressed file, whose own name places are told by.
static LogicalResult optimizeCompressed(const std::string &input,
                                        const std::string &output,
                                        DialectRegistry &registry) {
  std::string text;
  std::string error = baechi::placement::readTextFile(input, text);
  std::unique_ptr<llvm::ToolOutputFile> file;
  if (error.empty())
    file = openOutputFile(output, &error);
  if (!file) {
    llvm::errs() << error << "\n";
    return failure();
  }
  if (failed(MlirOptMain(file->os(),
                         llvm::MemoryBuffer::getMemBuffer(text, input),
                         registry, MlirOptMainConfig::createFromCLOptions())))
    return failure();
  file->keep();
  return success();
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
  if (baechi::placement::isCompressed(input))
    return asMainReturnCode(optimizeCompressed(input, output, registry));
  return asMainReturnCode(MlirOptMain(argc, argv, input, output, registry));
}
