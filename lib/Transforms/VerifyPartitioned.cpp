//===- VerifyPartitioned.cpp - Check queues and freedom from deadlock -*- C++
//-*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A step can hang only where a wait depends, through program orders and
// messages, on itself. Nodes are operations; edges are program order on each
// device, send -> await of the receive, and receive -> await of the send (a
// message is copied once both ends have offered it). No cycle: every schedule
// of the devices ends.
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/DeviceProgram.h"
#include "Baechi/Transforms/Passes.h"
#include "llvm/ADT/MapVector.h"

namespace baechi {
#define GEN_PASS_DEF_VERIFYPARTITIONED
#include "Baechi/Transforms/Passes.h.inc"
} // namespace baechi

using namespace mlir;
using namespace baechi;

namespace {
/// Both ends of one message.
struct Ends {
  SendOp send;
  RecvOp recv;
  StringRef sender, receiver;
};

struct VerifyPartitioned
    : public baechi::impl::VerifyPartitionedBase<VerifyPartitioned> {
  void runOnOperation() override {
    messages.clear();
    FailureOr<SmallVector<DeviceProgram>> found =
        devicePrograms(getOperation());
    if (failed(found))
      return signalPassFailure();
    for (const DeviceProgram &program : *found)
      if (failed(collect(program)))
        return signalPassFailure();
    if (failed(checkEnds()) || failed(checkOrder(*found)))
      signalPassFailure();
  }

  /// Notes a device's messages, each queue's in ascending order.
  LogicalResult collect(DeviceProgram program) {
    llvm::DenseMap<int64_t, int64_t> lastSent, lastReceived;
    auto ascending =
        [](auto op, llvm::DenseMap<int64_t, int64_t> &last) -> LogicalResult {
      auto [it, first] = last.try_emplace(op.getQueue(), op.getSeq());
      if (!first && it->second >= static_cast<int64_t>(op.getSeq()))
        return op.emitOpError()
               << "breaks the order of queue " << op.getQueue() << ": seq "
               << op.getSeq() << " after seq " << it->second;
      it->second = op.getSeq();
      return success();
    };
    for (Operation &op : program.step.getBody().front()) {
      if (auto send = dyn_cast<SendOp>(op)) {
        if (failed(ascending(send, lastSent)))
          return failure();
        Ends &ends = messages[{send.getQueue(), send.getSeq()}];
        if (ends.send)
          return send.emitOpError()
                 << "sends seq " << send.getSeq() << " of queue "
                 << send.getQueue() << " again, which '" << ends.sender
                 << "' sends";
        ends.send = send;
        ends.sender = program.name;
        if (failed(checkAwaited(send.getToken())))
          return failure();
      } else if (auto recv = dyn_cast<RecvOp>(op)) {
        if (failed(ascending(recv, lastReceived)))
          return failure();
        Ends &ends = messages[{recv.getQueue(), recv.getSeq()}];
        if (ends.recv)
          return recv.emitOpError()
                 << "receives seq " << recv.getSeq() << " of queue "
                 << recv.getQueue() << " again, which '" << ends.receiver
                 << "' receives";
        ends.recv = recv;
        ends.receiver = program.name;
        if (failed(checkAwaited(recv.getFuture())))
          return failure();
      }
    }
    return success();
  }

  /// What only an await of the same block may use: nothing else waits.
  LogicalResult checkAwaited(Value pending) {
    Operation *made = pending.getDefiningOp();
    for (Operation *user : pending.getUsers())
      if (!isa<AwaitOp>(user) || user->getBlock() != made->getBlock()) {
        InFlightDiagnostic diag =
            user->emitOpError()
            << "uses what only a baechi.await in the step itself may use, a "
            << pending.getType();
        diag.attachNote(made->getLoc()) << "which begins here";
        return failure();
      }
    return success();
  }

  LogicalResult checkEnds() {
    llvm::DenseMap<int64_t, std::pair<StringRef, StringRef>> pairOf;
    for (auto &[key, ends] : messages) {
      auto [queue, seq] = key;
      if (!ends.recv)
        return ends.send.emitOpError()
               << "from '" << ends.sender << "' to '" << ends.send.getTo()
               << "' is never received: '" << ends.send.getTo()
               << "' has no recv of queue " << queue << " seq " << seq;
      if (!ends.send)
        return ends.recv.emitOpError()
               << "on '" << ends.receiver << "' waits for ever: '"
               << ends.recv.getFrom() << "' has no send of queue " << queue
               << " seq " << seq;
      if (ends.send.getTo() != ends.receiver ||
          ends.recv.getFrom() != ends.sender) {
        InFlightDiagnostic diag =
            ends.send.emitOpError()
            << "from '" << ends.sender << "' to '" << ends.send.getTo()
            << "' meets a recv on '" << ends.receiver << "' from '"
            << ends.recv.getFrom() << "': queue " << queue << " seq " << seq;
        diag.attachNote(ends.recv.getLoc()) << "the other end";
        return failure();
      }
      Type sent = ends.send.getValue().getType();
      Type received = ends.recv.getFuture().getType().getValueType();
      if (sent != received) {
        InFlightDiagnostic diag = ends.send.emitOpError()
                                  << "of " << sent << " on '" << ends.sender
                                  << "' meets a recv of " << received << " on '"
                                  << ends.receiver << "': queue " << queue
                                  << " seq " << seq;
        diag.attachNote(ends.recv.getLoc()) << "the other end";
        return failure();
      }
      auto [it, first] =
          pairOf.try_emplace(queue, std::pair(ends.sender, ends.receiver));
      if (!first && it->second != std::pair(ends.sender, ends.receiver))
        return ends.send.emitOpError()
               << "from '" << ends.sender << "' to '" << ends.receiver
               << "' uses queue " << queue << ", which leads from '"
               << it->second.first << "' to '" << it->second.second << "'";
    }
    return success();
  }

  LogicalResult checkOrder(ArrayRef<DeviceProgram> programs) {
    llvm::MapVector<Operation *, int64_t> waits;
    llvm::DenseMap<Operation *, SmallVector<Operation *, 2>> next;
    auto addEdge = [&](Operation *from, Operation *to) {
      next[from].push_back(to);
      ++waits[to];
    };
    for (DeviceProgram program : programs) {
      Operation *previous = nullptr;
      for (Operation &op : program.step.getBody().front()) {
        waits.try_emplace(&op, 0);
        if (previous)
          addEdge(previous, &op);
        previous = &op;
      }
    }
    for (auto &[key, ends] : messages) {
      for (Operation *await : ends.recv.getFuture().getUsers())
        addEdge(ends.send, await);
      for (Operation *await : ends.send.getToken().getUsers())
        addEdge(ends.recv, await);
    }
    SmallVector<Operation *> ready;
    size_t done = 0;
    for (auto &[op, count] : waits)
      if (count == 0)
        ready.push_back(op);
    while (!ready.empty()) {
      Operation *op = ready.pop_back_val();
      ++done;
      for (Operation *successor : next[op])
        if (--waits[successor] == 0)
          ready.push_back(successor);
    }
    if (done == waits.size())
      return success();
    // The first await that never ends, and what it waits for.
    for (auto &[op, count] : waits) {
      auto await = dyn_cast<AwaitOp>(op);
      if (count == 0 || !await)
        continue;
      for (auto &[key, ends] : messages) {
        bool forReceive = ends.recv.getFuture() == await.getSource();
        bool forSend = ends.send.getToken() == await.getSource();
        Operation *other =
            forReceive ? ends.send.getOperation() : ends.recv.getOperation();
        if ((!forReceive && !forSend) || waits[other] == 0)
          continue;
        InFlightDiagnostic diag =
            await.emitOpError()
            << "on '" << (forReceive ? ends.receiver : ends.sender)
            << "' waits in a circle for queue " << key.first << " seq "
            << key.second << " of '"
            << (forReceive ? ends.sender : ends.receiver) << "'";
        diag.attachNote(other->getLoc())
            << "the other end comes after a wait for this device";
        return failure();
      }
    }
    llvm_unreachable("every circle leads through an await of a message");
  }

  llvm::MapVector<std::pair<int64_t, int64_t>, Ends> messages;
};
} // namespace
