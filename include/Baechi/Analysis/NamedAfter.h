//===- NamedAfter.h - Names of what operators become ------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_ANALYSIS_NAMEDAFTER_H
#define BAECHI_ANALYSIS_NAMEDAFTER_H

#include "mlir/IR/Location.h"
#include "mlir/IR/Operation.h"

namespace baechi {

/// \p op's location, under a name of its own where it has one.
mlir::Location namedAfter(mlir::Operation *op, const llvm::Twine &suffix);

} // namespace baechi

#endif // BAECHI_ANALYSIS_NAMEDAFTER_H
