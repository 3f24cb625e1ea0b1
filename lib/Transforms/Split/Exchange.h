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
  /// or one of them lends. \p share: of the time that is sent, what nothing is
  /// computed in; the rest costs nothing. \p mergesMoments: as
  /// `PlanOptions::mergeMoments`.
  static std::optional<Exchange> of(mlir::func::FuncOp step, double share = 1,
                                    bool mergesMoments = false);

  /// Where the pieces of \p cut run on devices of their own. What is stored in
  /// pieces is not sent, nor what only pieces of the cut make and read.
  double sentNs(const Cut &cut) const;

  /// Operations that are better whole: those whose pieces send each other more
  /// than they save, alone, as a table that all pieces would read, or together,
  /// as the layers between two tensors that are small when put together.
  /// \p savedNs: what cutting one saves.
  llvm::SmallVector<mlir::Operation *>
  betterWhole(const Cut &cut,
              llvm::function_ref<double(mlir::Operation *)> savedNs) const;

  /// What \p op alone makes its pieces send each other.
  double sentByNs(mlir::Operation *op, const OperationCut &how,
                  const Cut &cut) const;
  /// What each piece of \p op reads all of; of what each computes of small sums
  /// and parameters for itself, those.
  llvm::SetVector<mlir::Value> wholesReadBy(mlir::Operation *op,
                                            const OperationCut &how,
                                            const Cut &cut) const;
  /// A whole to the devices of all \p pieces.
  double sentToAllNs(mlir::Value whole, double pieces) const;
  /// Pieces to where they are put together, or from the whole.
  double movedNs(mlir::Value value, double pieces) const;
  /// What is computed, and sent as it is: no argument, and no constant.
  bool isMoved(mlir::Value value) const;

  /// What is sent in the time of a message without bytes.
  int64_t bytesOfLatency() const { return int64_t(latencyNs / nsPerByte); }

private:
  /// So many transfers of \p bytes each, between \p devices that have a like
  /// part in them.
  double timeNs(double transfers, double bytes, double devices) const;

  void addSources(mlir::Value value, const Cut &cut, unsigned longest,
                  llvm::SetVector<mlir::Value> &sources) const;

  /// Whether the partial results of \p op, a sum of squares, are in the message
  /// with those of their mean, which takes no longer.
  bool isSentBefore(mlir::Operation *op, const Cut &cut) const;

  /// The sum of each sum of squares of a step that one message has (Moments.h).
  llvm::DenseMap<mlir::Operation *, mlir::Operation *> sumOfSquares;
  double latencyNs = 0;
  double nsPerByte = 0;
  double share = 1;
  placement::LinkModel model = placement::LinkModel::Sequential;
};

/// The kind of the first device of the machine that \p step is for; "host"
/// where there is none.
std::string kindFor(mlir::func::FuncOp step);

/// The operation of \p value's block that \p user is, or lies in.
mlir::Operation *readerOf(mlir::Value value, mlir::Operation *user);

double bytesOf(mlir::Type type);
/// False for what is no code, or becomes a part of its readers.
bool isComputed(mlir::Operation *op);

} // namespace baechi::split

#endif // BAECHI_LIB_TRANSFORMS_SPLIT_EXCHANGE_H
