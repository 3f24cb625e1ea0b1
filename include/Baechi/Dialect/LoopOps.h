//===- LoopOps.h - Serial loops over keys -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// `baechi.foreach` and the attributes of loops: apart from Baechi.h, which
/// most of the compiler includes.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_DIALECT_LOOPOPS_H
#define BAECHI_DIALECT_LOOPOPS_H

#include "Baechi/Dialect/Baechi.h"
#include "mlir/IR/IntegerSet.h"

#include "Baechi/Dialect/LoopEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "Baechi/Dialect/LoopAttrs.h.inc"

#define GET_OP_CLASSES
#include "Baechi/Dialect/LoopOps.h.inc"

#endif // BAECHI_DIALECT_LOOPOPS_H
