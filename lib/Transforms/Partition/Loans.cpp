//===- Loans.cpp - Messages that are lent, not copied -----------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Loans.h"
#include "Baechi/Analysis/InPlace.h"
#include "Baechi/Analysis/Program.h"

using namespace mlir;
using namespace baechi;

bool baechi::changes(Operation *op, Value root,
                     SymbolTableCollection &symbols) {
  func::FuncOp kernel = definitionOf(op, symbols);
  for (unsigned result = 0; kernel && result < kernel.getNumResults();
       ++result) {
    auto change = inPlaceChangeOf(kernel, result);
    if (change && rootOf(op->getOperand(change->argument)) == root &&
        tensorBytes(op->getResult(result).getType(), true) ==
            tensorBytes(root.getType(), true) &&
        mayWriteInto(op, result, root, symbols))
      return true;
  }
  return false;
}

Operation *baechi::giveBackOf(RecvOp recv) {
  Operation *found = nullptr;
  if (recv.getLent())
    for (Operation *user : recv.getFuture().getUsers())
      if (isa<GiveBackOp>(user))
        found = user;
  return found;
}

/// The first read of what \p recv brings that comes after \p end, or an await
/// that does; null: there is none. It follows uses, so that many loans of a
/// long step do not each look at all of it.
static Operation *usedAfter(RecvOp recv, Operation *end) {
  Operation *first = nullptr;
  Block *block = end->getBlock();
  SmallVector<Value> values{recv.getFuture()};
  while (!values.empty())
    for (OpOperand &use : values.pop_back_val().getUses()) {
      Operation *user = use.getOwner();
      Operation *op = block->findAncestorOpInBlock(*user);
      if (end->isBeforeInBlock(op) && (!first || op->isBeforeInBlock(first)))
        first = op;
      bool isSame =
          isa<AwaitOp>(user) || (use.getOperandNumber() == 0 && isView(user));
      if (isSame && op == user)
        llvm::append_range(values, user->getResults());
    }
  return first;
}

LogicalResult baechi::verifyLoan(SendOp send, const DeviceProgram &sender,
                                 RecvOp recv, const DeviceProgram &receiver,
                                 StringRef text) {
  if (send.getLent() != recv.getLent()) {
    InFlightDiagnostic diag =
        send.emitOpError() << "on '" << sender.name << "' "
                           << (send.getLent() ? "lends " : "copies ") << text
                           << ", which the recv on '" << receiver.name << "' "
                           << (send.getLent() ? "has a buffer for"
                                              : "expects on loan");
    diag.attachNote(recv.getLoc()) << "the other end";
    return failure();
  }
  SmallVector<Operation *> ends;
  for (Operation *user : recv.getFuture().getUsers())
    if (isa<GiveBackOp>(user))
      ends.push_back(user);
  if (!recv.getLent()) {
    if (ends.empty())
      return success();
    InFlightDiagnostic diag = ends.front()->emitOpError()
                              << "on '" << receiver.name << "' gives back "
                              << text << ", which is not lent";
    diag.attachNote(recv.getLoc()) << "the recv";
    return failure();
  }
  // Whether devices of kind 'cuda' lie on one GPU is seen at run time.
  auto isOnGpu = [](const DeviceProgram &end) {
    return end.spec.getKind() == "cuda";
  };
  bool areOnGpus = isOnGpu(sender) && isOnGpu(receiver);
  for (const DeviceProgram *end : {&sender, &receiver})
    if (end->spec.getKind() != "host" && !areOnGpus) {
      InFlightDiagnostic diag =
          send.emitOpError()
          << "lends " << text << ", but '" << end->name << "' is of kind '"
          << end->spec.getKind()
          << "'; only devices of kind 'host', or of kind 'cuda' on one GPU, "
             "share an address space";
      diag.attachNote(recv.getLoc()) << "the other end";
      return failure();
    }
  if (ends.size() != 1) {
    InFlightDiagnostic diag = recv.emitOpError()
                              << "on '" << receiver.name << "' borrows " << text
                              << " and gives it back " << ends.size()
                              << " times; a baechi.give_back follows its last "
                                 "use";
    diag.attachNote(send.getLoc()) << "the other end";
    return failure();
  }
  if (Operation *late = usedAfter(recv, ends.front())) {
    InFlightDiagnostic diag = late->emitOpError()
                              << "on '" << receiver.name << "' uses " << text
                              << " after it was given back";
    diag.attachNote(ends.front()->getLoc()) << "given back here";
    diag.attachNote(send.getLoc()) << "the other end";
    return failure();
  }
  return success();
}
