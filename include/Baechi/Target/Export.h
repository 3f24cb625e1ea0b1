//===- Export.h - Programs in other forms -----------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A program at each phase of compilation, written in the form that other
/// tools read. Every function fails after it has emitted an error that names
/// the pass to run first.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_TARGET_EXPORT_H
#define BAECHI_TARGET_EXPORT_H

#include "mlir/IR/BuiltinOps.h"

namespace baechi {

/// A step with costs as a graph file (docs/formats.md).
llvm::LogicalResult exportGraph(mlir::ModuleOp module, llvm::raw_ostream &os);

/// The module's `baechi.machine` as a machine file.
llvm::LogicalResult exportMachine(mlir::ModuleOp module, llvm::raw_ostream &os);

/// A placed step as a placement file; its graph is exportGraph's.
llvm::LogicalResult exportPlacement(mlir::ModuleOp module,
                                    llvm::raw_ostream &os);

/// A step with costs as a graph in Graphviz's DOT language, coloured by device
/// where it is placed.
llvm::LogicalResult exportDot(mlir::ModuleOp module, llvm::raw_ostream &os);

/// A placed step as a JSON object of names, or prefixes of names that end where
/// a component ('/', '.') does, to devices; the longest that fits a name
/// counts.
llvm::LogicalResult exportDeviceMap(mlir::ModuleOp module,
                                    llvm::raw_ostream &os);

/// A program with a memory plan as its manifest (docs/program-format.md).
llvm::LogicalResult exportManifest(mlir::ModuleOp module,
                                   llvm::raw_ostream &os);

/// The predicted timeline of a program with a memory plan (ChromeTrace.h).
llvm::LogicalResult exportTrace(mlir::ModuleOp module, llvm::raw_ostream &os);

using ExportFunction = llvm::LogicalResult (*)(mlir::ModuleOp,
                                               llvm::raw_ostream &);

/// One of these, by the name of its form: "graph" is --baechi-to-graph.
struct Export {
  llvm::StringRef form, description;
  ExportFunction function;
};
llvm::ArrayRef<Export> exports();

/// Registers each of these as a translation: --baechi-to-graph, ...
void registerExports();

} // namespace baechi

#endif // BAECHI_TARGET_EXPORT_H
