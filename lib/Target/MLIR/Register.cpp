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

ArrayRef<baechi::Export> baechi::exports() {
  static constexpr Export all[] = {
      {"graph", "a step with costs to a graph file", exportGraph},
      {"machine", "the module's machine to a machine file", exportMachine},
      {"placement", "a placed step to a placement file", exportPlacement},
      {"dot", "a step with costs to a Graphviz graph", exportDot},
      {"device-map", "a placed step to a map from prefixes of names to devices",
       exportDeviceMap},
      {"manifest", "a program with a memory plan to its manifest",
       exportManifest},
      {"trace",
       "a program with a memory plan to the Chrome trace of its predicted "
       "timeline",
       exportTrace},
  };
  return all;
}

void baechi::registerExports() {
  // The registry keeps no copies of names.
  static std::vector<std::string> names;
  names.reserve(exports().size());
  for (const Export &each : exports())
    TranslateFromMLIRRegistration(
        names.emplace_back(("baechi-to-" + each.form).str()), each.description,
        each.function, registerDialects);
}
