//===- WrittenParts.h - Steps that are written for replicas -----*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_TRANSFORMS_SPLIT_WRITTENPARTS_H
#define BAECHI_LIB_TRANSFORMS_SPLIT_WRITTENPARTS_H

#include "Baechi/Transforms/SplitReport.h"
#include "Storage.h"

namespace baechi::split {

/// Of a step that has its operations for each of \p replicas already, which
/// read slices of batched arguments (`baechi.batched`): such arguments, and
/// results that are put together of a part for each, become as many. \p cut is
/// told what was found.
Storage storeWrittenParts(mlir::func::FuncOp step, int64_t replicas,
                          SplitReport::Class &cut);

} // namespace baechi::split

#endif // BAECHI_LIB_TRANSFORMS_SPLIT_WRITTENPARTS_H
