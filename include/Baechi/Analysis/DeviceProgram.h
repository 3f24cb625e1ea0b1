//===- DeviceProgram.h - A partitioned program's devices -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_ANALYSIS_DEVICEPROGRAM_H
#define BAECHI_ANALYSIS_DEVICEPROGRAM_H

#include "Baechi/Dialect/Baechi.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace baechi {

/// One device's part of a partitioned program.
struct DeviceProgram {
  mlir::ModuleOp module;
  mlir::func::FuncOp step;
  llvm::StringRef name;
  DeviceSpecAttr spec;
};

/// The device modules of a partitioned program, in the machine's order. Emits
/// an error when the module was not partitioned or a device's module is
/// malformed (no machine, an unknown device, not exactly one public function).
mlir::FailureOr<llvm::SmallVector<DeviceProgram>>
devicePrograms(mlir::ModuleOp module);

} // namespace baechi

#endif // BAECHI_ANALYSIS_DEVICEPROGRAM_H
