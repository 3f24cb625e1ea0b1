//===- DeviceEntry.h - A device's step as one function ----------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_CONVERSION_DEVICES_DEVICEENTRY_H
#define BAECHI_LIB_CONVERSION_DEVICES_DEVICEENTRY_H

#include "LendableArguments.h"
#include "RuntimeInterface.h"

#include "Baechi/Analysis/DeviceProgram.h"

namespace baechi {

/// Writes the entry function of one device, whose step has its plan of memory.
/// \p lendable: arguments that are read where the runtime says.
llvm::LogicalResult writeEntry(RuntimeInterface &runtime,
                               const DeviceProgram &program,
                               llvm::StringRef prefix,
                               const LendableArguments &lendable);

} // namespace baechi

#endif // BAECHI_LIB_CONVERSION_DEVICES_DEVICEENTRY_H
