//===- All.td - The whole dialect -*- tablegen -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
// What is made once for all of it: the parser of its attributes, its page.

include "Baechi/Dialect/BaechiOps.td"
include "Baechi/Dialect/CarriedOps.td"
include "Baechi/Dialect/LoopOps.td"
include "Baechi/Dialect/PieceAttrs.td"
