//===- TensorWriter.cpp - Code over memory as code over tensors -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TensorWriter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace baechi;

RankedTensorType baechi::tensorOf(MemRefType memref) {
  return RankedTensorType::get(memref.getShape(), memref.getElementType());
}

void TensorWriter::keep(Value memref, Value tensor,
                        std::optional<Window> window) {
  kept[memref] = {tensor, window};
}

/// What \p view is a part of, or the same; null for memory of its own.
static Value viewedBy(Operation *view) {
  if (auto of = dyn_cast_or_null<memref::SubViewOp>(view))
    return of.getSource();
  if (auto of = dyn_cast_or_null<memref::CastOp>(view))
    return of.getSource();
  if (auto of = dyn_cast_or_null<memref::AssumeAlignmentOp>(view))
    return of.getMemref();
  return {};
}

Value TensorWriter::rootOf(Value memref) const {
  while (Value source = viewedBy(memref.getDefiningOp()))
    memref = source;
  return memref;
}

SmallVector<Value> TensorWriter::writtenBy(Operation *op) const {
  llvm::SetVector<Value> found;
  auto add = [&](Value memref) {
    Value root = rootOf(memref);
    if (kept.contains(root))
      found.insert(root);
  };
  op->walk([&](Operation *inner) {
    auto effects = dyn_cast<MemoryEffectOpInterface>(inner);
    if (!effects)
      return;
    SmallVector<MemoryEffects::EffectInstance> all;
    effects.getEffects(all);
    for (const MemoryEffects::EffectInstance &effect : all)
      if (effect.getValue() && isa<MemoryEffects::Write>(effect.getEffect()))
        add(effect.getValue());
  });
  // In the order in which they are kept, whatever the body's order.
  SmallVector<Value> ordered;
  for (const auto &[memref, ignored] : kept)
    if (found.contains(memref))
      ordered.push_back(memref);
  return ordered;
}

//===----------------------------------------------------------------------===//
// Positions and views
//===----------------------------------------------------------------------===//

const Window *TensorWriter::windowOf(Value memref) const {
  while (Operation *op = memref.getDefiningOp()) {
    Value source = viewedBy(op);
    if (!source || isa<memref::SubViewOp>(op))
      break;
    memref = source;
  }
  auto found = kept.find(memref);
  return found != kept.end() && found->second.window ? &*found->second.window
                                                     : nullptr;
}

void TensorWriter::shift(Location loc, const Window &window,
                         MutableArrayRef<OpFoldResult> positions) {
  OpFoldResult &at = positions[window.dimension];
  auto value = [&](OpFoldResult of) {
    return getValueOrCreateConstantIndexOp(builder, loc, of);
  };
  auto number = [&](int64_t of) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, of);
  };
  if (window.sheared)
    at = OpFoldResult(arith::AddIOp::create(
        builder, loc, value(at),
        arith::MulIOp::create(builder, loc, value(positions[*window.sheared]),
                              number(window.multiple))));
  if (window.first)
    at = OpFoldResult(
        arith::AddIOp::create(builder, loc, value(at), number(-window.first)));
}

SmallVector<Value> TensorWriter::indices(Location loc, Value memref,
                                         ValueRange of) {
  SmallVector<OpFoldResult> positions;
  for (Value index : of)
    positions.push_back(mapped(index));
  if (const Window *window = windowOf(memref))
    shift(loc, *window, positions);
  return getValueOrCreateConstantIndexOp(builder, loc, positions);
}

namespace {
/// Of a subview, over tensors.
struct Slice {
  SmallVector<OpFoldResult> offsets, sizes, strides;
};
} // namespace

static Slice sliceBy(memref::SubViewOp view, const IRMapping &mapping) {
  Slice made;
  auto mapAll = [&](ArrayRef<OpFoldResult> from,
                    SmallVector<OpFoldResult> &into) {
    for (OpFoldResult each : from)
      into.push_back(isa<Value>(each) ? OpFoldResult(mapping.lookupOrDefault(
                                            cast<Value>(each)))
                                      : each);
  };
  mapAll(view.getMixedOffsets(), made.offsets);
  mapAll(view.getMixedSizes(), made.sizes);
  mapAll(view.getMixedStrides(), made.strides);
  return made;
}

Value TensorWriter::read(Value memref) {
  Operation *op = memref.getDefiningOp();
  Value source = viewedBy(op);
  if (!source)
    return current(memref);
  Value whole = read(source);
  auto view = dyn_cast<memref::SubViewOp>(op);
  if (!view)
    return whole; // a cast, of the same static shape
  Slice slice = sliceBy(view, mapping);
  if (const Window *window = windowOf(source))
    shift(view.getLoc(), *window, slice.offsets);
  return tensor::ExtractSliceOp::create(
      builder, view.getLoc(), tensorOf(view.getType()), whole, slice.offsets,
      slice.sizes, slice.strides);
}

