//===- RaiseLoops.cpp - Loops of scf and affine become foreach -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Transforms/Loops/Passes.h"
#include "Nest.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "llvm/ADT/SetVector.h"

namespace baechi {
#define GEN_PASS_DEF_RAISELOOPS
#include "Baechi/Transforms/Loops/Passes.h.inc"
} // namespace baechi

using namespace mlir;
using namespace baechi;

namespace {
/// What a memref is a view of.
Value rootOf(Value memref) {
  while (auto view = memref.getDefiningOp<ViewLikeOpInterface>())
    memref = view.getViewSource();
  return memref;
}

/// Arguments of a function are taken not to overlap, as in the affine passes.
bool mayOverlap(Value a, Value b) {
  a = rootOf(a);
  b = rootOf(b);
  if (a == b)
    return true;
  auto isDistinct = [](Value of) {
    if (auto argument = dyn_cast<BlockArgument>(of))
      return argument.getOwner()->isEntryBlock() &&
             isa<FunctionOpInterface>(argument.getOwner()->getParentOp());
    return isa<memref::AllocOp, memref::AllocaOp, memref::GetGlobalOp>(
        of.getDefiningOp());
  };
  auto global = a.getDefiningOp<memref::GetGlobalOp>();
  auto other = b.getDefiningOp<memref::GetGlobalOp>();
  if (global && other)
    return global.getName() == other.getName();
  return !isDistinct(a) || !isDistinct(b);
}

class Raiser {
public:
  Raiser(Nest nest, bool unordered, bool reassociate)
      : nest(std::move(nest)), outermost(this->nest.outermost()),
        innermost(this->nest.innermost()), builder(outermost),
        unordered(unordered), reassociate(reassociate) {}

  LogicalResult raise();

private:
  LogicalResult checkBody();
  LogicalResult checkMemory();
  void hoistGlobals();
  void keepSumsInMemory();
  ForeachOp makeLoop();
  void fillBody(ForeachOp made);
  Value elementsOf(Value array);
  bool isOutside(Value value) {
    return !outermost->isAncestor(value.getParentBlock()->getParentOp());
  }

  Nest nest;
  LoopLikeOpInterface outermost, innermost;
  OpBuilder builder;
  bool unordered, reassociate;
  Entries entries;
  llvm::SetVector<Value> arrays;
  SmallVector<Value> sums; ///< memory of what the loop carries
  OpFoldResult size;       ///< how many entries there are
};
} // namespace

/// What a body cannot hold, told as a remark.
LogicalResult Raiser::checkBody() {
  for (Value init : outermost.getInits())
    if (!init.getType().isIntOrIndexOrFloat()) {
      notRaised(outermost) << "it carries " << init.getType()
                           << ": keep it in memory (a memref)";
      return failure();
    }
  WalkResult walked = outermost->walk([&](Operation *op) {
    if (isa<scf::WhileOp>(op))
      return WalkResult::advance();
    bool known = isMemoryEffectFree(op) ||
                 op->hasTrait<OpTrait::HasRecursiveMemoryEffects>() ||
                 op->hasTrait<OpTrait::IsTerminator>();
    if (auto effects = dyn_cast<MemoryEffectOpInterface>(op)) {
      SmallVector<MemoryEffects::EffectInstance> all;
      effects.getEffects(all);
      known = llvm::all_of(all, [](const MemoryEffects::EffectInstance &of) {
        return of.getValue() && isa<MemRefType>(of.getValue().getType());
      });
    }
    if (!known) {
      (notRaised(outermost) << "what it does to memory is not known")
              .attachNote(op->getLoc())
          << "this may read and write any memory: inline it, or take it out";
      return WalkResult::interrupt();
    }
    bool isAffine = op->getDialect() &&
                    isa<affine::AffineDialect>(op->getDialect()) &&
                    op != outermost;
    for (Value operand : op->getOperands()) {
      if (!isOutside(operand))
        continue;
      if (isa<UnrankedMemRefType>(operand.getType())) {
        (notRaised(outermost) << "an array of it has no rank")
                .attachNote(op->getLoc())
            << "this memory has no rank: cast it to one that has";
        return WalkResult::interrupt();
      }
      bool isLevel = llvm::any_of(
          nest.levels, [&](Level &level) { return level.loop == op; });
      if (isAffine && !isLevel && operand.getType().isIndex() &&
          !getConstantIntValue(operand)) {
        (notRaised(outermost) << "it has affine operations of a number from "
                                 "outside")
                .attachNote(op->getLoc())
            << "an affine operation of a number from outside the loop: run "
               "--lower-affine first";
        return WalkResult::interrupt();
      }
      if (isa<MemRefType>(operand.getType()))
        arrays.insert(operand);
    }
    return WalkResult::advance();
  });
  return failure(walked.wasInterrupted());
}

