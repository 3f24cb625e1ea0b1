//===- baechi-translate.cpp - Programs to and from other forms -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Io/Files.h"
#include "Baechi/Placement/Io/TemporaryFolder.h"
#include "Baechi/Target/Export.h"
#include "Version.h"
#include "mlir/InitAllTranslations.h"
#include "mlir/Tools/mlir-translate/MlirTranslateMain.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <list>

using namespace baechi::placement;

/// Has mlir-translate, which opens its files itself, read what compressed ones
/// hold; an error, or an empty text.
static std::string unpack(llvm::MutableArrayRef<char *> arguments,
                          const TemporaryFolder &folder,
                          std::list<std::string> &paths) {
  bool isOutput = false;
  for (char *&argument : arguments) {
    llvm::StringRef given = argument;
    bool isInput = !isOutput && !given.starts_with("-");
    isOutput = given == "-o";
    if (!isInput || !isCompressed(given))
      continue;
    std::string text;
    paths.push_back(folder.file(llvm::sys::path::stem(given).str()));
    if (std::string error = readTextFile(argument, text); !error.empty())
      return error;
    if (std::string error = writeTextFile(paths.back(), text); !error.empty())
      return error;
    argument = paths.back().data();
  }
  return "";
}

int main(int argc, char **argv) {
  baechi::tellVersion();
  TemporaryFolder folder("baechi-translate");
  std::list<std::string> paths;
  std::string error = folder.error();
  if (error.empty())
    error = unpack({argv + 1, argv + argc}, folder, paths);
  if (!error.empty()) {
    llvm::errs() << error << "\n";
    return 1;
  }
  mlir::registerToLLVMIRTranslation();
  baechi::registerExports();
  return failed(mlir::mlirTranslateMain(argc, argv, "Baechi translation tool"));
}
