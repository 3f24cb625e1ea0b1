//===- PartitionLoops.cpp - Steps of the blocks of loops -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/ExactSums.h"
#include "Baechi/Dialect/Outside.h"
#include "Baechi/Transforms/Loops/Passes.h"
#include "BlockWriter.h"
#include "Bounds.h"
#include "PositionChecks.h"
#include "SerialLoops.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/StringExtras.h"

namespace baechi {
#define GEN_PASS_DEF_PARTITIONLOOPS
#include "Baechi/Transforms/Loops/Passes.h.inc"
} // namespace baechi

using namespace mlir;
using namespace baechi;

namespace {
/// A loop of the function's own that runs in blocks.
struct InBlocks {
  LoopModel model;
  BlockLayout layout;
};

class Partitioner {
public:
  Partitioner(func::FuncOp function, unsigned workers, bool serialFallback,
              StringRef serialWord, bool checkPositions)
      : function(function), workers(workers), serialFallback(serialFallback),
        serialWord(serialWord), checkPositions(checkPositions),
        checks(function), builder(function), writer(builder) {}

  LogicalResult run() {
    if (failed(checkForm()) || failed(chooseBlocks()) || failed(open()))
      return failure();
    for (Operation &op : function.front().without_terminator()) {
      auto found = inBlocks.find(&op);
      LogicalResult written =
          found == inBlocks.end()
              ? writer.write(&op)
              : writeBlocks(cast<ForeachOp>(op), found->second.model,
                            found->second.layout, number++, writer, builder);
      if (failed(written))
        return made.erase(), failure();
    }
    close();
    return success();
  }

private:
  LogicalResult checkForm();
  LogicalResult chooseBlocks();
  std::optional<InBlocks> layOutLoop(ForeachOp op, std::string &why);
  LogicalResult writeChecks();
  void tell(ForeachOp op, const InBlocks &blocks);
  LogicalResult open();
  void close();

  func::FuncOp function;
  unsigned workers;
  bool serialFallback;
  StringRef serialWord; ///< what asks for it
  bool checkPositions;
  PositionChecks checks;
  OpBuilder builder;
  TensorWriter writer;
  llvm::DenseMap<Operation *, InBlocks> inBlocks;
  unsigned number = 0; ///< of the next loop
  func::FuncOp made;
};
} // namespace

//===----------------------------------------------------------------------===//
// Which loops run in blocks
//===----------------------------------------------------------------------===//

std::optional<InBlocks> Partitioner::layOutLoop(ForeachOp op,
                                                std::string &why) {
  if (op->getParentOp() != function) {
    why = "it is within another operation: blocks are of loops that are the "
          "function's own; make the loop around it one of its keys";
    return std::nullopt;
  }
  for (ValueRange range : {op.getKeyArrays(), op.getValues()})
    for (Value array : range)
      if (cast<MemRefType>(array.getType()).isDynamicDim(0)) {
        why = "how many entries it has is not known before the run: give key "
              "arrays and values fixed sizes";
        return std::nullopt;
      }
  for (unsigned key = 0; key < op.getNumKeys(); ++key) {
    int64_t lower = op.getLowers()[key], upper = op.getUppers()[key];
    bool isOpen =
        lower == ShapedType::kDynamic || upper == ShapedType::kDynamic;
    if (!isOpen && lower < upper)
      continue;
    why = "key '" + ForeachOp::nameOfKey(key) + "' has " +
          (isOpen ? "bounds that are not known before the run: give numbers"
                  : "no values");
    return std::nullopt;
  }
  InBlocks made;
  made.model = modelOf(op);
  if (made.model.loop.arrays.size() > op.getArrays().size()) {
    why = "it uses other memory than its arrays, or calls functions (--inline)";
    return std::nullopt;
  }
  std::optional<int64_t> entries;
  for (Value array : op.getKeyArrays())
    entries = cast<MemRefType>(array.getType()).getDimSize(0);
  std::optional<BlockLayout> layout =
      layOut(made.model.loop, static_cast<int32_t>(workers), entries, why);
  if (!layout)
    return std::nullopt;
  made.layout = std::move(*layout);
  return made;
}

