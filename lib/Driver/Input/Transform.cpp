//===- Transform.cpp - Passes over a model's text -------------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Driver/Input/Transform.h"
#include "Baechi/Driver/Input/Errors.h"
#include "Baechi/Driver/Input/Source.h"
#include "Baechi/Pipelines/Pipelines.h"
#include "Baechi/Target/Export.h"
#include "mlir/InitAllDialects.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include <mutex>

using namespace mlir;
using namespace baechi;

namespace {
LogicalResult writeModule(ModuleOp module, raw_ostream &os) {
  module.print(os, OpPrintingFlags().enableDebugInfo());
  os << "\n";
  return success();
}

/// How a form is written; null where there is none of the name.
ExportFunction findForm(StringRef name) {
  if (name == "mlir")
    return writeModule;
  for (const Export &each : exports())
    if (each.form == name)
      return each.function;
  return nullptr;
}

llvm::Error unknownForm(StringRef name) {
  std::string known = "mlir";
  for (const Export &each : exports())
    known += (", " + each.form).str();
  return llvm::createStringError("unknown form '" + name + "' of a module (" +
                                 known + ")");
}
} // namespace

llvm::Expected<std::string> baechi::transformModel(TransformOptions options,
                                                   Listener &listener) {
  ExportFunction write = findForm(options.form);
  if (!write)
    return unknownForm(options.form);
  static std::once_flag once;
  std::call_once(once, baechi::registerAllPasses);
  DialectRegistry registry;
  mlir::registerAllDialects(
      registry); // steps may hold any dialect's operations
  baechi::registerAllDialects(registry);
  Source source(registry, std::move(options.text), std::move(options.model),
                /*threads=*/true, listener);

  std::string wrong;
  llvm::raw_string_ostream errors(wrong);
  FailureOr<OpPassManager> passes = parsePassPipeline(options.pipeline, errors);
  if (failed(passes))
    return llvm::createStringError(StringRef(wrong).rtrim());
  PassManager manager(source.context(), passes->getOpAnchorName());
  static_cast<OpPassManager &>(manager) = std::move(*passes);

  auto module = source.parse();
  if (!module)
    return module.takeError();
  if (listener.isStopped())
    return llvm::createStringError("stopped");
  if (failed(manager.run(**module)))
    return diagnosed();
  std::string text;
  llvm::raw_string_ostream os(text);
  if (failed(write(**module, os)))
    return diagnosed();
  return text;
}
