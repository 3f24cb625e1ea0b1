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
#include <utility>

using namespace baechi::placement;

/// What is to be written compressed: mlir-translate makes `plain` first.
struct Packed {
  std::string name, plain;
};

/// Has mlir-translate, which opens its files itself, read what compressed ones
/// hold, and write one; an error, or an empty text.
static std::string unpack(llvm::MutableArrayRef<char *> arguments,
                          const TemporaryFolder &folder,
                          std::list<std::string> &paths, Packed &packed) {
  bool followsO = false;
  for (char *&argument : arguments) {
    llvm::StringRef given = argument;
    bool isOutput = std::exchange(followsO, given == "-o" || given == "--o");
    bool joined = given.consume_front("-o=") || given.consume_front("--o=");
    if ((given.starts_with("-") && !joined) || !isCompressed(given))
      continue;
    if (isOutput || joined) {
      packed = {given.str(), folder.file("made")};
      paths.push_back((joined ? "-o=" : "") + packed.plain);
      argument = paths.back().data();
      continue;
    }
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
  Packed packed;
  std::string error = folder.error();
  if (error.empty())
    error = unpack({argv + 1, argv + argc}, folder, paths, packed);
  mlir::registerToLLVMIRTranslation();
  baechi::registerExports();
  if (error.empty()) {
    constexpr const char *title = "Baechi translation tool";
    if (failed(mlir::mlirTranslateMain(argc, argv, title)))
      return 1;
    if (packed.name.empty())
      return 0;
    std::string text;
    error = readTextFile(packed.plain, text);
    if (error.empty())
      error = writeTextFile(packed.name, text);
  }
  if (error.empty())
    return 0;
  llvm::errs() << error << "\n";
  return 1;
}
