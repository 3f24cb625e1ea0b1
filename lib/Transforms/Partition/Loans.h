//===- Loans.h - Messages that are lent, not copied -------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_TRANSFORMS_PARTITION_LOANS_H
#define BAECHI_LIB_TRANSFORMS_PARTITION_LOANS_H

#include "Baechi/Analysis/DeviceProgram.h"
#include "mlir/IR/SymbolTable.h"

namespace baechi {

/// Whether \p op makes a changed version of \p root in its place, as the loop
/// of a block does with a piece of an array. Of a tensor on loan it would make
/// a copy first, while the sender waits for it: nothing is saved, and where two
/// devices change what each has from the other, one waits until the other has
/// ended.
bool changes(mlir::Operation *op, mlir::Value root,
             mlir::SymbolTableCollection &symbols);

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

#endif // BAECHI_LIB_TRANSFORMS_PARTITION_LOANS_H
