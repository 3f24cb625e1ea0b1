//===- BlockWriter.h - A loop's blocks over tensors -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_TRANSFORMS_LOOPS_BLOCKWRITER_H
#define BAECHI_LIB_TRANSFORMS_LOOPS_BLOCKWRITER_H

#include "BlockLayout.h"
#include "TensorWriter.h"

namespace baechi {

/// Writes the blocks of \p op, which \p writer keeps the arrays of, in the
/// order of a serial run; each is one operation that becomes a kernel, called
/// "block/NUMBER/PARTS".
llvm::LogicalResult writeBlocks(ForeachOp op, const LoopModel &model,
                                const BlockLayout &layout, unsigned number,
                                TensorWriter &writer, mlir::OpBuilder &builder);

} // namespace baechi

#endif // BAECHI_LIB_TRANSFORMS_LOOPS_BLOCKWRITER_H
