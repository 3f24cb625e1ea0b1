//===- Parts.h - The attribute of what puts tensors together ----*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_DIALECT_PARTS_H
#define BAECHI_DIALECT_PARTS_H

#include "llvm/ADT/StringRef.h"

namespace baechi {

/// On the result of a kernel that does nothing but put its arguments together:
/// an array of i64, where in the result each argument lies, in bytes. What
/// makes an argument may write it there, and nothing is left to do.
constexpr llvm::StringLiteral kParts = "baechi.parts";

/// On a call of such a kernel in a device's program, whose operands are
/// arguments: these lie behind each other, and the result is where they are.
/// Whoever reads it reads them, and nothing is copied.
constexpr llvm::StringLiteral kJoined = "baechi.joined";

} // namespace baechi

#endif // BAECHI_DIALECT_PARTS_H
