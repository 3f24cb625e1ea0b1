//===- ArrayAccesses.cpp - What a loop's body does with an array ----------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Every access that a loop's body may make of its arrays, through views of
/// them, too. What is not understood reads and writes any element.
///
//===----------------------------------------------------------------------===//

#include "Layouts.h"
#include "LoopModeller.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace baechi;
using loops::AccessKind;
using loops::Subscript;

static constexpr int64_t kDynamic = ShapedType::kDynamic;

/// Its own name, its argument's number, or its number among the arrays.
std::string LoopModeller::nameOf(unsigned array) {
  Value value = op.getArrays()[array];
  if (auto named = dyn_cast<NameLoc>(value.getLoc()))
    return named.getName().str();
  auto argument = dyn_cast<BlockArgument>(value);
  auto function =
      argument
          ? dyn_cast<FunctionOpInterface>(argument.getOwner()->getParentOp())
          : nullptr;
  if (function) {
    auto name = function.getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                                      BaechiDialect::kName);
    return name ? name.getValue().str()
                : "arg" + std::to_string(argument.getArgNumber());
  }
  return "array" + std::to_string(array);
}

void LoopModeller::addArray(unsigned number, Value array) {
  loops::Array described;
  described.name = nameOf(number);
  described.buffered = op.isBuffered(number);
  auto type = cast<MemRefType>(array.getType());
  for (int64_t extent : type.getShape())
    described.extents.push_back(extent == kDynamic ? -1 : extent);
  if (type.getElementType().isIntOrFloat())
    described.elementBytes = llvm::divideCeil(type.getElementTypeBitWidth(), 8);
  model.loop.arrays.push_back(described);

  current = number;
  uses.clear();
  ArrayView whole{array, {}};
  for (unsigned i = 0; i < type.getRank(); ++i)
    whole.dimensions.push_back({Form(), i, 1});
  views.assign(1, whole);
  placesMeet = !hasDistinctPlaces(type);
  // Of all views before any of their uses: `uses` is what updates ask for.
  for (size_t i = 0; i < views.size(); ++i)
    for (OpOperand &use : views[i].value.getUses()) {
      uses.insert(use.getOwner());
      if (std::optional<ArrayView> view = viewOf(views[i], use.getOwner()))
        views.push_back(*view);
    }
  updates.clear();
  for (Operation *user : uses)
    if (std::optional<Update> update = updateOf(user, uses);
        update && !placesMeet)
      updates.insert({user, *update});
  size_t first = model.operations.size();
  for (const ArrayView &view : views) {
    SmallVector<OpOperand *> operands;
    for (OpOperand &use : view.value.getUses())
      operands.push_back(&use);
    // In the body's order.
    llvm::stable_sort(operands, [&](OpOperand *a, OpOperand *b) {
      return numbers.lookup(a->getOwner()) < numbers.lookup(b->getOwner());
    });
    for (OpOperand *use : operands)
      addUse(view, *use);
  }
  markOneNumber(first);
  // What is combined in two ways has no order of its own.
  std::optional<std::string> combiner;
  bool alike = true;
  std::vector<loops::Access> &accesses = model.loop.accesses;
  for (size_t a = first; a < accesses.size(); ++a)
    if (accesses[a].kind == AccessKind::Add) {
      alike &= !combiner || *combiner == accesses[a].combiner;
      combiner = accesses[a].combiner;
    }
  if (alike)
    return;
  for (size_t a = first, end = accesses.size(); a < end; ++a)
    if (accesses[a].kind == AccessKind::Add) {
      accesses[a].kind = AccessKind::Write;
      accesses.push_back(accesses[a]);
      accesses.back().kind = AccessKind::Read;
      model.operations.push_back(model.operations[a]);
      model.certain.push_back(model.certain[a]);
    }
}

/// Entries whose keys do not tell their time, or positions that no key tells,
/// are in no one's way where all that is done with the array is to set elements
/// to one number: whoever is last, it is the same.
void LoopModeller::markOneNumber(size_t first) {
  std::vector<loops::Access> &accesses = model.loop.accesses;
  TypedAttr number;
  bool isTold = !(op.getOrdered() && op.isSparse());
  for (size_t a = first; a < accesses.size(); ++a) {
    Operation *by = model.operations[a];
    TypedAttr stored;
    if (accesses[a].kind != AccessKind::Write ||
        !isa<memref::StoreOp, affine::AffineStoreOp>(by) ||
        !matchPattern(by->getOperand(0), m_Constant(&stored)) ||
        (number && stored != number))
      return;
    number = stored;
    isTold &=
        llvm::all_of(accesses[a].subscripts, [](const Subscript &subscript) {
          return subscript.kind != Subscript::Kind::Unknown;
        });
  }
  if (!number || isTold)
    return;
  for (size_t a = first; a < accesses.size(); ++a) {
    accesses[a].kind = AccessKind::Add;
    accesses[a].combiner = loops::kOneNumber;
  }
  model.loop.arrays[current].anyOrder = true;
  model.numbers[current] = number;
}

