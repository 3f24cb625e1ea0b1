//===- DeviceEntry.cpp - A device's step as one function --------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DeviceEntry.h"
#include "Baechi/Analysis/Parts.h"
#include "Baechi/Analysis/Program.h"
#include "Baechi/Analysis/Stashing.h"
#include "Baechi/Conversion/Devices/Manifest.h"
#include "Baechi/Conversion/Kernels/Cuda/CudaKernels.h"
#include "Baechi/Conversion/Kernels/Host/HostKernels.h"
#include "Baechi/Dialect/Carried.h"
#include "Baechi/Placement/Model/Pool.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace baechi;

namespace {

class EntryWriter {
public:
  EntryWriter(RuntimeInterface &runtime, DeviceProgram program,
              StringRef prefix, const LendableArguments &lendable)
      : runtime(runtime), program(program), prefix(prefix), lendable(lendable),
        isCuda(program.spec.getKind() == "cuda"),
        builder(OpBuilder::atBlockEnd(runtime.module.getBody())) {}

  LogicalResult write() {
    for (Operation &op : program.step.getBody().front())
      if (failed(checkPlaces(&op)))
        return failure();
    Location loc = program.step.getLoc();
    auto function = LLVM::LLVMFuncOp::create(
        builder, loc, entryName(prefix, program.name),
        LLVM::LLVMFunctionType::get(runtime.i32,
                                    {runtime.pointer, runtime.pointer}));
    Block *entry = function.addEntryBlock(builder);
    context = entry->getArgument(0);
    arena = entry->getArgument(1);
    body = &function.getBody();
    leave = new Block();
    leave->addArgument(runtime.i32, loc);
    builder.setInsertionPointToEnd(entry);

    copyConstants();
    for (Operation &op : program.step.getBody().front())
      if (failed(writeOperation(&op)))
        return failure();
    LLVM::BrOp::create(builder, loc, ValueRange(integer(loc, 0)), leave);
    body->push_back(leave);
    builder.setInsertionPointToEnd(leave);
    LLVM::ReturnOp::create(builder, loc, leave->getArgument(0));
    return success();
  }

private:
  /// What \p op reads lies in the arena, or is a constant; what it waits for
  /// is a message of this step.
  LogicalResult checkPlaces(Operation *op) {
    auto noPlace = [&](Value value) -> LogicalResult {
      return op->emitOpError() << "reads a value of type " << value.getType()
                               << " that has no place in memory; run "
                                  "--baechi-plan-memory";
    };
    if (auto await = dyn_cast<AwaitOp>(op)) {
      if (isa_and_nonnull<SendOp, RecvOp>(await.getSource().getDefiningOp()))
        return success();
      return noPlace(await.getSource());
    }
    auto isLent = [](Operation *made) {
      auto recv = dyn_cast<RecvOp>(made);
      return recv && recv.getLent();
    };
    if (isView(op) || isLent(op))
      return success();
    for (Value operand : op->getOperands()) {
      Value root = rootOf(operand);
      if (auto argument = dyn_cast<BlockArgument>(root)) {
        if (!program.step.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(),
                                                        BaechiDialect::kOffset))
          return noPlace(operand);
        continue;
      }
      auto result = cast<OpResult>(root);
      if (isLent(result.getOwner()))
        continue;
      auto offsets = result.getOwner()->getAttrOfType<DenseI64ArrayAttr>(
          BaechiDialect::kOffset);
      ElementsAttr data;
      if (offsets
              ? offsets.size() <= result.getResultNumber()
              : isCuda || !matchPattern(result.getOwner(), m_Constant(&data)))
        return noPlace(operand);
    }
    if (isa<RecvOp>(op) &&
        !op->getAttrOfType<DenseI64ArrayAttr>(BaechiDialect::kOffset))
      return noPlace(op->getResult(0));
    return success();
  }

  Value integer(Location loc, int64_t value) {
    return LLVM::ConstantOp::create(builder, loc, runtime.i32,
                                    builder.getI32IntegerAttr(value));
  }

  Value addressAt(Location loc, int64_t offset) {
    return plus(loc, arena, offset);
  }

  Value plus(Location loc, Value address, int64_t offset) {
    if (offset == 0)
      return address;
    // Arenas may exceed 2 GiB: a 64-bit index rather than a constant GEPArg.
    Value index = integer64(loc, offset);
    return LLVM::GEPOp::create(builder, loc, runtime.pointer,
                               builder.getI8Type(), address, ValueRange(index),
                               LLVM::GEPNoWrapFlags::inbounds);
  }

