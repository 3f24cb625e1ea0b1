//===- OperatorInterfaces.h - What operators say -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Interfaces by which another dialect's operations state their cost, aliases
/// and in-place updates. They need nothing else of Baechi: a dialect that
/// implements them links Baechi::Interfaces alone. docs/package.md shows how.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_INTERFACES_OPERATORINTERFACES_H
#define BAECHI_INTERFACES_OPERATORINTERFACES_H

#include "mlir/IR/OpDefinition.h"
#include <optional>

namespace baechi {

/// What an operator does, independent of the device.
struct Work {
  double flops = 0; ///< floating-point (or integer) operations
  double bytes = 0; ///< operands read and results written, once each
};

namespace detail {
/// Emits an error for a view of other than one operand and one result.
llvm::LogicalResult verifyView(mlir::Operation *op);
} // namespace detail

} // namespace baechi

#include "Baechi/Interfaces/OperatorInterfaces.h.inc"

#endif // BAECHI_INTERFACES_OPERATORINTERFACES_H