void TensorWriter::assign(Value memref, Value tensor) {
  Operation *op = memref.getDefiningOp();
  Value source = viewedBy(op);
  if (!source) {
    kept[memref].tensor = tensor;
    return;
  }
  auto view = dyn_cast<memref::SubViewOp>(op);
  if (!view)
    return assign(source, tensor);
  Value whole = read(source);
  Slice slice = sliceBy(view, mapping);
  if (const Window *window = windowOf(source))
    shift(view.getLoc(), *window, slice.offsets);
  assign(source, tensor::InsertSliceOp::create(builder, view.getLoc(), tensor,
                                               whole, slice.offsets,
                                               slice.sizes, slice.strides));
}

//===----------------------------------------------------------------------===//
// Loops and branches
//===----------------------------------------------------------------------===//

scf::ForOp TensorWriter::openFor(Location loc, Value from, Value to, Value step,
                                 ValueRange carried, ArrayRef<Value> memrefs) {
  SmallVector<Value> inits(carried);
  for (Value memref : memrefs)
    inits.push_back(current(memref));
  auto loop = scf::ForOp::create(builder, loc, from, to, step, inits);
  // Without carried values it has been given an end.
  if (inits.empty())
    loop.getBody()->getTerminator()->erase();
  builder.setInsertionPointToStart(loop.getBody());
  for (auto [memref, held] :
       llvm::zip(memrefs, loop.getRegionIterArgs().take_back(memrefs.size())))
    kept[memref].tensor = held;
  return loop;
}

void TensorWriter::closeFor(scf::ForOp loop, ValueRange yielded,
                            ArrayRef<Value> memrefs) {
  SmallVector<Value> all(yielded);
  for (Value memref : memrefs)
    all.push_back(current(memref));
  scf::YieldOp::create(builder, loop.getLoc(), all);
  builder.setInsertionPointAfter(loop);
  for (auto [memref, result] :
       llvm::zip(memrefs, loop.getResults().take_back(memrefs.size())))
    kept[memref].tensor = result;
}

LogicalResult TensorWriter::writeFor(scf::ForOp loop) {
  SmallVector<Value> inits, memrefs = writtenBy(loop);
  for (Value init : loop.getInitArgs())
    inits.push_back(mapped(init));
  scf::ForOp made = openFor(loop.getLoc(), mapped(loop.getLowerBound()),
                            mapped(loop.getUpperBound()),
                            mapped(loop.getStep()), inits, memrefs);
  mapping.map(loop.getInductionVar(), made.getInductionVar());
  mapping.map(loop.getRegionIterArgs(),
              made.getRegionIterArgs().take_front(inits.size()));
  if (failed(write(*loop.getBody())))
    return failure();
  SmallVector<Value> yielded;
  for (Value each : loop.getBody()->getTerminator()->getOperands())
    yielded.push_back(mapped(each));
  closeFor(made, yielded, memrefs);
  mapping.map(loop.getResults(), made.getResults().take_front(inits.size()));
  return success();
}

LogicalResult TensorWriter::writeIf(
    Location loc, Value condition, TypeRange results, ArrayRef<Value> memrefs,
    llvm::function_ref<FailureOr<SmallVector<Value>>()> inside,
    llvm::function_ref<FailureOr<SmallVector<Value>>()> otherwise,
    SmallVectorImpl<Value> &made) {
  SmallVector<Type> types(results);
  SmallVector<Value> before;
  for (Value memref : memrefs) {
    before.push_back(current(memref));
    types.push_back(before.back().getType());
  }
  if (types.empty() && !otherwise)
    return success(); // has no effects
  auto branch = scf::IfOp::create(builder, loc, types, condition,
                                  /*withElseRegion=*/true);
  for (bool isThen : {true, false}) {
    Block *block = isThen ? branch.thenBlock() : branch.elseBlock();
    block->clear();
    builder.setInsertionPointToStart(block);
    for (auto [memref, held] : llvm::zip(memrefs, before))
      kept[memref].tensor = held;
    auto write = isThen ? inside : otherwise;
    SmallVector<Value> ends;
    if (write) {
      FailureOr<SmallVector<Value>> yielded = write();
      if (failed(yielded))
        return failure();
      ends = std::move(*yielded);
    }
    for (Value memref : memrefs)
      ends.push_back(current(memref));
    scf::YieldOp::create(builder, loc, ends);
  }
  builder.setInsertionPointAfter(branch);
  for (auto [memref, result] :
       llvm::zip(memrefs, branch.getResults().take_back(memrefs.size())))
    kept[memref].tensor = result;
  llvm::append_range(made, branch.getResults().take_front(results.size()));
  return success();
}