  /// Where a tensor lies in the arena; nullopt: it is lent, or a constant.
  std::optional<int64_t> placeOf(Value value) {
    Value root = rootOf(value);
    int64_t inRoot = offsetInRoot(value);
    if (auto argument = dyn_cast<BlockArgument>(root)) {
      auto offset = program.step.getArgAttrOfType<IntegerAttr>(
          argument.getArgNumber(), BaechiDialect::kOffset);
      return offset.getInt() + inRoot;
    }
    auto result = cast<OpResult>(root);
    auto offsets = result.getOwner()->getAttrOfType<DenseI64ArrayAttr>(
        BaechiDialect::kOffset);
    if (lent.contains(root) || !offsets)
      return std::nullopt;
    return offsets[result.getResultNumber()] + inRoot;
  }

  /// Where a lendable argument lies in this step; null: in its place.
  Value placeForStep(Location loc, Value root) {
    std::optional<unsigned> number = lendable.numberOf(program.step, root);
    if (!number)
      return Value();
    // What follows the first use is behind it: the step is one path.
    Value &place = given[root];
    if (place)
      return place;
    Value own = addressAt(loc, *placeOf(root));
    auto call =
        LLVM::CallOp::create(builder, loc, runtime.argument(),
                             ValueRange{context, integer(loc, *number), own});
    return place = call.getResult();
  }

  Value addressOf(Location loc, Value value) {
    if (Value place = placeForStep(loc, rootOf(value)))
      return plus(loc, place, offsetInRoot(value));
    if (std::optional<int64_t> place = placeOf(value))
      return addressAt(loc, *place);
    Value root = rootOf(value);
    int64_t inRoot = offsetInRoot(value);
    if (Value borrowed = lent.lookup(root))
      return plus(loc, borrowed, inRoot);
    return plus(loc, addressOfConstant(loc, root.getDefiningOp()), inRoot);
  }

  Value integer64(Location loc, int64_t value) {
    return LLVM::ConstantOp::create(builder, loc, runtime.i64,
                                    builder.getI64IntegerAttr(value));
  }

  Value addressOfConstant(Location loc, Operation *constant) {
    ElementsAttr data;
    matchPattern(constant, m_Constant(&data));
    LLVM::GlobalOp &global = globals[constant];
    if (!global) {
      OpBuilder top = OpBuilder::atBlockBegin(runtime.module.getBody());
      auto type = data.getShapedType();
      Type array = type.getElementType();
      for (int64_t size : llvm::reverse(type.getShape()))
        array = LLVM::LLVMArrayType::get(array, size);
      global = LLVM::GlobalOp::create(
          top, loc, array, /*isConstant=*/true, LLVM::Linkage::Internal,
          (prefix + "_constant_" + program.name + "_" + Twine(globals.size()))
              .str(),
          data, /*alignment=*/kAlignment);
    }
    return LLVM::AddressOfOp::create(builder, loc, global);
  }

  /// A GPU's constants are copied into its arena, once.
  void copyConstants() {
    for (Operation &op : program.step.getBody().front()) {
      auto offsets =
          op.getAttrOfType<DenseI64ArrayAttr>(BaechiDialect::kOffset);
      if (ElementsAttr data; !isCuda || !offsets || offsets.size() != 1 ||
                             !matchPattern(&op, m_Constant(&data)))
        continue;
      Location loc = op.getLoc();
      int64_t bytes = *tensorBytes(op.getResult(0).getType(), false);
      LLVM::CallOp::create(builder, loc, runtime.cudaConstant(),
                           ValueRange{addressAt(loc, offsets[0]),
                                      addressOfConstant(loc, &op),
                                      integer64(loc, bytes)});
    }
  }

  /// Leaves the step when a call of the runtime says so.
  void check(Location loc, Value status) {
    Value abort = LLVM::ICmpOp::create(builder, loc, LLVM::ICmpPredicate::ne,
                                       status, integer(loc, 0));
    auto *next = new Block();
    body->push_back(next);
    LLVM::CondBrOp::create(builder, loc, abort, leave, ValueRange(status), next,
                           ValueRange());
    builder.setInsertionPointToEnd(next);
  }

  void callMessage(Location loc, StringRef function, int64_t queue, int64_t seq,
                   Value address) {
    auto call = LLVM::CallOp::create(
        builder, loc, runtime.message(function),
        ValueRange{context, integer(loc, queue), integer(loc, seq), address});
    check(loc, call.getResult());
  }

  void callAwait(Location loc, StringRef function, int64_t queue, int64_t seq) {
    auto call = LLVM::CallOp::create(
        builder, loc, runtime.await(function),
        ValueRange{context, integer(loc, queue), integer(loc, seq)});
    check(loc, call.getResult());
  }