void Partitioner::tell(ForeachOp op, const InBlocks &blocks) {
  const loops::Schedule &schedule = blocks.layout.schedule;
  InFlightDiagnostic remark = op.emitRemark();
  remark << schemeText(blocks.model.loop, blocks.layout.verdict) << ": "
         << schedule.blocks.size() << " blocks of " << workers << " workers";
  for (auto [axis, cuts] : llvm::zip(schedule.axes, schedule.cuts)) {
    remark << "; " << loops::text(blocks.model.loop, loops::Affine{axis, 0})
           << " at ";
    llvm::interleaveComma(cuts, remark);
  }
  remark << "; " << blocks.layout.choice;
}

LogicalResult Partitioner::chooseBlocks() {
  SmallVector<ForeachOp> all, serial;
  function.walk([&](ForeachOp op) { all.push_back(op); });
  for (ForeachOp op : all) {
    // One within another runs with an entry of that, and is checked with it.
    bool isInner = op->getParentOfType<ForeachOp>();
    if (!isInner) {
      LoopModel model = modelOf(op);
      if (failed(checkBounds(op, model)))
        return failure();
      if (checkPositions)
        checks.note(op, model.loop);
    }
    std::string why;
    if (std::optional<InBlocks> blocks = layOutLoop(op, why)) {
      tell(op, *blocks);
      inBlocks.try_emplace(op, std::move(*blocks));
      continue;
    }
    if (!isInner && !serialFallback)
      return op.emitError("cannot run in blocks: ")
             << why << "; or ask for " << serialWord;
    if (!isInner)
      op.emitRemark("runs on one device: ") << why;
    // Checks of what is around it have its keys.
    if (isInner)
      lowerSerially(op);
    else
      serial.push_back(op);
  }
  if (checkPositions && failed(writeChecks()))
    return failure();
  for (ForeachOp op : serial)
    lowerSerially(op);
  return success();
}

LogicalResult Partitioner::writeChecks() {
  checks.noteOthers();
  if (failed(checks.write([&](ForeachOp op) { return inBlocks.contains(op); })))
    return failure();
  if (!checks.memory())
    return success();
  // What checks find is as sums that each block makes for itself.
  for (auto &[op, blocks] : inBlocks) {
    loops::Loop &loop = blocks.model.loop;
    loops::Access found;
    found.array = static_cast<int32_t>(loop.arrays.size());
    found.kind = loops::AccessKind::Add;
    found.combiner = "arith.maxsi";
    loop.accesses.push_back(found);
    loop.arrays.push_back({"outside", {}});
    Pieces pieces;
    pieces.kind = Pieces::Kind::Reduced;
    pieces.written = true;
    blocks.layout.pieces.push_back(pieces);
  }
  return success();
}

//===----------------------------------------------------------------------===//
// The function
//===----------------------------------------------------------------------===//

LogicalResult Partitioner::checkForm() {
  if (!function.getBody().hasOneBlock())
    return function.emitError("has several blocks; control flow must be "
                              "structured (scf.if, scf.for)");
  auto uses = SymbolTable::getSymbolUses(function,
                                         function->getParentOfType<ModuleOp>());
  if (uses && !uses->empty())
    return function.emitError("holds loops over keys and is called: inline it "
                              "first (--inline)");
  for (auto [which, argument] : llvm::enumerate(function.getArguments())) {
    Type type = argument.getType();
    auto memref = dyn_cast<MemRefType>(type);
    bool isRight =
        memref ? memref.hasStaticShape() && memref.getLayout().isIdentity()
               : isa<RankedTensorType, FloatType, IntegerType, IndexType>(type);
    if (!isRight)
      return function.emitError("argument ")
             << which << " has type " << type
             << ", and devices keep arrays of fixed sizes without a layout: "
                "give the sizes as numbers";
  }
  return checkNoAffine(function);
}

/// A number as a step has it: a tensor without dimensions.
static Type asTensor(Type type) {
  if (type.isIndex())
    type = IntegerType::get(type.getContext(), 64);
  return RankedTensorType::get({}, type);
}