/// What of the view the result of \p user is.
std::optional<ArrayView> LoopModeller::viewOf(const ArrayView &view,
                                              Operation *user) {
  if (auto cast = dyn_cast<memref::CastOp>(user))
    if (isa<MemRefType>(cast.getType()))
      return ArrayView{cast.getResult(), view.dimensions};
  auto slice = dyn_cast<memref::SubViewOp>(user);
  if (!slice)
    return std::nullopt;
  llvm::SmallBitVector dropped = slice.getDroppedDims();
  ArrayView made{slice.getResult(), view.dimensions};
  for (ArrayView::Dimension &dimension : made.dimensions) {
    if (!dimension.along)
      continue;
    unsigned along = *dimension.along;
    std::optional<int64_t> step =
        getConstantIntValue(slice.getMixedStrides()[along]);
    dimension.begin =
        plus(dimension.begin, forms.of(slice.getMixedOffsets()[along]),
             dimension.step);
    if (dropped[along]) {
      dimension.along.reset();
    } else {
      dimension.along =
          along - llvm::count_if(llvm::seq<unsigned>(0, along),
                                 [&](unsigned d) { return dropped[d]; });
    }
    if (!step || *step <= 0 || *step > (int64_t(1) << 20) / dimension.step)
      dimension.begin.reset();
    else
      dimension.step *= *step;
  }
  return made;
}

SmallVector<LoopModeller::Position> LoopModeller::positions(ValueRange indices,
                                                            VectorType vector) {
  SmallVector<Position> made;
  for (Value index : indices)
    made.push_back({forms.of(index), 1});
  if (vector)
    for (auto [position, size] :
         llvm::zip(llvm::reverse(made), llvm::reverse(vector.getShape())))
      position.second = size;
  return made;
}

/// Whether each run of \p body runs \p op, in loops around it, too.
static bool runsAlways(Operation *op, Region &body) {
  for (; op->getParentRegion() != &body; op = op->getParentOp()) {
    auto loop = dyn_cast<LoopLikeOpInterface>(op->getParentOp());
    auto lowers = loop ? loop.getLoopLowerBounds() : std::nullopt;
    auto uppers = loop ? loop.getLoopUpperBounds() : std::nullopt;
    if (!lowers || !uppers)
      return false;
    for (auto [lower, upper] : llvm::zip(*lowers, *uppers)) {
      std::optional<int64_t> from = getConstantIntValue(lower);
      std::optional<int64_t> to = getConstantIntValue(upper);
      if (!from || !to || *from >= *to)
        return false;
    }
  }
  return true;
}

void LoopModeller::access(const ArrayView &view, Operation *by, AccessKind kind,
                          ArrayRef<Position> positions) {
  loops::Access made;
  made.array = current;
  made.kind = kind;
  made.always = by->getBlock() == &op.getBody().front();
  // A transfer may go beyond an array's end.
  bool certain =
      !isa<VectorTransferOpInterface>(by) && runsAlways(by, op.getBody());
  for (const ArrayView::Dimension &dimension : view.dimensions) {
    Subscript &subscript = made.subscripts.emplace_back();
    std::optional<Form> at = dimension.begin;
    if (dimension.along) {
      auto [position, size] = positions[*dimension.along];
      at = plus(at, position, dimension.step);
      if (at && size != kDynamic)
        at->high += (size - 1) * dimension.step;
      else
        at.reset();
    }
    if (!at) {
      subscript.kind = Subscript::Kind::Unknown;
      continue;
    }
    certain &= at->isTight;
    subscript.kind = Subscript::Kind::At;
    subscript.at = at->at;
    subscript.at.constant += at->low;
    subscript.size = at->high - at->low + 1;
    size_t number = made.subscripts.size() - 1;
    bool all =
        llvm::all_of(at->at.coefficients, [](int64_t c) { return !c; }) &&
        llvm::all_of(at->at.symbols, [](int64_t c) { return !c; }) &&
        subscript.at.constant == 0 &&
        subscript.size == model.loop.arrays[current].extents[number] &&
        subscript.size > 1;
    if (all)
      subscript = {};
  }
  model.loop.accesses.push_back(std::move(made));
  model.operations.push_back(by);
  model.certain.push_back(certain);
}

