//===- PositionChecks.cpp - Positions that data tell ---------- -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PositionChecks.h"
#include "Baechi/Dialect/Outside.h"
#include "Baechi/Loops/Schedule.h"
#include "Forms.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace baechi;

static Value number(OpBuilder &builder, Location loc, int64_t of) {
  return arith::ConstantIndexOp::create(builder, loc, of);
}

/// What an array is called where it is an argument, or one of a loop's.
static std::string nameOf(Value memory) {
  while (Operation *op = memory.getDefiningOp()) {
    if (auto view = dyn_cast<memref::SubViewOp>(op))
      memory = view.getSource();
    else if (auto cast = dyn_cast<memref::CastOp>(op))
      memory = cast.getSource();
    else
      return "memory of its own";
  }
  auto argument = cast<BlockArgument>(memory);
  Operation *parent = argument.getOwner()->getParentOp();
  if (auto loop = dyn_cast<ForeachOp>(parent)) {
    auto arrays = loop.getBodyArrays();
    size_t which = llvm::find(arrays, memory) - arrays.begin();
    return nameOf(loop.getArrays()[which]);
  }
  if (auto function = dyn_cast<func::FuncOp>(parent)) {
    unsigned which = argument.getArgNumber();
    auto name =
        function.getArgAttrOfType<StringAttr>(which, BaechiDialect::kName);
    return name ? "'" + name.str() + "'" : "'arg" + std::to_string(which) + "'";
  }
  return "memory of its own";
}

//===----------------------------------------------------------------------===//
// What is to be checked
//===----------------------------------------------------------------------===//

size_t PositionChecks::addSlot(Location loc, const Twine &before,
                               const Twine &after, ForeachOp entries) {
  Builder builder(function);
  SmallVector<int64_t> lowers, sizes;
  // Entries are numbered by their keys, if these are numbers.
  if (entries &&
      !llvm::is_contained(entries.getLowers(), ShapedType::kDynamic) &&
      !llvm::is_contained(entries.getUppers(), ShapedType::kDynamic))
    for (auto [lower, upper] :
         llvm::zip(entries.getLowers(), entries.getUppers())) {
      lowers.push_back(lower);
      sizes.push_back(upper - lower);
    }
  slots.push_back(builder.getDictionaryAttr(
      {builder.getNamedAttr("loc", loc),
       builder.getNamedAttr("before", builder.getStringAttr(before)),
       builder.getNamedAttr("after", builder.getStringAttr(after)),
       builder.getNamedAttr("lowers", builder.getDenseI64ArrayAttr(lowers)),
       builder.getNamedAttr("sizes", builder.getDenseI64ArrayAttr(sizes))}));
  return slots.size() - 1;
}

void PositionChecks::addSite(std::vector<Site> &to, Site site, Value array,
                             ForeachOp entries) {
  auto extent = cast<MemRefType>(array.getType()).getDimSize(site.dimension);
  site.slot = addSlot(
      site.op->getLoc(),
      isa<memref::StoreOp>(site.op) ? "writes position " : "reads position ",
      " of dimension " + Twine(site.dimension) + " of " + nameOf(array) +
          ", which has 0 to " + Twine(extent - 1),
      entries);
  to.push_back(site);
}

void PositionChecks::collect(
    Operation *op, ForeachOp within,
    llvm::function_ref<bool(OpFoldResult, int64_t)> isInside,
    std::vector<Site> &to) {
  auto check = [&](Value array, ValueRange indices) {
    auto type = cast<MemRefType>(array.getType());
    for (auto [dimension, index] : llvm::enumerate(indices))
      if (int64_t extent = type.getDimSize(dimension);
          extent != ShapedType::kDynamic && !isInside(index, extent))
        addSite(to, {op, static_cast<unsigned>(dimension), index, extent},
                array, within);
  };
  if (auto load = dyn_cast<memref::LoadOp>(op))
    return check(load.getMemRef(), load.getIndices());
  if (auto store = dyn_cast<memref::StoreOp>(op))
    return check(store.getMemRef(), store.getIndices());
  auto view = dyn_cast<memref::SubViewOp>(op);
  if (!view)
    return;
  for (unsigned d = 0; d < view.getSourceType().getRank(); ++d) {
    int64_t extent = view.getSourceType().getDimSize(d);
    std::optional<int64_t> size = getConstantIntValue(view.getMixedSizes()[d]);
    std::optional<int64_t> step =
        getConstantIntValue(view.getMixedStrides()[d]);
    auto offset = dyn_cast<Value>(view.getMixedOffsets()[d]);
    if (!offset || !size || !step || extent == ShapedType::kDynamic)
      continue;
    int64_t end = extent - (*size - 1) * *step;
    if (end > 0 && !isInside(offset, end))
      addSite(to, {op, d, offset, end}, view.getSource(), within);
  }
}