LogicalResult Raiser::checkMemory() {
  for (auto [number, first] : llvm::enumerate(arrays))
    for (Value second : ArrayRef(arrays.getArrayRef()).drop_front(number + 1))
      if (mayOverlap(first, second) &&
          (isWritten(first, outermost) || isWritten(second, outermost))) {
        InFlightDiagnostic remark = notRaised(outermost);
        remark << "it writes memory that may be another array's, too";
        for (Value array : {first, second})
          remark.attachNote(array.getLoc()) << "this is one of the two";
        return failure();
      }
  return success();
}

/// A loop's arrays are operands.
void Raiser::hoistGlobals() {
  SmallVector<Operation *> globals;
  outermost->walk([&](memref::GetGlobalOp op) { globals.push_back(op); });
  for (Operation *op : globals)
    op->moveBefore(outermost);
}

/// What is carried from entry to entry is an array of one element.
void Raiser::keepSumsInMemory() {
  Location loc = outermost.getLoc();
  for (Value init : outermost.getInits()) {
    Value memory = memref::AllocaOp::create(
        builder, loc, MemRefType::get({}, init.getType()));
    memref::StoreOp::create(builder, loc, init, memory, ValueRange());
    sums.push_back(memory);
  }
}

/// The elements of \p array that the loop goes over, all or a slice.
Value Raiser::elementsOf(Value array) {
  const Level &level = nest.levels.back();
  auto type = cast<MemRefType>(array.getType());
  Location loc = outermost.getLoc();
  std::optional<int64_t> from = getConstantIntValue(level.lower);
  std::optional<int64_t> to = getConstantIntValue(level.upper);
  if (from == 0 && to && to == type.getDimSize(0))
    return array;
  if (from == 0 && !to)
    if (auto dim = cast<Value>(level.upper).getDefiningOp<memref::DimOp>();
        dim && dim.getSource() == array)
      return array;
  if (!size)
    size = stepsOf(builder, loc, level.lower, level.upper, /*step=*/1);
  return memref::SubViewOp::create(
      builder, loc, array, ArrayRef<OpFoldResult>{level.lower},
      ArrayRef<OpFoldResult>{size},
      ArrayRef<OpFoldResult>{builder.getIndexAttr(1)});
}

ForeachOp Raiser::makeLoop() {
  SmallVector<Value> keyArrays, values, bounds, uppersOf, all;
  SmallVector<int64_t> lowers, uppers;
  SmallVector<AffineExpr> inside;
  auto addBound = [](OpFoldResult bound, SmallVectorImpl<int64_t> &numbers,
                     SmallVectorImpl<Value> &operands) {
    std::optional<int64_t> number = getConstantIntValue(bound);
    numbers.push_back(number.value_or(ShapedType::kDynamic));
    if (!number)
      operands.push_back(cast<Value>(bound));
  };
  if (entries.keys.empty()) {
    for (Level &level : nest.levels) {
      addBound(level.lower, lowers, bounds);
      addBound(level.upper, uppers, uppersOf);
      llvm::append_range(inside, level.inside);
    }
  }
  for (const Entries::Key &key : entries.keys) {
    keyArrays.push_back(elementsOf(key.array));
    addBound(key.lower, lowers, bounds);
    addBound(key.upper, uppers, uppersOf);
    arrays.remove(key.array);
  }
  for (Value value : entries.values) {
    values.push_back(elementsOf(value));
    arrays.remove(value);
  }
  llvm::append_range(bounds, uppersOf);
  llvm::append_range(all, arrays);
  llvm::append_range(all, sums);
  IntegerSetAttr where;
  if (!inside.empty())
    where = IntegerSetAttr::get(IntegerSet::get(
        lowers.size(), 0, inside, SmallVector<bool>(inside.size(), false)));
  auto unit = [&](bool is) { return is ? builder.getUnitAttr() : UnitAttr(); };
  auto made = ForeachOp::create(
      builder, outermost.getLoc(), keyArrays, bounds, values, all,
      builder.getDenseI64ArrayAttr(lowers),
      builder.getDenseI64ArrayAttr(uppers), unit(!unordered), unit(reassociate),
      where, DenseI64ArrayAttr(), LoopVerdictAttr());
  Block &body = made.getBody().emplaceBlock();
  Location loc = outermost.getLoc();
  for (size_t key = 0; key < lowers.size(); ++key)
    body.addArgument(builder.getIndexType(), loc);
  for (Value value : values)
    body.addArgument(cast<MemRefType>(value.getType()).getElementType(), loc);
  for (Value array : all)
    body.addArgument(array.getType(), array.getLoc());
  return made;
}

