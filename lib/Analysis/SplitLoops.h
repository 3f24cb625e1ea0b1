//===- SplitLoops.h - Cuts of structured operations -------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef LIB_ANALYSIS_SPLITLOOPS_H
#define LIB_ANALYSIS_SPLITLOOPS_H

#include "Baechi/Analysis/Splits.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace baechi {

/// The loop that walks along dimension \p dim of an operand.
std::optional<unsigned> loopOfOperand(mlir::linalg::LinalgOp op,
                                      mlir::OpOperand &operand, unsigned dim,
                                      std::string &why);

/// The loop whose index alone the body reads a tensor from outside by, along
/// the dimension of \p position.
std::optional<unsigned> loopOfCapture(mlir::linalg::LinalgOp op,
                                      mlir::Value tensor, CutPosition position,
                                      std::string &why);

/// The cut of a loop of `outer * extent * inner` iterations.
std::optional<OperationCut> cutLoop(mlir::linalg::LinalgOp op, unsigned loop,
                                    CutPosition position, int64_t extent,
                                    std::string &why);

} // namespace baechi

#endif // LIB_ANALYSIS_SPLITLOOPS_H
