//===- CarriedMessages.h - Messages across the step's border -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_TRANSFORMS_PARTITION_CARRIEDMESSAGES_H
#define BAECHI_LIB_TRANSFORMS_PARTITION_CARRIEDMESSAGES_H

#include "Baechi/Analysis/DeviceProgram.h"
#include "Baechi/Dialect/Carried.h"
#include "llvm/ADT/DenseMap.h"

namespace baechi {

/// By a queue's number and a message's number in it.
using CarriedAwaits = llvm::DenseMap<std::pair<int64_t, int64_t>,
                                     llvm::SmallVector<AwaitCarriedOp, 1>>;

/// Of a device's program.
CarriedAwaits carriedAwaitsOf(const DeviceProgram &program);

/// Checks that both ends of a message are carried or none is; of one that is,
/// that each end's device awaits it once, before the end, and that the value
/// is of the argument that the end names: the sender's is updated by it, the
/// receiver's a copy of the same one. \p text names the message.
mlir::LogicalResult verifyCarried(SendOp send, const DeviceProgram &sender,
                                  RecvOp recv, const DeviceProgram &receiver,
                                  llvm::StringRef text);

/// Checks that \p await is for a carried message of its device.
mlir::LogicalResult verifyAwaitCarried(AwaitCarriedOp await,
                                       const DeviceProgram &program);

} // namespace baechi

#endif // BAECHI_LIB_TRANSFORMS_PARTITION_CARRIEDMESSAGES_H
