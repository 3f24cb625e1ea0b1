//===- TransferSchedule.h - Operators and transfers in order -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_TRANSFORMS_PARTITION_TRANSFERSCHEDULE_H
#define BAECHI_LIB_TRANSFORMS_PARTITION_TRANSFERSCHEDULE_H

#include "Baechi/Analysis/Program.h"

namespace baechi {

/// One tensor moved from one device to another.
struct Message {
  mlir::Value value; ///< a root (Program.h)
  int32_t from, to;  ///< devices
  int64_t start, end;
  int64_t queue = 0, seq = 0;
  /// Positions among the operators of each end's device before which the
  /// message is offered and its buffer is posted.
  int32_t sendAt = 0, recvAt = 0;
  /// The receiver reads the sender's tensor, instead of a copy, and gives it
  /// back before the operator at this position; `end` is when it is planned to,
  /// and no operator of the sender that comes earlier in the global order
  /// starts then or later.
  bool lent = false;
  int32_t giveBackAt = 0;
};

/// A placed step in one global order that respects every dependence; each
/// device runs its part of it. Every wait that the order implies is for
/// something earlier in it, so no wait can be circular.
struct TransferSchedule {
  llvm::SmallVector<llvm::StringRef> devices;
  llvm::StringMap<int32_t> deviceIndex;
  /// Operators of each device, in order.
  llvm::SmallVector<llvm::SmallVector<mlir::Operation *>> operators;
  /// In global order.
  llvm::SmallVector<Message> messages;

  int32_t deviceOf(mlir::Value root) const;
  int32_t deviceOf(mlir::Operation *op) const;
};

/// Orders a placed step by its planned times. Emits an error where a tensor has
/// no planned transfer to a device that reads it. Messages are lent where the
/// link lends, but for those of the devices \p copiedFrom.
mlir::FailureOr<TransferSchedule>
scheduleTransfers(mlir::FunctionOpInterface step, MachineAttr machine,
                  llvm::ArrayRef<std::string> copiedFrom = {});

} // namespace baechi

#endif // BAECHI_LIB_TRANSFORMS_PARTITION_TRANSFERSCHEDULE_H
