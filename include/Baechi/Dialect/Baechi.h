//===- Baechi.h - The baechi dialect -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_DIALECT_BAECHI_H
#define BAECHI_DIALECT_BAECHI_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace baechi {
/// Whether values of \p type can cross devices: tensors, vectors and scalars.
bool isMovable(mlir::Type type);
} // namespace baechi

#include "Baechi/Dialect/BaechiDialect.h.inc"
#include "Baechi/Dialect/BaechiEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "Baechi/Dialect/BaechiAttrs.h.inc"

#define GET_TYPEDEF_CLASSES
#include "Baechi/Dialect/BaechiTypes.h.inc"

#define GET_OP_CLASSES
#include "Baechi/Dialect/BaechiOps.h.inc"

#endif // BAECHI_DIALECT_BAECHI_H
