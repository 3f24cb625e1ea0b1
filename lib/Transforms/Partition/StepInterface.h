//===- StepInterface.h - Do the devices have the step's tensors -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_TRANSFORMS_PARTITION_STEPINTERFACE_H
#define BAECHI_LIB_TRANSFORMS_PARTITION_STEPINTERFACE_H

#include "Baechi/Analysis/DeviceProgram.h"

namespace baechi {

/// Checks the devices' steps against the declaration \p whole of the step that
/// they are parts of: every argument and every result is one device's, of the
/// declared type, and on the declared device where there is one.
llvm::LogicalResult verifyStepInterface(mlir::func::FuncOp whole,
                                        llvm::ArrayRef<DeviceProgram> programs);

} // namespace baechi

#endif // BAECHI_LIB_TRANSFORMS_PARTITION_STEPINTERFACE_H
