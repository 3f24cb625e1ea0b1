//===- BufferReuse.cpp - Are tensors overwritten too early -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BufferReuse.h"
#include "ArenaHolders.h"
#include "Baechi/Analysis/InPlace.h"
#include "Baechi/Analysis/Parts.h"
#include "Baechi/Analysis/Program.h"
#include "Baechi/Dialect/Parts.h"
#include "CarriedMessages.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace baechi;

namespace {
class ReuseChecker {
public:
  ReuseChecker(DeviceProgram program,
               const llvm::DenseMap<Operation *, MessageText> &messages)
      : program(program), messages(messages),
        arena(program.module->getAttrOfType<ArenaAttr>(BaechiDialect::kArena)) {
  }

  LogicalResult run() {
    if (arena.getLimit() > program.spec.getMemory())
      return emitError(program.module.getLoc())
             << "the arena of '" << program.name << "' may take "
             << arena.getLimit() << " bytes, the machine gives the device "
             << program.spec.getMemory() << "; run --baechi-plan-memory";
    SmallVector<std::string> names = namesOf(program.step);
    nameOperators(names);
    for (BlockArgument argument : program.step.getArguments()) {
      auto offset = program.step.getArgAttrOfType<IntegerAttr>(
          argument.getArgNumber(), BaechiDialect::kOffset);
      if (!offset)
        return emitError(argument.getLoc())
               << "argument " << argument.getArgNumber() << " on '"
               << program.name
               << "' has no 'baechi.offset'; run --baechi-plan-memory";
      offsetOf[argument] = offset.getInt();
      if (failed(checkPlace(argument.getLoc(), names[argument.getArgNumber()],
                            offset.getInt(), sizeOf(argument))) ||
          failed(
              write(program.step, argument, offset.getInt(), sizeOf(argument))))
        return failure();
    }
    // A GPU's constants are there before its first operator.
    for (Operation &op : program.step.getBody().front())
      if (op.getAttrOfType<DenseI64ArrayAttr>(BaechiDialect::kOffset) &&
          matchPattern(&op, m_Constant()))
        if (failed(writeResults(&op)))
          return failure();
    for (Operation &op : program.step.getBody().front())
      if (std::optional<int64_t> argument = carriedArgument(&op)) {
        // Of the step before.
        Value place = program.step.getArgument(*argument);
        addPending(&op, place);
        if (isa<RecvOp>(op))
          filled[place] = op.getResult(0);
      }
    for (Operation &op : program.step.getBody().front())
      if (failed(visit(&op)))
        return failure();
    return success();
  }

private:
  /// A send or a receive, and the bytes that it reads or fills.
  struct Message {
    Operation *end;
    int64_t from, bytes;
  };

  static int64_t sizeOf(Value value) {
    return tensorBytes(value.getType(), false).value_or(0);
  }

  /// Operators have the names that they have in reports and traces.
  void nameOperators(ArrayRef<std::string> names) {
    for (auto [op, name] : llvm::zip_equal(
             operatorsOf(program.step),
             llvm::drop_begin(names, program.step.getNumArguments())))
      nameOfOperator[op] = name;
  }

  std::string describe(Operation *op) const {
    if (auto it = nameOfOperator.find(op); it != nameOfOperator.end())
      return it->second;
    std::string name = nameOf(op);
    return name.empty() ? op->getName().getStringRef().str() : name;
  }

  void noteMessage(InFlightDiagnostic &diag, Operation *end) {
    const MessageText &message = messages.find(end)->second;
    diag.attachNote(end->getLoc())
        << (isa<SendOp>(end) ? "sent here" : "received here");
    diag.attachNote(message.other->getLoc()) << "the other end";
  }

  void noteWriter(InFlightDiagnostic &diag, Operation *writer) const {
    if (writer)
      diag.attachNote(writer->getLoc())
          << "'" << describe(writer) << "' holds its bytes";
  }

