//===- CarryParameters.cpp - Parameters sent when they are new -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/InPlace.h"
#include "Baechi/Analysis/Program.h"
#include "Baechi/Transforms/Replicas/Passes.h"
#include "Messages.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/IR/Remarks.h"
#include <map>

namespace baechi {
#define GEN_PASS_DEF_CARRYPARAMETERS
#include "Baechi/Transforms/Replicas/Passes.h.inc"
} // namespace baechi

using namespace mlir;
using namespace baechi;

static Operation *earlier(Operation *a, Operation *b) {
  return !a || b->isBeforeInBlock(a) ? b : a;
}

namespace {
/// Rewrites one message of an argument.
class Carrier {
public:
  explicit Carrier(const MessageEnds &ends)
      : send(ends.send), recv(ends.recv), sender(ends.sender),
        receiver(ends.receiver), builder(send.getContext()) {}

  /// False, and nothing was changed, where it stays as it is.
  bool carry() {
    auto argument = dyn_cast<BlockArgument>(send.getValue());
    if (!argument || !findReaders())
      return false;
    SmallVector<InPlaceUpdate> updates =
        updatesInPlace(sender, argument.getArgNumber());
    if (updates.empty())
      return false;
    carrySend(argument, updates);
    carryRecv(argument);
    return true;
  }

private:
  /// What reads the tensor where it arrives; false where it goes on from there,
  /// or nobody does.
  bool findReaders() {
    for (Operation *user : recv.getFuture().getUsers())
      if (auto await = dyn_cast<AwaitOp>(user)) {
        firstAwait = earlier(firstAwait, await);
        for (Operation *reader : readersOf(await.getValue(), nullptr)) {
          if (isa<SendOp>(reader))
            return false;
          if (!lastReader || lastReader->isBeforeInBlock(reader))
            lastReader = reader;
        }
      }
    return lastReader &&
           llvm::none_of(
               receiver.front().getTerminator()->getOperands(),
               [&](Value value) { return rootOf(value) == recv.getFuture(); });
  }

  /// After the update, and what has been sent is there until the next one.
  void carrySend(BlockArgument argument, ArrayRef<InPlaceUpdate> updates) {
    Operation *first = updates.front().updater;
    for (const InPlaceUpdate &update : updates)
      first = earlier(first, update.updater);
    builder.setInsertionPoint(first);
    AwaitCarriedOp::create(builder, send.getLoc(), send.getQueueAttr(),
                           send.getSeqAttr());
    const InPlaceUpdate &last = updates.back();
    for (Operation *await :
         llvm::make_early_inc_range(send.getToken().getUsers()))
      await->erase();
    send->moveAfter(last.updater);
    builder.setInsertionPoint(send);
    auto by = sender.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(),
                                                   BaechiDialect::kUpdatedBy);
    send.getValueMutable().assign(
        viewed(sender.front().getTerminator()->getOperand(by.getInt())));
    send.setLent(false);
    send->setAttr(kCarried, builder.getI64IntegerAttr(argument.getArgNumber()));
    if (Attribute made = last.updater->getAttr(BaechiDialect::kOperator))
      send->setAttr(BaechiDialect::kOperator, made);
    if (last.result)
      send->setAttr(BaechiDialect::kOutput,
                    builder.getI64IntegerAttr(last.result));
  }

  /// What is returned, as it is seen here.
  Value viewed(Value value) {
    SmallVector<Operation *> views;
    for (Operation *op = value.getDefiningOp(); isView(op);
         op = op->getOperand(0).getDefiningOp())
      views.push_back(op);
    IRMapping mapping;
    for (Operation *view : llvm::reverse(views))
      builder.clone(*view, mapping);
    return mapping.lookupOrDefault(value);
  }

