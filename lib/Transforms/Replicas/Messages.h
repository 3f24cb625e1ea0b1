//===- Messages.h - Messages of a partitioned step -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_TRANSFORMS_REPLICAS_MESSAGES_H
#define BAECHI_LIB_TRANSFORMS_REPLICAS_MESSAGES_H

#include "Baechi/Analysis/DeviceProgram.h"
#include "Baechi/Analysis/InPlace.h"
#include "Baechi/Dialect/Carried.h"
#include "llvm/ADT/MapVector.h"

namespace baechi {

/// Both ends of a message, and what waits for it in the next step.
struct MessageEnds {
  SendOp send;
  RecvOp recv;
  mlir::func::FuncOp sender, receiver;
  AwaitCarriedOp sendAwait, recvAwait;
};

/// A queue's number and a message's number in it.
using MessageTag = std::pair<int64_t, int64_t>;
using Messages = llvm::MapVector<MessageTag, MessageEnds>;

/// The messages of devices' programs; those that lack an end are left out.
Messages messagesOf(llvm::ArrayRef<DeviceProgram> programs);

/// Says on each send how urgent it is: by where in the next step the parameter
/// is first used that is carried, or that is updated with what is sent. What
/// this step's own messages wait for is more urgent than all of these, and
/// what nothing waits for less.
void setPriorities(llvm::ArrayRef<DeviceProgram> programs);

/// Puts what awaits and fills the copies of parameters before their first and
/// after their last readers.
void placeAroundReaders(const Messages &messages);

/// The operators that compute an argument's next value in its place, as memory
/// planning will find them; none where it is computed elsewhere.
mlir::SmallVector<InPlaceUpdate> updatesInPlace(mlir::func::FuncOp step,
                                                unsigned argument);

/// Lets wholes that are put together of arguments lie where these do
/// (`baechi.joined`): copies of what others own, and what is updated in its
/// place once all have read the wholes.
void joinArguments(mlir::func::FuncOp step);

/// Lets slices of what is computed here be read and sent where they lie.
void viewSlices(mlir::func::FuncOp step);

/// Moves what leads to messages of this step, and beside them to next values
/// alone, to where it can be computed first; false where messages are lent, and
/// nothing was changed.
bool sendEarly(llvm::ArrayRef<DeviceProgram> programs);

/// Moves updates of parameters to where the period of steps that overlap is
/// predicted to be shortest, and returns it, in ns.
mlir::FailureOr<int64_t> orderUpdates(mlir::ModuleOp module,
                                      llvm::ArrayRef<DeviceProgram> programs);

} // namespace baechi

#endif // BAECHI_LIB_TRANSFORMS_REPLICAS_MESSAGES_H
