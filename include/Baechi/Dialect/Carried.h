//===- Carried.h - Messages across the step's border ------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// `baechi.await_carried` and the attributes of an exchange between replicas:
/// apart from Baechi.h, which most of the compiler includes.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_DIALECT_CARRIED_H
#define BAECHI_DIALECT_CARRIED_H

#include "Baechi/Dialect/Baechi.h"

#define GET_OP_CLASSES
#include "Baechi/Dialect/CarriedOps.h.inc"

namespace baechi {

/// On a send or a recv whose message the next step awaits: the number of the
/// device's argument that its value lies in.
inline constexpr llvm::StringLiteral kCarried = "baechi.carried";
/// On an argument of a device's program: a copy of what another device owns.
inline constexpr llvm::StringLiteral kMirror = "baechi.mirror";
/// On a send: what is smaller is moved first.
inline constexpr llvm::StringLiteral kPriority = "baechi.priority";
/// On a module: the order of messages between replicas, "fifo", "slices",
/// "tictac" or "p3".
inline constexpr llvm::StringLiteral kExchange = "baechi.exchange";
/// On a module: messages are cut in slices of so many bytes.
inline constexpr llvm::StringLiteral kSliceBytes = "baechi.slice_bytes";

/// What is carried, if \p op is such an end: the argument's number.
std::optional<int64_t> carriedArgument(mlir::Operation *op);

/// The end of its device's message that \p await is for, a send or a recv;
/// null: there is none.
mlir::Operation *awaitedBy(AwaitCarriedOp await);

} // namespace baechi

#endif // BAECHI_DIALECT_CARRIED_H