LogicalResult TensorWriter::writeIf(scf::IfOp branch) {
  auto part = [&](Block *block) {
    return [this, block]() -> FailureOr<SmallVector<Value>> {
      SmallVector<Value> ends;
      if (!block)
        return ends;
      if (failed(write(*block)))
        return failure();
      for (Value each : block->getTerminator()->getOperands())
        ends.push_back(mapped(each));
      return ends;
    };
  };
  SmallVector<Value> made;
  if (failed(writeIf(branch.getLoc(), mapped(branch.getCondition()),
                     branch.getResultTypes(), writtenBy(branch),
                     part(branch.thenBlock()), part(branch.elseBlock()), made)))
    return failure();
  if (!made.empty())
    mapping.map(branch.getResults(), made);
  return success();
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

static bool isMemory(Value value) {
  return isa<BaseMemRefType>(value.getType());
}

static bool usesMemory(Operation *op) {
  return op
      ->walk([](Operation *inner) {
        return llvm::any_of(inner->getOperands(), isMemory) ||
                       llvm::any_of(inner->getResults(), isMemory)
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

void TensorWriter::writeDestination(Operation *op) {
  auto destination = cast<DestinationStyleOpInterface>(op);
  SmallVector<Value> operands;
  for (Value operand : op->getOperands()) {
    operands.push_back(isMemory(operand) ? read(operand) : mapped(operand));
  }
  SmallVector<Type> types;
  for (Value init : destination.getDpsInits())
    types.push_back(tensorOf(cast<MemRefType>(init.getType())));
  Operation *made = mlir::clone(builder, op, types, operands);
  for (auto [init, result] :
       llvm::zip(destination.getDpsInits(), made->getResults()))
    assign(init, result);
}

LogicalResult TensorWriter::write(Block &block) {
  for (Operation &op : block.without_terminator())
    if (failed(write(&op)))
      return failure();
  return success();
}

LogicalResult TensorWriter::write(Operation *op) {
  Location loc = op->getLoc();
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](memref::LoadOp load) -> LogicalResult {
        Value from = read(load.getMemRef());
        mapping.map(load.getResult(),
                    tensor::ExtractOp::create(
                        builder, loc, from,
                        indices(loc, load.getMemRef(), load.getIndices())));
        return success();
      })
      .Case([&](memref::StoreOp store) -> LogicalResult {
        Value into = read(store.getMemRef());
        assign(store.getMemRef(),
               tensor::InsertOp::create(
                   builder, loc, mapped(store.getValueToStore()), into,
                   indices(loc, store.getMemRef(), store.getIndices())));
        return success();
      })
      .Case([&](memref::CopyOp copy) -> LogicalResult {
        assign(copy.getTarget(), read(copy.getSource()));
        return success();
      })
      .Case<memref::AllocOp, memref::AllocaOp>([&](auto made) -> LogicalResult {
        MemRefType type = made.getType();
        if (!type.hasStaticShape() || !type.getLayout().isIdentity())
          return op->emitOpError("is of no fixed size, or has a layout: give "
                                 "it the sizes as numbers");
        keep(made.getResult(),
             tensor::EmptyOp::create(builder, loc, type.getShape(),
                                     type.getElementType()));
        return success();
      })
      .Case([&](memref::DimOp dim) -> LogicalResult {
        auto type = dyn_cast<MemRefType>(dim.getSource().getType());
        std::optional<int64_t> at = dim.getConstantIndex();
        if (!type || !at || type.isDynamicDim(*at))
          return op->emitOpError("is of no fixed size: give the sizes as "
                                 "numbers");
        mapping.map(dim.getResult(), arith::ConstantIndexOp::create(
                                         builder, loc, type.getDimSize(*at))
                                         .getResult());
        return success();
      })
      .Case([&](memref::SubViewOp view) -> LogicalResult {
        if (view.getType().hasStaticShape())
          return success(); // read and written where it is used
        return op->emitOpError("is of no fixed size: give the sizes as "
                               "numbers");
      })
      .Case([&](memref::CastOp cast) -> LogicalResult {
        auto from = dyn_cast<MemRefType>(cast.getSource().getType());
        auto to = dyn_cast<MemRefType>(cast.getType());
        if (from && to && from.getShape() == to.getShape())
          return success();
        return op->emitOpError("is of no fixed size: give the sizes as "
                               "numbers");
      })
      .Case<memref::DeallocOp, memref::AssumeAlignmentOp>(
          [&](auto) { return success(); })
      .Default([&](Operation *) -> LogicalResult {
        // Memory that a loop carries or a branch gives may be any.
        bool ofValues = !llvm::any_of(op->getOperands(), isMemory) &&
                        !llvm::any_of(op->getResults(), isMemory);
        if (auto loop = dyn_cast<scf::ForOp>(op); loop && ofValues)
          return writeFor(loop);
        if (auto branch = dyn_cast<scf::IfOp>(op); branch && ofValues)
          return writeIf(branch);
        if (!usesMemory(op) && isMemoryEffectFree(op))
          return builder.clone(*op, mapping), success();
        if (isa<DestinationStyleOpInterface>(op) && op->getNumResults() == 0)
          return writeDestination(op), success();
        return op->emitOpError(
            "has no form over tensors: loops run on devices with loads and "
            "stores of memref, linalg, scf.for and scf.if, subviews and copies "
            "(--lower-affine, --convert-vector-to-scf and --inline come "
            "first)");
      });
}
