//===- Register.cpp - The exports as translations ---*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Dialect/Baechi.h"
#include "Baechi/Target/Export.h"
#include "mlir/InitAllDialects.h"
#include "mlir/Tools/mlir-translate/Translation.h"

using namespace mlir;

/// Steps may hold operations of any dialect.
static void registerDialects(DialectRegistry &registry) {
  mlir::registerAllDialects(registry);
  registry.insert<baechi::BaechiDialect>();
}

void baechi::registerExports() {
  auto add = [](StringRef name, StringRef description,
                LogicalResult (*function)(ModuleOp, raw_ostream &)) {
    TranslateFromMLIRRegistration(name, description, function,
                                  registerDialects);
  };
  add("baechi-to-graph", "a step with costs to a graph file", exportGraph);
  add("baechi-to-machine", "the module's machine to a machine file",
      exportMachine);
  add("baechi-to-placement", "a placed step to a placement file",
      exportPlacement);
  add("baechi-to-dot", "a step with costs to a Graphviz graph", exportDot);
  add("baechi-to-device-map",
      "a placed step to a map from prefixes of names to devices",
      exportDeviceMap);
  add("baechi-to-manifest", "a program with a memory plan to its manifest",
      exportManifest);
  add("baechi-to-trace",
      "a program with a memory plan to the Chrome trace of its predicted "
      "timeline",
      exportTrace);
}
