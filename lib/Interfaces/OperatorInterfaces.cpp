//===- OperatorInterfaces.cpp - What operators say -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Interfaces/OperatorInterfaces.h"

using namespace mlir;

#include "Baechi/Interfaces/OperatorInterfaces.cpp.inc"

LogicalResult baechi::detail::verifyView(Operation *op) {
  if (!cast<BufferOpInterface>(op).isView() ||
      (op->getNumOperands() == 1 && op->getNumResults() == 1))
    return success();
  return op->emitOpError() << "is a view with " << op->getNumOperands()
                           << " operands and " << op->getNumResults()
                           << " results; a view has one of each";
}