void PositionChecks::note(ForeachOp op, const loops::Loop &loop) {
  Loop &made = loops.emplace_back();
  made.op = op;
  Forms forms(op);
  // Most positions are one of a few, and each answer costs a proof.
  std::map<std::pair<void *, int64_t>, bool> known;
  auto isInside = [&](OpFoldResult index, int64_t end) {
    std::optional<Form> form = forms.of(index);
    if (!form)
      return false;
    auto [entry, isNew] =
        known.try_emplace({index.getOpaqueValue(), end}, false);
    if (isNew) {
      loops::Affine first = form->at;
      first.constant += form->low;
      entry->second =
          loops::placeOf(loop, first, {0, end - (form->high - form->low)})
              .inside;
    }
    return entry->second;
  };
  op.getBody().walk(
      [&](Operation *inner) { collect(inner, op, isInside, made.sites); });
  made.firstKey = slots.size();
  for (unsigned key = 0; key < op.getKeyArrays().size(); ++key) {
    auto bound = [](OpFoldResult of) {
      std::optional<int64_t> known = getConstantIntValue(of);
      return known ? std::to_string(*known) : "a number";
    };
    addSlot(op.getLoc(), "has key ",
            " in " + nameOf(op.getKeyArrays()[key]) + ", whose keys are from " +
                bound(op.getLower(key)) + " up to " + bound(op.getUpper(key)),
            nullptr);
  }
}

void PositionChecks::noteOthers() {
  auto isInside = [](OpFoldResult index, int64_t end) {
    if (std::optional<int64_t> number = getConstantIntValue(index))
      return *number >= 0 && *number < end;
    auto argument = dyn_cast<BlockArgument>(cast<Value>(index));
    auto loop = argument
                    ? dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp())
                    : nullptr;
    if (!loop || loop.getInductionVar() != argument)
      return false;
    std::optional<int64_t> from = getConstantIntValue(loop.getLowerBound());
    std::optional<int64_t> to = getConstantIntValue(loop.getUpperBound());
    return from && to && *from >= 0 && *to <= end;
  };
  function.walk([&](Operation *op) {
    if (!op->getParentOfType<ForeachOp>())
      collect(op, nullptr, isInside, others);
  });
}

ArrayAttr PositionChecks::description() {
  return ArrayAttr::get(function.getContext(), slots);
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

void PositionChecks::record(OpBuilder &builder, Location loc, Value memory,
                            const Site &site, Value entry) {
  auto constant = [&](int64_t of) { return number(builder, loc, of); };
  if (!entry)
    entry = constant(kNoEntry);
  entry = arith::MinSIOp::create(builder, loc, entry, constant(kNoEntry));
  Value position = arith::MinSIOp::create(builder, loc, site.position,
                                          constant(kMostPosition));
  position =
      arith::MaxSIOp::create(builder, loc, position, constant(-kMostPosition));
  Value word = arith::SubIOp::create(builder, loc, constant(kNoEntry), entry);
  word = arith::MulIOp::create(builder, loc, word, constant(kPositions));
  position =
      arith::AddIOp::create(builder, loc, position, constant(kPositions / 2));
  word = arith::AddIOp::create(builder, loc, word, position);
  Value inside = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult,
                                       site.position, constant(site.end));
  word = arith::SelectOp::create(builder, loc, inside, constant(0), word);
  word = arith::IndexCastOp::create(builder, loc, builder.getI64Type(), word);
  Value slot = constant(site.slot);
  Value before = memref::LoadOp::create(builder, loc, memory, slot);
  Value greatest = arith::MaxSIOp::create(builder, loc, before, word);
  memref::StoreOp::create(builder, loc, greatest, memory, slot);
}