void LoopModeller::accessAny(const ArrayView &view, Operation *by) {
  for (AccessKind kind : {AccessKind::Read, AccessKind::Write}) {
    loops::Access made;
    made.array = current;
    made.kind = kind;
    made.always = false;
    made.subscripts.assign(view.dimensions.size(),
                           {Subscript::Kind::Unknown, {}, 1});
    model.loop.accesses.push_back(std::move(made));
    model.operations.push_back(by);
    model.certain.push_back(false);
  }
}

void LoopModeller::accessWhole(const ArrayView &view, Operation *by,
                               AccessKind kind) {
  SmallVector<Position> all;
  for (int64_t size : cast<MemRefType>(view.value.getType()).getShape())
    all.push_back({Form(), size});
  access(view, by, kind, all);
}

void LoopModeller::addUse(const ArrayView &view, OpOperand &use) {
  Operation *user = use.getOwner();
  // Indices do not tell what is touched.
  if (placesMeet && !isa<memref::DimOp>(user) && !viewOf(view, user))
    return accessAny(view, user);
  auto store = [&](Value stored, ArrayRef<Position> at) {
    if (stored == view.value)
      return accessAny(view, user);
    const Update *update = updates.contains(user) ? &updates[user] : nullptr;
    access(view, user, update ? AccessKind::Add : AccessKind::Write, at);
    if (!update)
      return;
    loops::Array &array = model.loop.arrays[current];
    array.anyOrder = llvm::all_of(
        updates, [](const auto &each) { return each.second.anyOrder; });
    model.loop.accesses.back().combiner = update->combiner;
  };
  /// Loads that belong to updates are no accesses of their own.
  auto load = [&](ArrayRef<Position> at) {
    if (llvm::none_of(updates, [&](const auto &each) {
          return each.second.load == user;
        }))
      access(view, user, AccessKind::Read, at);
  };
  auto affinePositions = [&](AffineMap map, ValueRange operands) {
    SmallVector<Position> made;
    for (AffineExpr result : map.getResults())
      made.push_back({forms.of(result, operands, map.getNumDims()), 1});
    return made;
  };
  llvm::TypeSwitch<Operation *>(user)
      .Case([&](memref::LoadOp of) { load(positions(of.getIndices())); })
      .Case([&](memref::StoreOp of) {
        store(of.getValueToStore(), positions(of.getIndices()));
      })
      .Case([&](affine::AffineLoadOp of) {
        load(affinePositions(of.getAffineMap(), of.getMapOperands()));
      })
      .Case([&](affine::AffineStoreOp of) {
        store(of.getValueToStore(),
              affinePositions(of.getAffineMap(), of.getMapOperands()));
      })
      .Case([&](vector::LoadOp of) {
        access(view, user, AccessKind::Read,
               positions(of.getIndices(), of.getVectorType()));
      })
      .Case([&](vector::StoreOp of) {
        access(view, user, AccessKind::Write,
               positions(of.getIndices(), of.getVectorType()));
      })
      .Case([&](VectorTransferOpInterface of) {
        if (!of.getPermutationMap().isMinorIdentity())
          return accessAny(view, user);
        access(view, user,
               isa<vector::TransferReadOp>(user) ? AccessKind::Read
                                                 : AccessKind::Write,
               positions(of.getIndices(), of.getVectorType()));
      })
      .Case([&](memref::CopyOp of) {
        accessWhole(view, user,
                    use.getOperandNumber() == 0 ? AccessKind::Read
                                                : AccessKind::Write);
      })
      .Case([&](DestinationStyleOpInterface of) {
        accessWhole(view, user, AccessKind::Read);
        if (of.isDpsInit(&use))
          accessWhole(view, user, AccessKind::Write);
      })
      .Case<memref::DimOp, memref::RankOp, memref::PrefetchOp>([](auto) {})
      .Default([&](Operation *) {
        bool followed = llvm::any_of(views, [&](const ArrayView &other) {
          return other.value.getDefiningOp() == user;
        });
        if (!followed)
          accessAny(view, user);
      });
}