  /// Where a lent tensor lies is known once its sender has offered it.
  void borrow(Location loc, RecvOp recv) {
    Value place = onStack(loc, 1);
    auto call =
        LLVM::CallOp::create(builder, loc, runtime.borrow(),
                             ValueRange{context, integer(loc, recv.getQueue()),
                                        integer(loc, recv.getSeq()), place});
    check(loc, call.getResult());
    lent[recv.getFuture()] =
        LLVM::LoadOp::create(builder, loc, runtime.pointer, place);
  }

  /// Room for pointers. The stack grows in the entry block, once a step.
  Value onStack(Location loc, int64_t pointers) {
    OpBuilder first = OpBuilder::atBlockBegin(&body->front());
    Value count = LLVM::ConstantOp::create(first, loc, runtime.i64,
                                           first.getI64IntegerAttr(pointers));
    return LLVM::AllocaOp::create(first, loc, runtime.pointer, runtime.pointer,
                                  count);
  }

  void copyBytes(Location loc, Value target, Value source, int64_t count) {
    Value bytes = integer64(loc, count);
    if (isCuda)
      LLVM::CallOp::create(builder, loc, runtime.cudaCopy(),
                           ValueRange{target, source, bytes});
    else if (program.spec.getKind() == placement::kDisk)
      check(loc,
            LLVM::CallOp::create(builder, loc, runtime.diskCopy(),
                                 ValueRange{context, target, source, bytes})
                .getResult());
    else
      LLVM::MemcpyOp::create(builder, loc, target, source, bytes,
                             /*isVolatile=*/false);
  }

  LogicalResult writeOperation(Operation *op) {
    Location loc = op->getLoc();
    if (isView(op) || matchPattern(op, m_Constant()) ||
        op->hasTrait<OpTrait::IsTerminator>())
      return success();
    if (auto send = dyn_cast<SendOp>(op)) {
      callMessage(loc, "baechi_send", send.getQueue(), send.getSeq(),
                  addressOf(loc, send.getValue()));
      return success();
    }
    if (auto back = dyn_cast<GiveBackOp>(op)) {
      auto recv = back.getSource().getDefiningOp<RecvOp>();
      callAwait(loc, "baechi_give_back", recv.getQueue(), recv.getSeq());
      return success();
    }
    if (auto recv = dyn_cast<RecvOp>(op)) {
      if (recv.getLent())
        return success();
      callMessage(loc, "baechi_recv", recv.getQueue(), recv.getSeq(),
                  addressOf(loc, recv.getFuture()));
      return success();
    }
    if (auto await = dyn_cast<AwaitOp>(op)) {
      if (auto recv = await.getSource().getDefiningOp<RecvOp>();
          recv && recv.getLent())
        borrow(loc, recv);
      else if (recv)
        callAwait(loc, "baechi_await_recv", recv.getQueue(), recv.getSeq());
      else if (auto send = await.getSource().getDefiningOp<SendOp>();
               send && !isAtEndForLoan(await))
        callAwait(loc, "baechi_await_send", send.getQueue(), send.getSeq());
      return success();
    }
    if (auto await = dyn_cast<AwaitCarriedOp>(op)) {
      // By the manifest the runtime knows that it is the step before's.
      bool sends = isa_and_nonnull<SendOp>(awaitedBy(await));
      callAwait(loc, sends ? "baechi_await_send" : "baechi_await_recv",
                await.getQueue(), await.getSeq());
      return success();
    }
    if (auto copy = dyn_cast<CopyOp>(op)) {
      copyBytes(loc, addressOf(loc, copy.getTarget()),
                addressOf(loc, copy.getSource()),
                *tensorBytes(copy.getSource().getType(), false));
      return success();
    }
    return writeOperator(op);
  }

  /// Asks the host program for a function, with the places of operands and
  /// results.
  void callHost(Location loc, StringRef name, ArrayRef<Value> addresses) {
    LLVM::GlobalOp &global = names[name];
    if (!global)
      global = runtime.text(loc,
                            prefix + "_host_call_" + program.name + "_" +
                                Twine(names.size()),
                            name);
    Value places = onStack(loc, std::max<int64_t>(addresses.size(), 1));
    for (auto [i, address] : llvm::enumerate(addresses))
      LLVM::StoreOp::create(builder, loc, address,
                            plus(loc, places, i * sizeof(void *)));
    Value text = LLVM::AddressOfOp::create(builder, loc, global);
    auto call = LLVM::CallOp::create(builder, loc, runtime.hostCall(),
                                     ValueRange{context, text, places});
    check(loc, call.getResult());
  }