  /// Into an argument that readers find the value in.
  void carryRecv(BlockArgument argument) {
    NamedAttrList attrs;
    attrs.set(
        BaechiDialect::kArgument,
        sender.getArgAttr(argument.getArgNumber(), BaechiDialect::kArgument));
    attrs.set(kMirror, builder.getUnitAttr());
    if (Attribute name = recv->getAttr(BaechiDialect::kName))
      attrs.set(BaechiDialect::kName, name);
    unsigned number = receiver.getNumArguments();
    (void)receiver.insertArgument(number, argument.getType(),
                                  attrs.getDictionary(builder.getContext()),
                                  argument.getLoc());
    Value mirror = receiver.getArgument(number);
    builder.setInsertionPoint(firstAwait);
    AwaitCarriedOp::create(builder, recv.getLoc(), recv.getQueueAttr(),
                           recv.getSeqAttr());
    for (Operation *user :
         llvm::make_early_inc_range(recv.getFuture().getUsers())) {
      if (auto await = dyn_cast<AwaitOp>(user))
        await.getValue().replaceAllUsesWith(mirror);
      user->erase();
    }
    recv->moveAfter(lastReader);
    recv.setLent(false);
    recv->setAttr(kCarried, builder.getI64IntegerAttr(number));
  }

  SendOp send;
  RecvOp recv;
  func::FuncOp sender, receiver;
  OpBuilder builder;
  Operation *firstAwait = nullptr, *lastReader = nullptr;
};

