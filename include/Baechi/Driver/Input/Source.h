//===- Source.h - A model's text becomes a module ---------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_DRIVER_INPUT_SOURCE_H
#define BAECHI_DRIVER_INPUT_SOURCE_H

#include "Baechi/Driver/Input/Listener.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/SourceMgr.h"

namespace baechi {

/// A model's text, and the context whose diagnostics show its lines to a
/// listener, both as text and each by itself.
class Source {
public:
  /// \p name: what messages call the text.
  /// \p listener lives longer than what is made.
  Source(const mlir::DialectRegistry &registry, std::string text,
         std::string name, bool threads, Listener &listener);

  mlir::MLIRContext *context() { return &mlirContext; }

  /// The module. Functions without a place in a file, which importers make,
  /// get the text's name. Error: a DiagnosedError.
  llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>> parse();
  /// Gives the arguments of a module's @step what they begin with: an array of
  /// the `baechi.init` of each, as text.
  llvm::Error giveFirstValues(mlir::ModuleOp module, llvm::StringRef values);

private:
  Listener &listener;
  std::string text, name;
  mlir::MLIRContext mlirContext;
  llvm::SourceMgr sources;
  mlir::SourceMgrDiagnosticHandler handler;
  mlir::ScopedDiagnosticHandler heard;
};

} // namespace baechi

#endif // BAECHI_DRIVER_INPUT_SOURCE_H
