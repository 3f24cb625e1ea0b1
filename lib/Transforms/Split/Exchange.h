//===- Exchange.h - What pieces send each other -----------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_TRANSFORMS_SPLIT_EXCHANGE_H
#define BAECHI_LIB_TRANSFORMS_SPLIT_EXCHANGE_H

#include "Baechi/Placement/Model/Problem.h"
#include "SplitPlan.h"

namespace baechi::split {

/// What tensors take between devices that share no memory, of the machine that
/// a step is for (`baechi.machine` of its module).
class Exchange {
public:
  /// The means over the links; none where there is no machine, it has no links,
  /// or one of them lends.
  static std::optional<Exchange> of(mlir::func::FuncOp step);

  /// Where the pieces of \p cut run on devices of their own. What is stored in
  /// pieces is not sent, nor what only pieces of the cut make and read.
  double sentNs(const Cut &cut) const;

  /// Operations that save less time in pieces than what pieces send for them
  /// takes, beyond what the whole would be sent: a table that all pieces would
  /// read. \p savedNs: what cutting one saves.
  llvm::SmallVector<mlir::Operation *>
  betterWhole(const Cut &cut,
              llvm::function_ref<double(mlir::Operation *)> savedNs) const;

  /// What is sent in the time of a message without bytes.
  int64_t bytesOfLatency() const { return int64_t(latencyNs / nsPerByte); }

private:
  /// So many transfers of \p bytes each, between \p devices that have a like
  /// part in them.
  double timeNs(double transfers, double bytes, double devices) const;
  bool isBetterWhole(mlir::Operation *op, const OperationCut &how,
                     const Cut &cut, double savedNs) const;

  double latencyNs = 0;
  double nsPerByte = 0;
  placement::LinkModel model = placement::LinkModel::Sequential;
};

/// The kind of the first device of the machine that \p step is for; "host"
/// where there is none.
std::string kindFor(mlir::func::FuncOp step);

double bytesOf(mlir::Type type);
/// False for what is no code, or becomes a part of its readers.
bool isComputed(mlir::Operation *op);

} // namespace baechi::split

#endif // BAECHI_LIB_TRANSFORMS_SPLIT_EXCHANGE_H
