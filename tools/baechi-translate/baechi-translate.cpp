//===- baechi-translate.cpp - Programs to and from other forms -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Target/Export.h"
#include "Version.h"
#include "mlir/InitAllTranslations.h"
#include "mlir/Tools/mlir-translate/MlirTranslateMain.h"

int main(int argc, char **argv) {
  baechi::tellVersion();
  mlir::registerToLLVMIRTranslation();
  baechi::registerExports();
  return failed(mlir::mlirTranslateMain(argc, argv, "Baechi translation tool"));
}