  LogicalResult visit(Operation *op) {
    if (auto await = dyn_cast<AwaitOp>(op)) {
      Operation *end = await.getSource().getDefiningOp();
      llvm::erase_if(pending, [&](const Message &it) { return it.end == end; });
      return success();
    }
    if (auto await = dyn_cast<AwaitCarriedOp>(op)) {
      Operation *end = awaitedBy(await);
      llvm::erase_if(pending, [&](const Message &it) { return it.end == end; });
      return success();
    }
    auto recv = dyn_cast<RecvOp>(op);
    if (isView(op) || matchPattern(op, m_Constant()) || isa<GiveBackOp>(op) ||
        (recv && recv.getLent()))
      return success();
    SmallVector<Value> reads = valuesReadBy(op);
    if (auto copy = dyn_cast<CopyOp>(op))
      reads = {copy.getSource()};
    for (Value value : reads)
      if (failed(read(op, rootOf(value))))
        return failure();
    if (auto send = dyn_cast<SendOp>(op)) {
      addPending(op, rootOf(send.getValue()));
      return checkCarried(send);
    }
    if (auto copy = dyn_cast<CopyOp>(op))
      return writeCopy(copy);
    if (op->hasTrait<OpTrait::IsTerminator>())
      return checkEnd(op);
    if (failed(writeResults(op)))
      return failure();
    if (recv)
      addPending(op, op->getResult(0));
    return success();
  }

  /// What the next step's readers await lies in the argument by then.
  LogicalResult checkCarried(SendOp send) {
    std::optional<int64_t> argument = carriedArgument(send);
    if (!argument || offsetOf.lookup(rootOf(send.getValue())) ==
                         offsetOf.lookup(program.step.getArgument(*argument)))
      return success();
    InFlightDiagnostic diag = send.emitOpError()
                              << "on '" << program.name << "' sends "
                              << messages.find(send.getOperation())->second.text
                              << " into the next step, and it does not lie in "
                                 "argument "
                              << *argument << "'s place";
    noteMessage(diag, send);
    return failure();
  }

  LogicalResult writeResults(Operation *op) {
    auto offsets = op->getAttrOfType<DenseI64ArrayAttr>(BaechiDialect::kOffset);
    auto cost = op->getAttrOfType<CostAttr>(BaechiDialect::kCost);
    int64_t scratch = cost ? cost.getScratch() : 0;
    size_t wanted = op->getNumResults() + (scratch > 0);
    if (wanted == 0)
      return success();
    if (!offsets || offsets.size() != static_cast<int64_t>(wanted))
      return emitError(op->getLoc())
             << "'" << describe(op) << "' on '" << program.name << "' has "
             << (offsets ? offsets.size() : 0)
             << " offsets in 'baechi.offset', its results and scratch need "
             << wanted << "; run --baechi-plan-memory";
    if (op->hasAttr(kJoined))
      return joinArguments(op, offsets[0]);
    if (SmallVector<bool> inPlace = partsInPlace(op, symbols);
        llvm::is_contained(inPlace, true))
      return joinParts(op, inPlace, offsets[0]);
    // Operands are read before results are written; a result may take the place
    // of one where the operator says so.
    for (OpResult result : op->getResults()) {
      int64_t from = offsets[result.getResultNumber()];
      if (failed(
              checkPlace(op->getLoc(), describe(op), from, sizeOf(result))) ||
          failed(checkOperands(op, result, from)) ||
          failed(write(op, result, from, sizeOf(result))))
        return failure();
      offsetOf[result] = from;
    }
    if (scratch > 0 && failed(checkScratch(op, offsets[wanted - 1], scratch)))
      return failure();
    // Nor did a result or the scratch write over another result.
    for (OpResult result : op->getResults())
      if (failed(read(op, result)))
        return failure();
    return success();
  }

  /// What \p root has become a part of, or itself: who holds its bytes.
  Value holderOf(Value root) const {
    for (auto it = partOf.find(root); it != partOf.end();
         it = partOf.find(root))
      root = it->second;
    return root;
  }

  /// Parts that lie in their places in the result stay readable; the others are
  /// copied into theirs.
  LogicalResult joinParts(Operation *op, ArrayRef<bool> inPlace, int64_t from) {
    Value whole = op->getResult(0);
    if (failed(checkPlace(op->getLoc(), describe(op), from, sizeOf(whole))))
      return failure();
    for (auto [operand, part, lies] :
         llvm::zip_equal(op->getOperands(), partsOf(op, symbols), inPlace)) {
      Value root = rootOf(operand);
      int64_t place = from + part, bytes = sizeOf(operand);
      if (lies && held.take(place, place + bytes, root)) {
        partOf[root] = whole;
        continue;
      }
      for (Value other : op->getOperands())
        if (auto it = offsetOf.find(rootOf(other));
            it != offsetOf.end() &&
            overlap(place, bytes, it->second, sizeOf(it->first)))
          return emitError(op->getLoc())
                 << "'" << describe(op) << "' on '" << program.name
                 << "' writes result 0 over an operand that it still reads";
      if (failed(write(op, whole, place, bytes)))
        return failure();
    }
    // Nothing else is left there: the parts are all of it.
    held.write(from, from + sizeOf(whole), whole, op);
    offsetOf[whole] = from;
    return success();
  }

