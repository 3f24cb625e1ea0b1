//===- WriteTurns.h - A loop, turn by turn ----------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_TRANSFORMS_UNROLL_WRITETURNS_H
#define BAECHI_TRANSFORMS_UNROLL_WRITETURNS_H

#include "Baechi/Costs/Trips.h"
#include "mlir/IR/Builders.h"
#include <string>

namespace baechi {

/// What the results of \p op, an operator of a turn, are without it, which then
/// goes; empty: it stays.
using FoldOfTurn =
    llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Operation *op)>;

/// Puts the operators of \p turns in the place of \p loop, an scf.for or
/// scf.while; the number of a turn is a constant in them. Gives those that
/// something reads, in their order.
llvm::SmallVector<mlir::Operation *> writeTurns(mlir::Operation *loop,
                                                const Turns &turns,
                                                FoldOfTurn fold = nullptr);

/// Why \p loop, an scf.for or scf.while, is not written out by the default
/// limit of operators; empty: nobody has asked for it.
std::string whyWhole(mlir::Operation *loop);

} // namespace baechi

#endif // BAECHI_TRANSFORMS_UNROLL_WRITETURNS_H
