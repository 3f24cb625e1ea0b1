//===- Loans.h - Messages that are lent, not copied -------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_TRANSFORMS_LOANS_H
#define BAECHI_LIB_TRANSFORMS_LOANS_H

#include "Baechi/Analysis/DeviceProgram.h"

namespace baechi {

/// Where a loan ends on its receiver; null: the message is not lent, or
/// verifyLoan refuses it.
mlir::Operation *giveBackOf(RecvOp recv);

/// Checks one message: both ends agree on whether it is lent; a loan is between
/// devices of one address space, and is given back once, after the last read of
/// the tensor. \p text: "queue 0 seq 3 ('x')".
llvm::LogicalResult verifyLoan(SendOp send, const DeviceProgram &sender,
                               RecvOp recv, const DeviceProgram &receiver,
                               llvm::StringRef text);

} // namespace baechi

#endif // BAECHI_LIB_TRANSFORMS_LOANS_H