struct CarryParameters
    : public baechi::impl::CarryParametersBase<CarryParameters> {
  void runOnOperation() override {
    auto order = getOperation()->getAttrOfType<StringAttr>(kExchange);
    if (!order)
      return markAllAnalysesPreserved();
    FailureOr<SmallVector<DeviceProgram>> programs =
        devicePrograms(getOperation());
    if (failed(programs))
      return signalPassFailure();
    for (DeviceProgram program : *programs)
      if (program.spec.getKind() != "host") {
        emitError(program.module.getLoc())
            << "the exchange '" << order.getValue()
            << "' is between host devices, and '" << program.name
            << "' is of kind '" << program.spec.getKind() << "'";
        return signalPassFailure();
      }
    bool isAny = false;
    for (auto &[tag, ends] : messagesOf(*programs))
      isAny |= Carrier(ends).carry();
    renumber(*programs);
    if (isAny) {
      freeMessages(*programs);
      for (DeviceProgram program : *programs) {
        joinArguments(program.step);
        viewSlices(program.step);
        delayJoins(program.step.front());
      }
      placeAroundReaders(messagesOf(*programs));
    }
    if (!isAny && hasPriorities(order))
      setPriorities(*programs);
    if (isAny && failed(chooseOrder(order)))
      signalPassFailure();
  }

private:
  /// Else what was ready first goes first.
  static bool hasPriorities(StringAttr order) {
    return order.getValue() == "p3" || order.getValue() == "tictac";
  }

  /// Messages by urgency, or as they are offered where that is predicted to be
  /// faster; gradients where they are planned, or as early as they can be.
  LogicalResult chooseOrder(StringAttr asked) {
    ModuleOp module = getOperation();
    auto fifo = StringAttr::get(&getContext(), "fifo");
    SmallVector<StringAttr, 2> orders{asked};
    if (asked != fifo)
      orders.push_back(fifo);
    OwningOpRef<ModuleOp> best;
    std::map<StringRef, int64_t> periods;
    int64_t shortest = std::numeric_limits<int64_t>::max();
    for (StringAttr order : orders)
      for (bool early : {false, true}) {
        OwningOpRef<ModuleOp> tried = module.clone();
        FailureOr<int64_t> period = ordered(*tried, order, early);
        if (failed(period))
          return failure();
        auto &least = periods.try_emplace(order, *period).first->second;
        least = std::min(least, *period);
        if (best && *period >= shortest)
          continue;
        shortest = *period;
        best = std::move(tried);
      }
    if ((*best)->getAttr(kExchange) != asked)
      remark::missed(module.getLoc(), remark::RemarkOpts::name("fifo-is-faster")
                                          .category("baechi-carry-parameters"))
          << remark::metric("Order", asked.getValue())
          << remark::metric("PredictedNs", periods[asked])
          << remark::metric("FifoNs", periods[fifo]);
    module->setAttrs((*best)->getAttrDictionary());
    module.getBodyRegion().takeBody(best->getBodyRegion());
    return success();
  }

  /// The period of \p module's steps, once updates are where it is shortest.
  static FailureOr<int64_t> ordered(ModuleOp module, StringAttr order,
                                    bool early) {
    FailureOr<SmallVector<DeviceProgram>> programs = devicePrograms(module);
    if (failed(programs))
      return failure();
    if (early)
      (void)sendEarly(*programs);
    module->setAttr(kExchange, order);
    if (order.getValue() == "fifo")
      module->removeAttr(kSliceBytes);
    if (hasPriorities(order))
      setPriorities(*programs);
    return orderUpdates(module, *programs);
  }

  /// What is put together of copies is so where it is first read: not before
  /// what the step could compute without it, as long as no part is overwritten.
  static void delayJoins(Block &body) {
    llvm::DenseSet<Operation *> updaters;
    auto step = cast<func::FuncOp>(body.getParentOp());
    for (const InPlaceUpdate &update : inPlaceUpdates(step))
      updaters.insert(update.updater);
    auto isCopy = [&](Value value) {
      auto argument = dyn_cast<BlockArgument>(value);
      return argument && step.getArgAttr(argument.getArgNumber(), kMirror);
    };
    SmallVector<Operation *> joins;
    for (Operation &op : body)
      if (isa<func::CallOp>(op) && llvm::any_of(op.getOperands(), isCopy) &&
          llvm::all_of(op.getOperands(), llvm::IsaPred<BlockArgument>))
        joins.push_back(&op);
    for (Operation *join : llvm::reverse(joins)) {
      Operation *before = nullptr;
      auto stopAt = [&](Operation *op) {
        if (op != join && (!before || op->isBeforeInBlock(before)))
          before = op;
      };
      for (Operation *user : join->getUsers())
        stopAt(body.findAncestorOpInBlock(*user));
      for (Value operand : join->getOperands())
        for (Operation *reader : readersOf(operand, nullptr))
          if (updaters.contains(reader) && join->isBeforeInBlock(reader))
            stopAt(reader);
      if (before)
        join->moveBefore(before);
    }
  }

  /// The plan's times are of another order: a buffer that was used again by
  /// them would make a device wait. So what is sent stays where it is, and
  /// there is room for what is received from the step's beginning.
  static void freeMessages(ArrayRef<DeviceProgram> programs) {
    for (DeviceProgram program : programs) {
      Block &body = program.step.front();
      SmallVector<RecvOp> received;
      for (Operation &op : body)
        if (auto recv = dyn_cast<RecvOp>(op);
            recv && !recv.getLent() && !op.hasAttr(kCarried))
          received.push_back(recv);
        else if (auto send = dyn_cast<SendOp>(op); send && !send.getLent())
          send.setStart(0), send.setEnd(0);
      for (RecvOp recv : llvm::reverse(received)) {
        if (recv != &body.front())
          recv->moveBefore(&body.front());
        recv.setStart(0), recv.setEnd(0);
      }
    }
  }

  /// Numbers from 0 without gaps: those of this step as they were, and then
  /// those that are carried, which are in no order.
  void renumber(ArrayRef<DeviceProgram> programs) {
    Messages messages = messagesOf(programs);
    std::map<int64_t, SmallVector<std::pair<bool, int64_t>>> queues;
    for (auto &[tag, ends] : messages)
      queues[tag.first].emplace_back(ends.send->hasAttr(kCarried), tag.second);
    Builder builder(&getContext());
    for (auto &[queue, list] : queues) {
      llvm::sort(list);
      for (auto [seq, old] : llvm::enumerate(list)) {
        MessageEnds &ends = messages[{queue, old.second}];
        IntegerAttr number = builder.getI64IntegerAttr(seq);
        ends.send.setSeqAttr(number);
        ends.recv.setSeqAttr(number);
        for (AwaitCarriedOp await : {ends.sendAwait, ends.recvAwait})
          if (await)
            await.setSeqAttr(number);
      }
    }
  }
};
} // namespace
