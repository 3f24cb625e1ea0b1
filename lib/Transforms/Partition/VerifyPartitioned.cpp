//===- VerifyPartitioned.cpp - Check queues and deadlocks -*- C++ -*-===//
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
// message is copied once both ends have offered it), or, where it is lent,
// give_back -> await of the send. No cycle: every schedule of the devices ends.
// Two steps are looked at, of which a device begins the second by itself.
// A message that is carried (CarriedMessages.h) is awaited in the step after
// that which offers it, and in the first step not at all.
// Then the devices' arguments and results are those of the whole step
// (StepInterface.h). The last check, where memory was planned, is that a buffer
// is not reused while a message uses it (BufferReuse.h).
//
// Every error stands at one end of a message and has a note at the other.
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/DeviceProgram.h"
#include "Baechi/Analysis/Program.h"
#include "Baechi/Transforms/Passes.h"
#include "BufferReuse.h"
#include "CarriedMessages.h"
#include "Loans.h"
#include "StepInterface.h"
#include "llvm/ADT/MapVector.h"

namespace baechi {
#define GEN_PASS_DEF_VERIFYPARTITIONED
#include "Baechi/Transforms/Passes.h.inc"
} // namespace baechi

using namespace mlir;
using namespace baechi;

namespace {
/// A queue's number and a message's number in it.
using Tag = std::pair<int64_t, int64_t>;

/// Both ends of one message, and the positions of their devices.
struct Ends {
  SendOp send;
  RecvOp recv;
  size_t sender = 0, receiver = 0;
};

struct VerifyPartitioned
    : public baechi::impl::VerifyPartitionedBase<VerifyPartitioned> {
  void runOnOperation() override {
    messages.clear();
    FailureOr<SmallVector<DeviceProgram>> found =
        devicePrograms(getOperation());
    if (failed(found))
      return signalPassFailure();
    programs = *found;
    for (size_t device = 0; device < programs.size(); ++device)
      if (failed(collect(device)))
        return signalPassFailure();
    if (failed(checkEnds()) || failed(checkQueues()) || failed(checkOrder()) ||
        failed(checkInterface()) || failed(checkReuse()))
      return signalPassFailure();
    markAllAnalysesPreserved();
  }

private:
  StringRef name(size_t device) const { return programs[device].name; }

  /// "queue 0 seq 3", with the tensor's own name where it has one.
  std::string text(Operation *end, Tag tag) const {
    std::string text =
        ("queue " + Twine(tag.first) + " seq " + Twine(tag.second)).str();
    if (std::string of = nameOf(end); !of.empty())
      text += " ('" + of + "')";
    return text;
  }

  /// A device's step, where an end that is missing would stand.
  void noteStep(InFlightDiagnostic &diag, StringRef device) const {
    for (const DeviceProgram &program : programs)
      if (program.name == device)
        diag.attachNote(func::FuncOp(program.step).getLoc())
            << "the step of '" << device << "'";
  }

  /// Notes a device's messages.
  LogicalResult collect(size_t device) {
    WalkResult walked =
        func::FuncOp(programs[device].step).walk([&](Operation *op) {
          if (auto send = dyn_cast<SendOp>(op))
            return WalkResult(addSend(send, device));
          if (auto recv = dyn_cast<RecvOp>(op))
            return WalkResult(addRecv(recv, device));
          if (auto await = dyn_cast<AwaitCarriedOp>(op))
            return WalkResult(verifyAwaitCarried(await, programs[device]));
          return WalkResult::advance();
        });
    return success(!walked.wasInterrupted());
  }

  /// Control flow could skip or repeat a message that the other end counts on.
  LogicalResult checkStraight(Operation *op, size_t device, StringRef other) {
    if (op->getParentOp() == programs[device].step.getOperation())
      return success();
    InFlightDiagnostic diag =
        op->emitOpError() << "between '" << name(device) << "' and '" << other
                          << "' stands inside '" << op->getParentOp()->getName()
                          << "'; messages stand in the step's own block";
    noteStep(diag, other);
    return failure();
  }

  /// What only an await of the same block may use: nothing else waits.
  LogicalResult checkAwaited(Value pending) {
    Operation *made = pending.getDefiningOp();
    for (Operation *user : pending.getUsers())
      if (!isa<AwaitOp, GiveBackOp>(user) ||
          user->getBlock() != made->getBlock()) {
        InFlightDiagnostic diag =
            user->emitOpError()
            << "uses what only a baechi.await in the step itself may use, a "
            << pending.getType();
        diag.attachNote(made->getLoc()) << "which begins here";
        return failure();
      }
    return success();
  }

  LogicalResult addSend(SendOp send, size_t device) {
    if (failed(checkStraight(send, device, send.getTo())))
      return failure();
    Tag tag{send.getQueue(), send.getSeq()};
    Ends &ends = messages[tag];
    if (ends.send) {
      InFlightDiagnostic diag = send.emitOpError()
                                << "to '" << send.getTo() << "' sends "
                                << text(send, tag) << " again, which '"
                                << name(ends.sender) << "' sends to '"
                                << ends.send.getTo() << "'";
      diag.attachNote(ends.send.getLoc()) << "the first send";
      noteOther(diag, tag, ends.recv, send.getTo());
      return failure();
    }
    ends.send = send;
    ends.sender = device;
    return checkAwaited(send.getToken());
  }

  LogicalResult addRecv(RecvOp recv, size_t device) {
    if (failed(checkStraight(recv, device, recv.getFrom())))
      return failure();
    Tag tag{recv.getQueue(), recv.getSeq()};
    Ends &ends = messages[tag];
    if (ends.recv) {
      InFlightDiagnostic diag = recv.emitOpError()
                                << "from '" << recv.getFrom() << "' receives "
                                << text(recv, tag) << " again, which '"
                                << name(ends.receiver) << "' receives from '"
                                << ends.recv.getFrom() << "'";
      diag.attachNote(ends.recv.getLoc()) << "the first recv";
      noteOther(diag, tag, ends.send, recv.getFrom());
      return failure();
    }
    ends.recv = recv;
    ends.receiver = device;
    return checkAwaited(recv.getFuture());
  }

  /// The other end of a message that is found twice: \p known, or one of a
  /// device that was not walked yet.
  template <typename Op>
  void noteOther(InFlightDiagnostic &diag, Tag tag, Op known,
                 StringRef device) {
    for (const DeviceProgram &program : programs)
      if (!known && program.name == device)
        for (auto op : func::FuncOp(program.step).template getOps<Op>())
          if (Tag(op.getQueue(), op.getSeq()) == tag)
            known = op;
    if (known)
      diag.attachNote(known.getLoc()) << "the other end";
    else
      noteStep(diag, device);
  }

  LogicalResult checkEnds() {
    for (auto &[tag, ends] : messages) {
      if (!ends.recv) {
        InFlightDiagnostic diag = ends.send.emitOpError()
                                  << "from '" << name(ends.sender) << "' to '"
                                  << ends.send.getTo()
                                  << "' is never received: ";
        missing(diag, ends.send, tag, ends.send.getTo(), "recv");
        return failure();
      }
      if (!ends.send) {
        InFlightDiagnostic diag = ends.recv.emitOpError()
                                  << "on '" << name(ends.receiver) << "' from '"
                                  << ends.recv.getFrom()
                                  << "' waits for ever: ";
        missing(diag, ends.recv, tag, ends.recv.getFrom(), "send");
        return failure();
      }
      if (failed(checkPair(tag, ends)))
        return failure();
    }
    return success();
  }

  /// Says why the other end is not there.
  void missing(InFlightDiagnostic &diag, Operation *end, Tag tag,
               StringRef device, StringRef what) {
    if (llvm::none_of(programs, [&](const DeviceProgram &program) {
          return program.name == device;
        })) {
      diag << "the machine has no device '" << device << "'";
      return;
    }
    diag << "'" << device << "' has no " << what << " of " << text(end, tag);
    noteStep(diag, device);
  }

  LogicalResult checkPair(Tag tag, Ends &ends) {
    if (ends.send.getTo() != name(ends.receiver) ||
        ends.recv.getFrom() != name(ends.sender)) {
      InFlightDiagnostic diag =
          ends.send.emitOpError()
          << "from '" << name(ends.sender) << "' to '" << ends.send.getTo()
          << "' meets a recv on '" << name(ends.receiver) << "' from '"
          << ends.recv.getFrom() << "': " << text(ends.send, tag);
      diag.attachNote(ends.recv.getLoc()) << "the other end";
      return failure();
    }
    auto nameAt = [](Operation *end) {
      return end->getAttrOfType<StringAttr>(BaechiDialect::kName);
    };
    StringAttr sentName = nameAt(ends.send), wantedName = nameAt(ends.recv);
    if (sentName && wantedName && sentName != wantedName) {
      InFlightDiagnostic diag =
          ends.send.emitOpError()
          << "on '" << name(ends.sender) << "' meets a recv of '"
          << wantedName.getValue() << "' on '" << name(ends.receiver)
          << "': " << text(ends.send, tag);
      diag.attachNote(ends.recv.getLoc()) << "the other end";
      return failure();
    }
    Type sent = ends.send.getValue().getType();
    Type received = ends.recv.getFuture().getType().getValueType();
    if (sent != received) {
      InFlightDiagnostic diag = ends.send.emitOpError()
                                << "of " << sent << " on '" << name(ends.sender)
                                << "' meets a recv of " << received << " on '"
                                << name(ends.receiver)
                                << "': " << text(ends.send, tag);
      diag.attachNote(ends.recv.getLoc()) << "the other end";
      return failure();
    }
    if (failed(verifyCarried(ends.send, programs[ends.sender], ends.recv,
                             programs[ends.receiver], text(ends.send, tag))))
      return failure();
    return verifyLoan(ends.send, programs[ends.sender], ends.recv,
                      programs[ends.receiver], text(ends.send, tag));
  }

  /// A queue is one directed pair's own, and both of its ends take the
  /// messages in ascending order, but for those that the next step awaits.
  LogicalResult checkQueues() {
    llvm::DenseMap<int64_t, Ends> first;
    for (auto &[tag, ends] : messages) {
      Ends &other = first.try_emplace(tag.first, ends).first->second;
      if (other.sender == ends.sender && other.receiver == ends.receiver)
        continue;
      InFlightDiagnostic diag =
          ends.send.emitOpError()
          << "from '" << name(ends.sender) << "' to '" << name(ends.receiver)
          << "' uses queue " << tag.first << ", which leads from '"
          << name(other.sender) << "' to '" << name(other.receiver) << "'";
      diag.attachNote(ends.recv.getLoc()) << "the other end";
      diag.attachNote(other.send.getLoc()) << "the queue's other direction";
      return failure();
    }
    for (size_t device = 0; device < programs.size(); ++device) {
      llvm::DenseMap<int64_t, Operation *> last;
      for (Operation &op : programs[device].step.getBody().front()) {
        auto send = dyn_cast<SendOp>(op);
        auto recv = dyn_cast<RecvOp>(op);
        if ((!send && !recv) || op.hasAttr(kCarried))
          continue;
        Operation *&previous = last[send ? send.getQueue() : recv.getQueue()];
        if (failed(checkAscending(device, previous, &op)))
          return failure();
        previous = &op;
      }
    }
    return success();
  }

  static Tag tagOf(Operation *op) {
    if (auto send = dyn_cast<SendOp>(op))
      return {send.getQueue(), send.getSeq()};
    auto recv = cast<RecvOp>(op);
    return {recv.getQueue(), recv.getSeq()};
  }

  LogicalResult checkAscending(size_t device, Operation *previous,
                               Operation *op) {
    Tag tag = tagOf(op);
    if (!previous || tagOf(previous).second < tag.second)
      return success();
    const Ends &ends = messages[tag];
    InFlightDiagnostic diag = op->emitOpError()
                              << "on '" << name(device)
                              << "' breaks the order of queue " << tag.first
                              << " from '" << name(ends.sender) << "' to '"
                              << name(ends.receiver) << "': seq " << tag.second
                              << " after seq " << tagOf(previous).second;
    diag.attachNote(previous->getLoc())
        << "seq " << tagOf(previous).second << " comes first here";
    diag.attachNote(otherEnd(ends, op)->getLoc()) << "the other end";
    return failure();
  }

  static Operation *otherEnd(const Ends &ends, Operation *end) {
    Operation *send = SendOp(ends.send), *recv = RecvOp(ends.recv);
    return end == send ? recv : send;
  }

  /// What the sender's buffer waits for.
  static Operation *frees(const Ends &ends) {
    Operation *given = giveBackOf(ends.recv);
    return given ? given : RecvOp(ends.recv).getOperation();
  }

  /// Two steps, of which a device begins the second when its part of the first
  /// has ended and its messages were delivered (Session::steps); the first
  /// alone is a step that ends everywhere.
  LogicalResult checkOrder() {
    using Node = std::pair<Operation *, int>;
    llvm::MapVector<Node, int64_t> waits;
    llvm::DenseMap<Node, SmallVector<Node, 2>> next;
    auto addEdge = [&](Node from, Node to) {
      next[from].push_back(to);
      ++waits[to];
    };
    for (DeviceProgram program : programs) {
      Node previous{nullptr, 0};
      for (int step : {0, 1})
        for (Operation &op : program.step.getBody().front()) {
          waits.try_emplace({&op, step}, 0);
          if (previous.first)
            addEdge(previous, {&op, step});
          previous = {&op, step};
        }
    }
    auto endOf = [&](size_t device) {
      return func::FuncOp(programs[device].step).front().getTerminator();
    };
    llvm::DenseMap<Tag, SmallVector<AwaitCarriedOp, 2>> carried;
    for (const DeviceProgram &program : programs)
      for (auto &[tag, awaits] : carriedAwaitsOf(program))
        llvm::append_range(carried[tag], awaits);
    for (auto &[tag, ends] : messages) {
      for (AwaitCarriedOp await : carried.lookup(tag)) {
        addEdge({ends.send, 0}, {await, 1});
        addEdge({ends.recv, 0}, {await, 1});
      }
      if (ends.send->hasAttr(kCarried))
        continue;
      for (int step : {0, 1}) {
        for (Operation *await : ends.recv.getFuture().getUsers())
          if (isa<AwaitOp>(await))
            addEdge({ends.send, step}, {await, step});
        for (Operation *await : ends.send.getToken().getUsers())
          addEdge({frees(ends), step}, {await, step});
        // Awaited or not, none is left at the border.
        addEdge({ends.send, step}, {endOf(ends.receiver), step});
        addEdge({frees(ends), step}, {endOf(ends.sender), step});
      }
    }
    SmallVector<Node> ready;
    size_t done = 0;
    for (auto &[node, count] : waits)
      if (count == 0)
        ready.push_back(node);
    while (!ready.empty()) {
      Node node = ready.pop_back_val();
      ++done;
      for (Node successor : next[node])
        if (--waits[successor] == 0)
          ready.push_back(successor);
    }
    if (done == waits.size())
      return success();
    // The first await that never ends, and what it waits for.
    for (auto &[node, count] : waits) {
      auto await = dyn_cast<AwaitOp>(node.first);
      if (count == 0 || !await)
        continue;
      for (auto &[tag, ends] : messages) {
        bool forReceive = ends.recv.getFuture() == await.getSource();
        bool forSend = ends.send.getToken() == await.getSource();
        Operation *other = forReceive ? ends.send.getOperation() : frees(ends);
        if ((!forReceive && !forSend) || waits[{other, node.second}] == 0)
          continue;
        InFlightDiagnostic diag =
            await.emitOpError()
            << "on '" << name(forReceive ? ends.receiver : ends.sender)
            << "' waits in a circle for " << text(other, tag) << " of '"
            << name(forReceive ? ends.sender : ends.receiver) << "'";
        diag.attachNote(other->getLoc())
            << "the other end comes after a wait for this device";
        return failure();
      }
    }
    llvm_unreachable("every circle leads through an await of a message");
  }

  /// Where the whole step is declared, the devices have what it declares.
  LogicalResult checkInterface() {
    auto whole = getOperation().lookupSymbol<func::FuncOp>(
        programs.front().step.getName());
    return whole ? verifyStepInterface(whole, programs) : success();
  }

  /// Where memory was planned, the plan holds.
  LogicalResult checkReuse() {
    llvm::DenseMap<Operation *, MessageText> texts;
    for (auto &[tag, ends] : messages) {
      Operation *send = ends.send, *recv = ends.recv;
      std::string of = text(send, tag) + " from '" + name(ends.sender).str() +
                       "' to '" + name(ends.receiver).str() + "'";
      texts[send] = {of, recv};
      texts[recv] = {of, send};
    }
    for (const DeviceProgram &program : programs)
      if (ModuleOp(program.module)->hasAttr(BaechiDialect::kArena) &&
          failed(verifyBufferReuse(program, texts)))
        return failure();
    return success();
  }

  llvm::MapVector<Tag, Ends> messages;
  SmallVector<DeviceProgram> programs;
};
} // namespace