/// The outermost loop around an operation that surely runs it, and does not
/// change where it is: one check before that loop is as good as one each time,
/// and leaves the loop without a branch, so that it can be vectorised.
static scf::ForOp
surelyAround(Operation *op, llvm::function_ref<bool(scf::ForOp)> isConstant) {
  scf::ForOp found;
  while (auto loop = dyn_cast<scf::ForOp>(op->getParentOp())) {
    std::optional<int64_t> from = getConstantIntValue(loop.getLowerBound());
    std::optional<int64_t> to = getConstantIntValue(loop.getUpperBound());
    if (!from || !to || *from >= *to || !isConstant(loop))
      break;
    found = loop;
    op = loop;
  }
  return found;
}

Value PositionChecks::entryNumber(OpBuilder &builder, Location loc,
                                  const Site &site, ForeachOp entries) {
  Value entry;
  auto sizes =
      cast<DictionaryAttr>(slots[site.slot]).getAs<DenseI64ArrayAttr>("sizes");
  for (auto [key, size] : llvm::enumerate(sizes.asArrayRef())) {
    Value at =
        arith::SubIOp::create(builder, loc, entries.getKeys()[key],
                              number(builder, loc, entries.getLowers()[key]));
    if (entry) {
      entry = arith::MulIOp::create(builder, loc, entry,
                                    number(builder, loc, size));
      at = arith::AddIOp::create(builder, loc, entry, at);
    }
    entry = at;
  }
  return entry;
}

/// Has an operation's positions, where they are outside, at the array's ends:
/// what it then reads or writes is of no use, and the step is refused.
static void bound(OpBuilder &builder, Location loc, Operation *op,
                  unsigned dimension, Value position, int64_t end) {
  Value one =
      arith::MaxSIOp::create(builder, loc, position, number(builder, loc, 0));
  one =
      arith::MinSIOp::create(builder, loc, one, number(builder, loc, end - 1));
  if (auto load = dyn_cast<memref::LoadOp>(op))
    return load.getIndicesMutable()[dimension].set(one);
  if (auto store = dyn_cast<memref::StoreOp>(op))
    return store.getIndicesMutable()[dimension].set(one);
  auto view = cast<memref::SubViewOp>(op);
  op->setOperand(view.getIndexOfDynamicOffset(dimension), one);
}

LogicalResult PositionChecks::checkSites(std::vector<Site> &sites, Value memory,
                                         ForeachOp entries) {
  llvm::MapVector<Operation *, SmallVector<Site>> byOp;
  for (const Site &site : sites)
    byOp[site.op].push_back(site);
  for (auto &[op, all] : byOp) {
    Location loc = op->getLoc();
    scf::ForOp loop = surelyAround(op, [&](scf::ForOp around) {
      return llvm::all_of(all, [&](const Site &site) {
        return site.end > 0 && around.isDefinedOutsideOfLoop(site.position);
      });
    });
    bool isBounded = loop || isa<memref::SubViewOp>(op);
    OpBuilder builder(loop ? loop : op);
    Value inside;
    for (const Site &site : all) {
      Value one =
          arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::ult,
                                site.position, number(builder, loc, site.end));
      inside = inside ? Value(arith::AndIOp::create(builder, loc, inside, one))
                      : one;
    }
    SmallVector<Type> types;
    if (auto load = dyn_cast<memref::LoadOp>(op); load && !isBounded)
      types.push_back(load.getType());
    auto branch = scf::IfOp::create(builder, loc, types, inside,
                                    /*withElseRegion=*/true);
    for (Block *block : {branch.thenBlock(), branch.elseBlock()})
      block->clear();
    builder.setInsertionPointToStart(branch.elseBlock());
    Value entry = entryNumber(builder, loc, all.front(), entries);
    for (const Site &site : all)
      record(builder, loc, memory, site, entry);
    if (!types.empty()) {
      auto load = cast<memref::LoadOp>(op);
      TypedAttr zero = builder.getZeroAttr(load.getType());
      if (!zero)
        return op->emitOpError("is of ")
               << load.getType()
               << ", for which positions that data tell are not checked: use "
                  "integers or floats";
      scf::YieldOp::create(
          builder, loc,
          arith::ConstantOp::create(builder, loc, zero).getResult());
      load.getResult().replaceAllUsesWith(branch.getResult(0));
      builder.setInsertionPointToStart(branch.thenBlock());
      auto end = scf::YieldOp::create(builder, loc, load.getResult());
      op->moveBefore(end);
      continue;
    }
    scf::YieldOp::create(builder, loc);
    builder.setInsertionPointToStart(branch.thenBlock());
    auto end = scf::YieldOp::create(builder, loc);
    if (!isBounded) {
      op->moveBefore(end);
      continue;
    }
    builder.setInsertionPoint(loop ? loop : op);
    for (const Site &site : all)
      bound(builder, loc, op, site.dimension, site.position, site.end);
  }
  return success();
}

