//===- CarriedMessages.cpp - Messages across the step's border -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CarriedMessages.h"
#include "Baechi/Analysis/Program.h"

using namespace mlir;
using namespace baechi;

using CarriedTag = std::pair<int64_t, int64_t>;

CarriedAwaits baechi::carriedAwaitsOf(const DeviceProgram &program) {
  CarriedAwaits awaits;
  func::FuncOp step = program.step;
  for (auto await : step.getBody().getOps<AwaitCarriedOp>())
    awaits[{await.getQueue(), await.getSeq()}].push_back(await);
  return awaits;
}

LogicalResult baechi::verifyAwaitCarried(AwaitCarriedOp await,
                                         const DeviceProgram &program) {
  if (awaitedBy(await))
    return success();
  return await.emitOpError()
         << "on '" << program.name << "' waits for queue " << await.getQueue()
         << " seq " << await.getSeq()
         << ", which the device neither sends nor receives for the next step";
}

/// One await in the block, before \p end.
static LogicalResult checkAwaited(Operation *end, const DeviceProgram &program,
                                  CarriedTag tag, StringRef text) {
  SmallVector<AwaitCarriedOp, 1> awaits = carriedAwaitsOf(program).lookup(tag);
  if (awaits.size() == 1 && awaits.front()->isBeforeInBlock(end))
    return success();
  InFlightDiagnostic diag = end->emitOpError()
                            << "on '" << program.name << "' carries " << text
                            << " into the next step, which awaits it "
                            << awaits.size()
                            << " times; one baechi.await_carried stands before";
  for (AwaitCarriedOp await : awaits)
    diag.attachNote(await.getLoc()) << "an await";
  return failure();
}

LogicalResult baechi::verifyCarried(SendOp send, const DeviceProgram &sender,
                                    RecvOp recv, const DeviceProgram &receiver,
                                    StringRef text) {
  std::optional<int64_t> from = carriedArgument(send),
                         to = carriedArgument(recv);
  if (!from && !to)
    return success();
  auto refuse = [&](Operation *end, Operation *other, const Twine &why) {
    InFlightDiagnostic diag = end->emitOpError() << why << ": " << text;
    diag.attachNote(other->getLoc()) << "the other end";
    return failure();
  };
  if (!from || !to)
    return refuse(send, recv,
                  "and its recv differ in whether the next step awaits the "
                  "message ('baechi.carried')");
  if (send.getLent() || recv.getLent())
    return refuse(send, recv, "lends what the next step awaits");
  CarriedTag tag{send.getQueue(), send.getSeq()};
  if (failed(checkAwaited(send, sender, tag, text)) ||
      failed(checkAwaited(recv, receiver, tag, text)))
    return failure();
  func::FuncOp owner = sender.step, reader = receiver.step;
  auto updatedBy = uint64_t(*from) < owner.getNumArguments()
                       ? owner.getArgAttrOfType<IntegerAttr>(
                             *from, BaechiDialect::kUpdatedBy)
                       : IntegerAttr();
  if (!updatedBy || rootOf(owner.front().getTerminator()->getOperand(
                        updatedBy.getInt())) != rootOf(send.getValue()))
    return refuse(send, recv,
                  "carries no next value of argument " + Twine(*from));
  if (uint64_t(*to) >= reader.getNumArguments() ||
      !reader.getArgAttr(*to, kMirror) ||
      reader.getArgAttr(*to, BaechiDialect::kArgument) !=
          owner.getArgAttr(*from, BaechiDialect::kArgument) ||
      reader.getArgumentTypes()[*to] !=
          recv.getFuture().getType().getValueType())
    return refuse(recv, send,
                  "fills argument " + Twine(*to) +
                      ", which is no copy of what is sent");
  return success();
}
