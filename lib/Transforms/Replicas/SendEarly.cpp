//===- SendEarly.cpp - Gradients computed when they can be -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A list scheduler computes first what the longest path goes through, so the
// gradients of parameters come after those of activations: the links have
// nothing to do, and then all at once. Wait-free backpropagation (Zhang et al.,
// "Poseidon", ATC 2017) computes and sends a layer's gradients as soon as they
// can be.
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/InPlace.h"
#include "Baechi/Analysis/Program.h"
#include "Messages.h"

using namespace mlir;
using namespace baechi;

namespace {
class EarlySender {
public:
  explicit EarlySender(func::FuncOp step)
      : body(step.front()), end(body.getTerminator()) {
    for (const InPlaceUpdate &update : inPlaceUpdates(step))
      updaters.insert(update.updater);
    for (auto [position, op] : llvm::enumerate(body))
      positions[&op] = position;
    find();
  }

  void run() {
    SmallVector<Operation *> planned;
    for (Operation &op : body)
      planned.push_back(&op);
    for (Operation *op : planned)
      put(op);
    for (Operation *op : order)
      op->moveBefore(&body, body.end());
  }

private:
  static bool isSentNow(Operation *op) {
    return isa<SendOp>(op) && !op->hasAttr(kCarried);
  }

  /// Operators that lead to messages of this step and, beside them, to next
  /// values alone, with how many operators it is to the next message.
  void find() {
    llvm::DenseSet<Operation *> ends, leads;
    for (Operation &op : llvm::reverse(body)) {
      if (&op == end || (isa<SendOp>(op) && op.hasAttr(kCarried))) {
        ends.insert(&op);
        continue;
      }
      if (isa<SendOp, RecvOp, AwaitOp, AwaitCarriedOp, GiveBackOp>(op) ||
          op.use_empty())
        continue;
      bool isEnd = true, isLeading = true;
      size_t nearest = std::numeric_limits<size_t>::max();
      for (Operation *inner : op.getUsers()) {
        Operation *user = body.findAncestorOpInBlock(*inner);
        isEnd &= ends.contains(user);
        isLeading &=
            isSentNow(user) || leads.contains(user) || ends.contains(user);
        if (isSentNow(user))
          nearest = 0;
        else if (auto found = early.find(user); found != early.end())
          nearest = std::min(nearest, found->second);
      }
      if (isEnd)
        ends.insert(&op);
      if (!isLeading || updaters.contains(&op))
        continue;
      leads.insert(&op);
      if (nearest != std::numeric_limits<size_t>::max())
        early[&op] = nearest + 1;
    }
  }

  bool isReady(Operation *op) const {
    return llvm::all_of(valuesReadBy(op), [&](Value value) {
      Operation *made = value.getDefiningOp();
      return !made || done.contains(made);
    });
  }

  /// \p op, and what is early and waited for it alone: what is sent soon first,
  /// so a layer's own gradient before those of the layers below it.
  void put(Operation *op) {
    if (!done.insert(op).second)
      return;
    order.push_back(op);
    SmallVector<Operation *> next;
    for (Operation *inner : op->getUsers()) {
      Operation *user = body.findAncestorOpInBlock(*inner);
      if ((early.contains(user) || (isSentNow(user) && early.contains(op))) &&
          !done.contains(user) && isReady(user) &&
          !llvm::is_contained(next, user))
        next.push_back(user);
    }
    llvm::sort(next, [&](Operation *a, Operation *b) {
      return std::pair(early.lookup(a), positions.lookup(a)) <
             std::pair(early.lookup(b), positions.lookup(b));
    });
    for (Operation *user : next)
      put(user);
  }

  Block &body;
  Operation *end;
  llvm::DenseMap<Operation *, size_t> positions;
  llvm::DenseSet<Operation *> updaters, done;
  llvm::DenseMap<Operation *, size_t> early;
  SmallVector<Operation *> order;
};
} // namespace

/// A queue's messages are offered in the order of their numbers, at both ends.
static void renumber(ArrayRef<DeviceProgram> programs) {
  llvm::MapVector<int64_t, SmallVector<MessageEnds>> queues;
  for (auto &[tag, ends] : messagesOf(programs))
    if (!ends.send->hasAttr(kCarried))
      queues[tag.first].push_back(ends);
  for (auto &[queue, messages] : queues) {
    llvm::sort(messages, [](MessageEnds a, MessageEnds b) {
      return a.send->isBeforeInBlock(b.send);
    });
    for (auto [seq, ends] : llvm::enumerate(messages)) {
      ends.send.setSeq(seq);
      ends.recv.setSeq(seq);
    }
    for (MessageEnds &ends : llvm::reverse(messages))
      if (Operation *first = &ends.receiver.front().front(); ends.recv != first)
        ends.recv->moveBefore(first);
  }
}

bool baechi::sendEarly(ArrayRef<DeviceProgram> programs) {
  // What is lent is received where it is read.
  for (auto &[tag, ends] : messagesOf(programs))
    if (ends.send.getLent())
      return false;
  for (DeviceProgram program : programs)
    EarlySender(program.step).run();
  renumber(programs);
  placeAroundReaders(messagesOf(programs));
  return true;
}