void Raiser::fillBody(ForeachOp made) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&made.getBody().front());
  Location loc = outermost.getLoc();
  IRMapping mapping;
  for (auto [array, inside] : llvm::zip(arrays, made.getBodyArrays()))
    mapping.map(array, inside);
  for (auto [carried, memory] :
       llvm::zip(outermost.getRegionIterArgs(),
                 made.getBodyArrays().take_back(sums.size())))
    mapping.map(carried,
                memref::LoadOp::create(builder, loc, memory, ValueRange()));
  if (entries.keys.empty())
    for (auto [level, key] : llvm::zip(nest.levels, made.getKeys())) {
      Value counter = key;
      if (level.step != 1) {
        Value first =
            getValueOrCreateConstantIndexOp(builder, loc, level.first);
        Value step = arith::ConstantIndexOp::create(builder, loc, level.step);
        Value times = arith::MulIOp::create(builder, loc, key, step);
        counter = arith::AddIOp::create(builder, loc, first, times);
      }
      mapping.map(level.counter, counter);
    }
  // Elements of entries are the loop's own arguments.
  Value counter = nest.levels.back().counter;
  auto elementOf = [&](Operation *op) -> Value {
    if (entries.keys.empty() || op->getNumResults() != 1 ||
        !isa<memref::LoadOp, affine::AffineLoadOp>(op) ||
        !llvm::is_contained(op->getOperands(), counter))
      return {};
    Value array = isa<memref::LoadOp>(op)
                      ? cast<memref::LoadOp>(op).getMemRef()
                      : cast<affine::AffineLoadOp>(op).getMemRef();
    for (auto [key, argument] : llvm::zip(entries.keys, made.getKeys()))
      if (key.array == array)
        return argument;
    size_t value = llvm::find(entries.values, array) - entries.values.begin();
    return made.getEntryValues()[value];
  };
  SmallVector<Value> news(made.getEntryValues());
  bool isNew = false;
  innermost->walk([&](Operation *op) {
    if (Value element = elementOf(op)) {
      if (element.getType() != op->getResult(0).getType())
        element = arith::IndexCastOp::create(
            builder, loc, op->getResult(0).getType(), element);
      mapping.map(op->getResult(0), element);
    }
  });
  for (Level &level : nest.levels)
    for (Operation &op : level.loop.getLoopRegions().front()->front()) {
      if (op.hasTrait<OpTrait::IsTerminator>()) {
        if (level.loop != innermost)
          continue;
        for (auto [next, memory] : llvm::zip(
                 op.getOperands(), made.getBodyArrays().take_back(sums.size())))
          memref::StoreOp::create(builder, loc, mapping.lookupOrDefault(next),
                                  memory, ValueRange());
        continue;
      }
      bool isLevel = llvm::any_of(
          nest.levels, [&](Level &other) { return other.loop == &op; });
      auto store = llvm::find(entries.stores, &op);
      if (store != entries.stores.end()) {
        news[store - entries.stores.begin()] =
            mapping.lookupOrDefault(op.getOperand(0));
        isNew = true;
      } else if (!isLevel && !elementOf(&op)) {
        builder.clone(op, mapping);
      }
    }
  YieldOp::create(builder, loc, isNew ? ValueRange(news) : ValueRange());
  // Loads of elements within inner loops were cloned, too, with a counter that
  // there is no more.
  SmallVector<Operation *> stale;
  made.getBody().walk([&](Operation *op) {
    if (!entries.keys.empty() && llvm::is_contained(op->getOperands(), counter))
      stale.push_back(op);
  });
  for (Operation *op : stale) {
    Value element = elementOf(op);
    if (element.getType() != op->getResult(0).getType()) {
      OpBuilder at(op);
      element = arith::IndexCastOp::create(at, loc, op->getResult(0).getType(),
                                           element);
    }
    op->getResult(0).replaceAllUsesWith(element);
    op->erase();
  }
}

LogicalResult Raiser::raise() {
  hoistGlobals();
  // A loop within others that goes over entries is raised by itself.
  entries = entriesOf(nest.levels.back());
  if (!entries.keys.empty() && nest.levels.size() > 1)
    return failure();
  if (failed(checkBody()) || failed(checkMemory()))
    return failure();
  keepSumsInMemory();
  ForeachOp made = makeLoop();
  fillBody(made);
  for (auto [result, memory] : llvm::zip(outermost->getResults(), sums))
    result.replaceAllUsesWith(memref::LoadOp::create(
        builder, outermost.getLoc(), memory, ValueRange()));
  outermost->erase();
  return success();
}

namespace {
struct RaiseLoops : public baechi::impl::RaiseLoopsBase<RaiseLoops> {
  using RaiseLoopsBase::RaiseLoopsBase;

  void runOnOperation() override {
    for (Region &region : getOperation()->getRegions())
      raiseIn(region);
  }

  void raiseIn(Region &region) {
    for (Block &block : region)
      for (Operation &op : llvm::make_early_inc_range(block)) {
        if (isa<ForeachOp>(op))
          continue;
        if (isa<scf::WhileOp>(op))
          notRaised(&op) << "how often it runs is not known before: count with "
                            "'scf.for'";
        if (isa<scf::ForOp, affine::AffineForOp>(op)) {
          FailureOr<Nest> nest = nestOf(cast<LoopLikeOpInterface>(op));
          if (succeeded(nest) &&
              succeeded(Raiser(*nest, unordered, reassociate).raise()))
            continue;
        }
        for (Region &inner : op.getRegions())
          raiseIn(inner);
      }
  }
};
} // namespace
