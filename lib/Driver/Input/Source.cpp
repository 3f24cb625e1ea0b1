//===- Source.cpp - A model's text becomes a module -----------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Driver/Input/Source.h"
#include "Baechi/Dialect/Baechi.h"
#include "Baechi/Driver/Input/Errors.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"

using namespace mlir;
using namespace baechi;

Source::Source(const DialectRegistry &registry, std::string text,
               std::string name, bool threads, Listener &listener)
    : listener(listener), text(std::move(text)), name(std::move(name)),
      mlirContext(registry, threads ? MLIRContext::Threading::ENABLED
                                    : MLIRContext::Threading::DISABLED),
      handler(sources, &mlirContext, listener.diagnostics()),
      // On top of the other, which then writes it.
      heard(&mlirContext, [&listener](Diagnostic &diagnostic) {
        listener.diagnosed(diagnostic);
        return failure();
      }) {
  mlirContext.printOpOnDiagnostic(false);
  // Collectives of replicas are StableHLO's, in the generic form.
  if (StringRef(this->text).contains("\"stablehlo."))
    mlirContext.allowUnregisteredDialects();
  sources.AddNewSourceBuffer(
      llvm::MemoryBuffer::getMemBuffer(this->text, this->name), SMLoc());
}

llvm::Expected<OwningOpRef<ModuleOp>> Source::parse() {
  OwningOpRef<ModuleOp> module =
      parseSourceFile<ModuleOp>(sources, &mlirContext);
  if (!module) {
    if (StringRef(text).contains("stablehlo."))
      listener.note("StableHLO becomes linalg first: python -m "
                    "baechi.importer FILE.mlir -o LINALG.mlir");
    return diagnosed();
  }
  Location file = FileLineColLoc::get(&mlirContext, name, 0, 0);
  for (auto function : module->getOps<func::FuncOp>())
    if (isa<UnknownLoc>(function.getLoc()))
      function->setLoc(file);
  return std::move(module);
}

llvm::Error Source::giveFirstValues(ModuleOp module, StringRef values) {
  auto step = module.lookupSymbol<func::FuncOp>("step");
  if (!step)
    return llvm::Error::success(); // who needs it says so
  Attribute parsed = parseAttribute(values, &mlirContext);
  if (!parsed)
    return diagnosed();
  SmallVector<Attribute> arguments;
  if (auto given = dyn_cast<ArrayAttr>(parsed))
    for (auto [index, value] : llvm::enumerate(given)) {
      NamedAttrList attributes;
      if (index < step.getNumArguments())
        if (DictionaryAttr own = step.getArgAttrDict(index))
          attributes = NamedAttrList(own);
      attributes.set(BaechiDialect::kInit, value);
      arguments.push_back(attributes.getDictionary(&mlirContext));
    }
  step.setArgAttrsAttr(ArrayAttr::get(&mlirContext, arguments));
  // Says whether they are as many, too.
  return failed(verify(step)) ? diagnosed() : llvm::Error::success();
}