LogicalResult Partitioner::open() {
  SmallVector<Type> types;
  for (Type type : function.getArgumentTypes()) {
    auto memref = dyn_cast<MemRefType>(type);
    types.push_back(memref                        ? Type(tensorOf(memref))
                    : isa<RankedTensorType>(type) ? type
                                                  : asTensor(type));
  }
  made = func::FuncOp::create(builder, function.getLoc(), function.getName(),
                              builder.getFunctionType(types, {}));
  made->setDiscardableAttrs(function->getDiscardableAttrDictionary());
  made.setVisibility(function.getVisibility());
  // Numbers are rounded as the program says, in each block and in any of its
  // forms.
  made->setAttr(BaechiDialect::kImplementation, builder.getStringAttr(kExact));
  if (ArrayAttr attributes = function.getArgAttrsAttr())
    made.setArgAttrsAttr(attributes);
  builder.setInsertionPointToStart(made.addEntryBlock());
  Location loc = function.getLoc();
  for (auto [old, given] :
       llvm::zip(function.getArguments(), made.getArguments())) {
    if (isa<MemRefType>(old.getType())) {
      writer.keep(old, given);
      continue;
    }
    Value value = given;
    if (!isa<RankedTensorType>(old.getType()))
      value = tensor::ExtractOp::create(builder, loc, given);
    if (old.getType().isIndex())
      value = arith::IndexCastOp::create(builder, loc, old.getType(), value);
    writer.values().map(old, value);
  }
  return success();
}

void Partitioner::close() {
  Operation *end = function.front().getTerminator();
  Location loc = end->getLoc();
  SmallVector<Value> results;
  SmallVector<DictionaryAttr> attributes;
  for (auto [which, result] : llvm::enumerate(end->getOperands())) {
    attributes.push_back(function.getResultAttrDict(which));
    Value value = isa<MemRefType>(result.getType())
                      ? writer.current(result)
                      : writer.values().lookupOrDefault(result);
    if (value.getType().isIndex())
      value =
          arith::IndexCastOp::create(builder, loc, builder.getI64Type(), value);
    if (!isa<RankedTensorType>(value.getType()))
      value = tensor::FromElementsOp::create(
          builder, loc, cast<RankedTensorType>(asTensor(value.getType())),
          value);
    results.push_back(value);
  }
  StringRef updated = BaechiDialect::kUpdatedBy, name = BaechiDialect::kName;
  for (auto [which, old, given] :
       llvm::enumerate(function.getArguments(), made.getArguments())) {
    if (!isa<MemRefType>(old.getType()) || writer.current(old) == given)
      continue;
    made.setArgAttr(which, updated, builder.getI64IntegerAttr(results.size()));
    Attribute called = made.getArgAttr(which, name);
    attributes.push_back(
        builder.getDictionaryAttr(called ? builder.getNamedAttr(name, called)
                                         : ArrayRef<NamedAttribute>()));
    results.push_back(writer.current(old));
  }
  if (checks.memory()) {
    attributes.push_back(builder.getDictionaryAttr(
        {builder.getNamedAttr(name, builder.getStringAttr(kOutside)),
         builder.getNamedAttr(kOutside, checks.description())}));
    results.push_back(writer.current(checks.memory()));
  }
  func::ReturnOp::create(builder, loc, results);
  made.setFunctionType(builder.getFunctionType(made.getArgumentTypes(),
                                               ValueRange(results).getTypes()));
  made.setAllResultAttrs(attributes);
  function.erase();
}

namespace {
struct PartitionLoops
    : public baechi::impl::PartitionLoopsBase<PartitionLoops> {
  using PartitionLoopsBase::PartitionLoopsBase;

  void runOnOperation() override {
    if (workers == 0 || (fallback != "refuse" && fallback != "serial")) {
      emitError(getOperation().getLoc())
          << (workers == 0
                  ? "workers is 0: give a number of at least 1"
                  : "fallback is '" + fallback + "': give refuse or serial");
      return signalPassFailure();
    }
    SmallVector<func::FuncOp> functions;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (function.walk([](ForeachOp) { return WalkResult::interrupt(); })
              .wasInterrupted())
        functions.push_back(function);
    for (func::FuncOp function : functions)
      if (failed(Partitioner(function, workers, fallback == "serial",
                             serialWord.getValue(), checkPositions)
                     .run()))
        return signalPassFailure();
  }
};
} // namespace