  /// The arguments go on to hold their bytes: each has its own next value.
  LogicalResult joinArguments(Operation *op, int64_t from) {
    SmallVector<bool> inPlace = partsInPlace(op, symbols);
    if (inPlace.empty() || llvm::is_contained(inPlace, false))
      return emitError(op->getLoc())
             << "'" << describe(op) << "' on '" << program.name
             << "' is joined, and its operands do not lie behind each other "
                "where its result does; run --baechi-plan-memory";
    Value whole = op->getResult(0);
    joined[whole].assign(op->operand_begin(), op->operand_end());
    offsetOf[whole] = from;
    return success();
  }

  static bool overlap(int64_t a, int64_t aBytes, int64_t b, int64_t bBytes) {
    return aBytes > 0 && bBytes > 0 && a < b + bBytes && b < a + aBytes;
  }

  LogicalResult checkOperands(Operation *op, OpResult result, int64_t from) {
    for (Value value : valuesReadBy(op)) {
      Value root = rootOf(value);
      auto it = offsetOf.find(root);
      if (it == offsetOf.end() ||
          !overlap(from, sizeOf(result), it->second, sizeOf(root)) ||
          (from == it->second &&
           mayWriteInto(op, result.getResultNumber(), root, symbols)))
        continue;
      return emitError(op->getLoc())
             << "'" << describe(op) << "' on '" << program.name
             << "' writes result " << result.getResultNumber()
             << " over an operand that it still reads";
    }
    return success();
  }

  /// Scratch is nobody else's while its operator runs.
  LogicalResult checkScratch(Operation *op, int64_t from, int64_t bytes) {
    if (failed(checkPlace(op->getLoc(), describe(op), from, bytes)))
      return failure();
    for (Value value : valuesReadBy(op)) {
      Value root = rootOf(value);
      auto it = offsetOf.find(root);
      if (it != offsetOf.end() &&
          overlap(from, bytes, it->second, sizeOf(root)))
        return emitError(op->getLoc())
               << "'" << describe(op) << "' on '" << program.name
               << "' has its scratch over an operand that it reads";
    }
    return write(op, Value(), from, bytes);
  }

  LogicalResult writeCopy(CopyOp copy) {
    Value target = copy.getTarget();
    auto it = offsetOf.find(rootOf(target));
    if (it == offsetOf.end())
      return copy.emitOpError() << "writes into a constant";
    return write(copy, rootOf(copy.getSource()), it->second, sizeOf(target));
  }

  /// A buffer is inside of the arena, and aligned as generated code expects.
  LogicalResult checkPlace(Location loc, StringRef name, int64_t from,
                           int64_t bytes) const {
    if (bytes == 0)
      return success();
    if (from < 0 || bytes > arena.getBytes() || from > arena.getBytes() - bytes)
      return emitError(loc)
             << "'" << name << "' on '" << program.name << "' needs " << bytes
             << " bytes at " << from << ", its arena has " << arena.getBytes();
    if (from % kAlignment != 0)
      return emitError(loc) << "'" << name << "' on '" << program.name
                            << "' has a buffer at byte " << from
                            << ", which is no multiple of " << kAlignment;
    return success();
  }

  /// \p op writes \p root's tensor (scratch: a null value) to these bytes.
  LogicalResult write(Operation *op, Value root, int64_t from, int64_t bytes) {
    if (bytes == 0)
      return success();
    held.write(from, from + bytes, root, op);
    return checkNotPending(op, from, bytes);
  }

  void addPending(Operation *end, Value root) {
    // A host device's constants, and what is lent, lie elsewhere.
    if (auto it = offsetOf.find(root); it != offsetOf.end())
      pending.push_back({end, it->second, sizeOf(root)});
  }

