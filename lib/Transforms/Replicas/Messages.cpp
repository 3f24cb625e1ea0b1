//===- Messages.cpp - Messages of a partitioned step -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Priorities: P3 (Jayarajan et al., MLSys 2019) sends what the first layers of
// the next step need before what later ones do. Here a layer's position is that
// of the first operator that reads the parameter (as in TicTac, Hashemi et al.,
// MLSys 2019, a general graph has no layers).
//
//===----------------------------------------------------------------------===//

#include "Messages.h"
#include "Baechi/Analysis/InPlace.h"
#include "Baechi/Analysis/Program.h"

using namespace mlir;
using namespace baechi;

Messages baechi::messagesOf(ArrayRef<DeviceProgram> programs) {
  Messages messages;
  for (DeviceProgram program : programs)
    for (Operation &op : program.step.getBody().front())
      if (auto send = dyn_cast<SendOp>(op)) {
        MessageEnds &ends = messages[{send.getQueue(), send.getSeq()}];
        ends.send = send;
        ends.sender = program.step;
      } else if (auto recv = dyn_cast<RecvOp>(op)) {
        MessageEnds &ends = messages[{recv.getQueue(), recv.getSeq()}];
        ends.recv = recv;
        ends.receiver = program.step;
      }
  for (DeviceProgram program : programs)
    for (auto await : program.step.getBody().getOps<AwaitCarriedOp>()) {
      auto found = messages.find({await.getQueue(), await.getSeq()});
      if (found == messages.end())
        continue;
      if (found->second.sender == program.step)
        found->second.sendAwait = await;
      else if (found->second.receiver == program.step)
        found->second.recvAwait = await;
    }
  messages.remove_if(
      [](auto &entry) { return !entry.second.send || !entry.second.recv; });
  return messages;
}

void baechi::placeAroundReaders(const Messages &messages) {
  for (auto [tag, ends] : messages) {
    std::optional<int64_t> mirror = carriedArgument(ends.recv);
    if (!mirror)
      continue;
    Operation *first = nullptr, *last = nullptr;
    for (Operation *reader :
         readersOf(ends.receiver.getArgument(*mirror), nullptr)) {
      if (!first || reader->isBeforeInBlock(first))
        first = reader;
      if (!last || last->isBeforeInBlock(reader))
        last = reader;
    }
    ends.recvAwait->moveBefore(first);
    ends.recv->moveAfter(last);
  }
}

namespace {
/// Where things stand in their devices' programs.
class Urgency {
public:
  static constexpr int64_t now = -1;
  static constexpr int64_t never = std::numeric_limits<int64_t>::max();
  /// No device begins its next step before all gradients of its own parameters
  /// have arrived: they go before parameters.
  static constexpr int64_t afterThisStep = int64_t(1) << 40;

  Urgency(ArrayRef<DeviceProgram> programs) : messages(messagesOf(programs)) {
    for (DeviceProgram program : programs) {
      int64_t position = 0;
      for (Operation &op : program.step.getBody().front())
        positionOf[&op] = position++;
    }
    for (auto &[tag, ends] : messages)
      if (std::optional<int64_t> argument = carriedArgument(ends.send)) {
        int64_t used =
            std::min(firstUse(ends.sender, *argument),
                     firstUse(ends.receiver, *carriedArgument(ends.recv)));
        int64_t &first =
            needed.try_emplace({ends.sender, *argument}, used).first->second;
        first = std::min(first, used);
      }
  }

  void set() {
    SmallVector<std::pair<SendOp, int64_t>> found;
    SmallVector<int64_t> known;
    for (auto &[tag, ends] : messages) {
      std::optional<int64_t> mirror = carriedArgument(ends.recv);
      int64_t urgency = mirror
                            ? afterThisStep + firstUse(ends.receiver, *mirror)
                            : neededBy(ends);
      found.emplace_back(ends.send, urgency);
      known.push_back(urgency);
    }
    llvm::sort(known);
    known.erase(llvm::unique(known), known.end());
    for (auto [send, urgency] : found)
      send->setAttr(kPriority,
                    Builder(send.getContext())
                        .getI64IntegerAttr(llvm::lower_bound(known, urgency) -
                                           known.begin()));
  }

private:
  int64_t firstUse(func::FuncOp step, int64_t argument) const {
    int64_t first = never;
    for (Operation *reader : readersOf(step.getArgument(argument), nullptr))
      first = std::min(first, positionOf.lookup(reader));
    return first;
  }

  /// Of what is awaited in its own step.
  int64_t neededBy(const MessageEnds &message) {
    MessageEnds ends = message;
    Block &body = ends.receiver.getBody().front();
    int64_t first = never;
    SmallVector<Value> work{ends.recv.getFuture()};
    llvm::SmallPtrSet<Operation *, 16> seen;
    while (!work.empty())
      for (Operation *inner : work.pop_back_val().getUsers()) {
        Operation *user = body.findAncestorOpInBlock(*inner);
        if (!seen.insert(user).second)
          continue;
        if (isa<SendOp>(user)) {
          std::optional<int64_t> argument = carriedArgument(user);
          if (!argument)
            return now;
          first = std::min(first, needed.lookup({ends.receiver, *argument}));
        }
        llvm::append_range(work, user->getResults());
      }
    return first;
  }

  Messages messages;
  llvm::DenseMap<Operation *, int64_t> positionOf;
  /// By the owner's program and argument: its first use on any device.
  llvm::DenseMap<std::pair<Operation *, int64_t>, int64_t> needed;
};
} // namespace

void baechi::setPriorities(ArrayRef<DeviceProgram> programs) {
  Urgency(programs).set();
}