  /// A tensor that is kept in its operand's place is there.
  LogicalResult writeStash(Operation *stash) {
    Location loc = stash->getLoc();
    Value position = integer(loc, operators++);
    LLVM::CallOp::create(builder, loc, runtime.bracket("baechi_operator_begin"),
                         ValueRange{context, position});
    Value from = addressOf(loc, stash->getOperand(0));
    int64_t to =
        stash->getAttrOfType<DenseI64ArrayAttr>(BaechiDialect::kOffset)[0];
    if (placeOf(stash->getOperand(0)) != to)
      copyBytes(loc, addressAt(loc, to), from,
                *tensorBytes(stash->getResult(0).getType(), false));
    LLVM::CallOp::create(builder, loc, runtime.bracket("baechi_operator_end"),
                         ValueRange{context, position});
    return success();
  }

  /// Of what is put together, the parts that do not lie in their places yet.
  LogicalResult writeParts(Operation *op, ArrayRef<bool> inPlace) {
    Location loc = op->getLoc();
    Value position = integer(loc, operators++);
    LLVM::CallOp::create(builder, loc, runtime.bracket("baechi_operator_begin"),
                         ValueRange{context, position});
    int64_t whole = *placeOf(op->getResult(0));
    for (auto [operand, part, lies] :
         llvm::zip_equal(op->getOperands(), partsOf(op, symbols), inPlace))
      if (!lies)
        copyBytes(loc, addressAt(loc, whole + part), addressOf(loc, operand),
                  *tensorBytes(operand.getType(), false));
    LLVM::CallOp::create(builder, loc, runtime.bracket("baechi_operator_end"),
                         ValueRange{context, position});
    return success();
  }

  LogicalResult writeOperator(Operation *op) {
    Location loc = op->getLoc();
    if (SmallVector<bool> inPlace = partsInPlace(op, symbols);
        llvm::is_contained(inPlace, true))
      return writeParts(op, inPlace);
    if (isStash(op) && op->hasAttr(BaechiDialect::kOffset))
      return writeStash(op);
    func::FuncOp kernel = kernelOf(op);
    if (placement::isPoolKind(program.spec.getKind()) && !isStash(op))
      return op->emitOpError() << "is on '" << program.name
                               << "', a pool, which computes nothing; place it "
                                  "on another device";
    if (!kernel)
      return op->emitOpError() << "is no call of a kernel, so there is no code "
                                  "for it; run --baechi-form-kernels first";
    auto offsets = op->getAttrOfType<DenseI64ArrayAttr>(BaechiDialect::kOffset);
    bool nothing = op->getNumResults() == 0 && isHostCall(kernel);
    if (!nothing && (!offsets || offsets.size() < op->getNumResults()))
      return op->emitOpError()
             << "has no place in memory; run --baechi-plan-memory";
    SmallVector<Value> addresses;
    for (Value operand : op->getOperands())
      addresses.push_back(addressOf(loc, operand));
    if (offsets)
      for (int64_t offset : offsets.asArrayRef())
        addresses.push_back(addressAt(loc, offset));
    Value position = integer(loc, operators++);
    LLVM::CallOp::create(builder, loc, runtime.bracket("baechi_operator_begin"),
                         ValueRange{context, position});
    if (isHostCall(kernel)) {
      if (isCuda)
        return op->emitOpError() << "is a host call, which GPUs do not run; "
                                    "place it on a host device";
      callHost(loc, kernel.getName(), addresses);
      LLVM::CallOp::create(builder, loc, runtime.bracket("baechi_operator_end"),
                           ValueRange{context, position});
      return success();
    }
    // The scratch pointer is always passed; a kernel without scratch ignores
    // it.
    if (static_cast<unsigned>(offsets.size()) == op->getNumResults())
      addresses.push_back(arena);
    std::string code = isCuda ? (kernel.getName() + kCudaKernelSuffix).str()
                              : hostSymbol(kernel.getName());
    LLVM::CallOp::create(builder, loc, runtime.kernel(code, addresses.size()),
                         addresses);
    LLVM::CallOp::create(builder, loc, runtime.bracket("baechi_operator_end"),
                         ValueRange{context, position});
    return success();
  }

  RuntimeInterface &runtime;
  DeviceProgram program;
  StringRef prefix;
  const LendableArguments &lendable;
  const bool isCuda;
  OpBuilder builder;
  Value context, arena;
  Region *body = nullptr;
  Block *leave = nullptr;
  llvm::DenseMap<Value, Value> lent;  ///< by the receive: the sender's address
  llvm::DenseMap<Value, Value> given; ///< lendable arguments: their addresses
  llvm::DenseMap<Operation *, LLVM::GlobalOp> globals;
  llvm::StringMap<LLVM::GlobalOp> names; ///< of host calls
  int64_t operators = 0;
  SymbolTableCollection symbols;
};

} // namespace

LogicalResult baechi::writeEntry(RuntimeInterface &runtime,
                                 const DeviceProgram &program, StringRef prefix,
                                 const LendableArguments &lendable) {
  return EntryWriter(runtime, program, prefix, lendable).write();
}