  LogicalResult checkNotPending(Operation *op, int64_t from, int64_t bytes) {
    auto it = llvm::find_if(pending, [&](const Message &message) {
      return overlap(from, bytes, message.from, message.bytes);
    });
    if (it == pending.end())
      return success();
    InFlightDiagnostic diag =
        emitError(op->getLoc())
        << "'" << describe(op) << "' on '" << program.name
        << "' writes over the buffer that "
        << messages.find(it->end)->second.text
        << (isa<SendOp>(it->end) ? " still reads: its token was not awaited"
                                 : " still fills: its future was not awaited");
    noteMessage(diag, it->end);
    return failure();
  }

  /// What an argument's next value arrives in is read once it is there.
  LogicalResult checkNotFilled(Operation *op, Value root) {
    auto it = llvm::find_if(pending, [&](const Message &message) {
      return isa<RecvOp>(message.end) && isa<BlockArgument>(root) &&
             overlap(offsetOf.lookup(root), sizeOf(root), message.from,
                     message.bytes);
    });
    if (it == pending.end())
      return success();
    InFlightDiagnostic diag = emitError(op->getLoc())
                              << "'" << describe(op) << "' on '" << program.name
                              << "' reads the buffer that "
                              << messages.find(it->end)->second.text
                              << " still fills: it was not awaited";
    noteMessage(diag, it->end);
    return failure();
  }

  LogicalResult read(Operation *op, Value root) {
    if (auto parts = joined.find(root); parts != joined.end()) {
      for (Value part : parts->second)
        if (failed(read(op, part)))
          return failure();
      return success();
    }
    root = holderOf(root);
    if (failed(checkNotFilled(op, root)))
      return failure();
    auto offset = offsetOf.find(root);
    if (offset == offsetOf.end() || sizeOf(root) == 0)
      return success(); // a constant, or what holds no bytes
    if (held.holds(offset->second, root))
      return success();
    InFlightDiagnostic diag = emitError(op->getLoc())
                              << "'" << describe(op) << "' on '" << program.name
                              << "' needs a tensor that is overwritten before";
    if (Operation *producer = root.getDefiningOp())
      diag.attachNote(producer->getLoc()) << "the tensor";
    int64_t end = offset->second + std::max<int64_t>(1, sizeOf(root));
    noteWriter(diag, held.writerOf(offset->second, end));
    return failure();
  }

  /// Every argument holds its value, or its next one.
  LogicalResult checkEnd(Operation *terminator) {
    for (BlockArgument argument : program.step.getArguments()) {
      auto by = program.step.getArgAttrOfType<IntegerAttr>(
          argument.getArgNumber(), BaechiDialect::kUpdatedBy);
      Value expected =
          by ? rootOf(terminator->getOperand(by.getInt())) : Value(argument);
      if (Value next = filled.lookup(argument))
        expected = next;
      int64_t from = offsetOf.lookup(argument);
      if (sizeOf(argument) == 0 || held.holds(from, expected))
        continue;
      InFlightDiagnostic diag = emitError(argument.getLoc())
                                << "argument " << argument.getArgNumber()
                                << " on '" << program.name
                                << "' does not hold its " << (by ? "next " : "")
                                << "value at the end of the step";
      noteWriter(diag, held.writerOf(from, from + sizeOf(argument)));
      return failure();
    }
    return success();
  }

  DeviceProgram program;
  const llvm::DenseMap<Operation *, MessageText> &messages;
  ArenaAttr arena;
  ArenaHolders held;
  llvm::DenseMap<Value, int64_t> offsetOf;
  llvm::DenseMap<Operation *, std::string> nameOfOperator;
  SymbolTableCollection symbols;
  /// What parts were put together to, in place.
  llvm::DenseMap<Value, Value> partOf;
  /// What is read of arguments, in their places.
  llvm::DenseMap<Value, SmallVector<Value>> joined;
  SmallVector<Message> pending; ///< not awaited yet
  /// What arrives in arguments for the next step.
  llvm::DenseMap<Value, Value> filled;
};
} // namespace

LogicalResult baechi::verifyBufferReuse(
    DeviceProgram program,
    const llvm::DenseMap<Operation *, MessageText> &messages) {
  return ReuseChecker(program, messages).run();
}
