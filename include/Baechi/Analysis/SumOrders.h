//===- SumOrders.h - In which order a step's sums are added up --*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Why a step in pieces has the bits of the whole one. Host code computes each
/// element as its operators are written, and rounds after each, whatever they
/// are fused with (Conversion/Kernels/Common/LaneSums.h); so what may differ is
/// in which order sums are added up. Of the whole and of the pieces that is
/// read where operations are as they will execute, and compared sum by sum.
///
/// Each sum of the step gets a number before anything is cut, in the location
/// of what adds it up: the only thing that cutting, fusing and folding keep and
/// that changes no kernel.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_ANALYSIS_SUMORDERS_H
#define BAECHI_ANALYSIS_SUMORDERS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace baechi {

/// How one operation adds a sum up.
struct SumOrder {
  /// Iterations of its reduction loops, from the outermost on.
  std::vector<int64_t> extents;
  /// Of what it is made, and in which order; nothing of these iterations.
  std::string how;
  /// Its terms are added one after the other, each to all before it.
  bool inTurn = false;
  /// What it starts from: a constant, or "" for a tensor.
  std::string start;
  /// The one of the same sum, in the program's order, from whose result it
  /// starts.
  std::optional<size_t> continues;

  bool isLike(const SumOrder &other) const {
    return extents == other.extents && how == other.how &&
           start == other.start && !continues && !other.continues;
  }
};

/// Those of a step's sums, by number, in the program's order.
struct SumOrders {
  struct Sum {
    std::string name; ///< of an operation that it is of
    std::vector<SumOrder> orders;
  };
  std::map<int64_t, Sum> sums;
  /// What adds up without a number; empty: nothing does.
  std::string unnumbered;
};

/// Gives the sums of \p step, before it is cut, their numbers.
void numberSums(mlir::func::FuncOp step);

/// Notes of the sums of \p op, where they have numbers, that its loops will be
/// in another \p order.
void noteOrder(mlir::linalg::GenericOp op, llvm::ArrayRef<unsigned> order);

/// How the sums of \p step are added up, whose operations are formed and not
/// outlined yet.
SumOrders sumOrdersOf(mlir::func::FuncOp step);

/// Why results of \p pieces may not have the bits of \p whole; empty: they
/// have. All kernels have generated code.
std::string whyBitsMayDiffer(const SumOrders &whole, const SumOrders &pieces);

} // namespace baechi

#endif // BAECHI_ANALYSIS_SUMORDERS_H