/// One pass over the keys; the body has those that are outside at their bounds.
void PositionChecks::checkKeys(Loop &loop) {
  ForeachOp op = loop.op;
  if (!op.isSparse())
    return;
  Location loc = op.getLoc();
  OpBuilder builder(op);
  SmallVector<Value> lowers, uppers;
  for (unsigned key = 0; key < op.getNumKeys(); ++key) {
    lowers.push_back(
        getValueOrCreateConstantIndexOp(builder, loc, op.getLower(key)));
    uppers.push_back(
        getValueOrCreateConstantIndexOp(builder, loc, op.getUpper(key)));
  }
  Value zero = number(builder, loc, 0);
  Value size = memref::DimOp::create(builder, loc, op.getKeyArrays()[0], zero);
  auto over =
      scf::ForOp::create(builder, loc, zero, size, number(builder, loc, 1));
  builder.setInsertionPointToStart(over.getBody());
  Value entry = over.getInductionVar();
  for (auto [key, array] : llvm::enumerate(op.getKeyArrays())) {
    Value element = memref::LoadOp::create(builder, loc, array, entry);
    if (!element.getType().isIndex())
      element = arith::IndexCastOp::create(builder, loc, builder.getIndexType(),
                                           element);
    Value least = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sge,
                                        element, lowers[key]);
    Value most = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::slt,
                                       element, uppers[key]);
    Value inside = arith::AndIOp::create(builder, loc, least, most);
    Value outside = arith::XOrIOp::create(
        builder, loc, inside,
        arith::ConstantIntOp::create(builder, loc, 1, /*width=*/1));
    auto branch = scf::IfOp::create(builder, loc, outside,
                                    /*withElseRegion=*/false);
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(branch.thenBlock());
    Site site;
    site.position = element;
    site.slot = loop.firstKey + key; // and no end: any position is outside
    record(builder, loc, kept, site, entry);
  }
  builder.setInsertionPointToStart(&op.getBody().front());
  for (auto [key, argument] : llvm::enumerate(op.getKeys())) {
    Value last = arith::SubIOp::create(builder, loc, uppers[key],
                                       number(builder, loc, 1));
    Value low = arith::MinSIOp::create(builder, loc, argument, last);
    Value bounded = arith::MaxSIOp::create(builder, loc, low, lowers[key]);
    argument.replaceAllUsesExcept(bounded, low.getDefiningOp());
    for (Site &site : loop.sites)
      if (site.position == argument)
        site.position = bounded;
  }
}

LogicalResult
PositionChecks::write(llvm::function_ref<bool(ForeachOp)> isInBlocks) {
  if (slots.empty())
    return success();
  Location loc = function.getLoc();
  auto builder = OpBuilder::atBlockBegin(&function.front());
  auto type = MemRefType::get({static_cast<int64_t>(slots.size())},
                              builder.getI64Type());
  kept = memref::AllocaOp::create(builder, loc, type);
  Value nothing = arith::ConstantIntOp::create(builder, loc, 0, /*width=*/64);
  linalg::FillOp::create(builder, loc, nothing, kept);
  for (Loop &loop : loops) {
    checkKeys(loop);
    Value memory = kept;
    if (isInBlocks(loop.op)) {
      loop.op.getArraysMutable().append(kept);
      memory = loop.op.getBody().front().addArgument(type, loc);
    }
    if (failed(checkSites(loop.sites, memory, loop.op)))
      return failure();
  }
  return checkSites(others, kept, nullptr);
}
