//===- Check.h - What IREE can take -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_CONVERSION_IREE_CHECK_H
#define BAECHI_CONVERSION_IREE_CHECK_H

#include "Baechi/Dialect/Baechi.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace baechi {

/// Emits an error for the first thing of a placed \p step that IREE cannot
/// take: a type or an operation that IREE does not know, a call of a function
/// without a body.
llvm::LogicalResult checkForIree(mlir::func::FuncOp step);

} // namespace baechi

#endif // BAECHI_CONVERSION_IREE_CHECK_H
