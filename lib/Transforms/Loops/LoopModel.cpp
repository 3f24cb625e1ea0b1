//===- LoopModel.cpp - A loop as its analysis reads it -*- C++ -*-===//
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

#include "LoopModel.h"
#include "Forms.h"
#include "Layouts.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace baechi;
using loops::AccessKind;
using loops::Subscript;

namespace {
constexpr int64_t kDynamic = ShapedType::kDynamic;

/// Where a memref of the body lies in the array: for each of the array's
/// dimensions where it begins, and which dimension of the memref goes along it
/// in which steps.
struct View {
  struct Dimension {
    std::optional<Form> begin;
    std::optional<unsigned> along;
    int64_t step = 1;
  };
  Value value;
  SmallVector<Dimension> dimensions;
};

class Modeller {
public:
  explicit Modeller(ForeachOp op) : op(op), forms(op) {
    op.getBody().walk<WalkOrder::PreOrder>(
        [&](Operation *inner) { numbers[inner] = numbers.size(); });
  }

  LoopModel make() {
    addKeys();
    for (auto [number, array] : llvm::enumerate(op.getBodyArrays()))
      addArray(number, array);
    addOtherMemory();
    loops::Loop &loop = model.loop;
    loop.ordered = op.getOrdered();
    loop.listed = loop.ordered && op.isSparse();
    loop.reassociate = op.getReassociate();
    for (size_t s = 0; s < forms.getSymbols().size(); ++s)
      loop.symbols.push_back("n" + std::to_string(s));
    return std::move(model);
  }

private:
  /// A position of a dimension, and what lies from there on: elements in steps.
  using Position = std::pair<std::optional<Form>, int64_t>;

  void addKeys();
  void addBound(unsigned key, OpFoldResult bound, bool isLower);
  void addArray(unsigned number, Value array);
  void addOtherMemory();
  std::string nameOf(unsigned array);

  void addUse(const View &view, OpOperand &use);
  std::optional<View> viewOf(const View &view, Operation *user);
  void access(const View &view, Operation *by, AccessKind kind,
              ArrayRef<Position> positions);
  void accessAny(const View &view, Operation *by);
  void accessWhole(const View &view, Operation *by, AccessKind kind);
  SmallVector<Position> positions(ValueRange indices, VectorType vector = {});

  ForeachOp op;
  Forms forms;
  LoopModel model;
  llvm::DenseMap<Operation *, unsigned> numbers; ///< in the body's order
  unsigned current = 0;                          ///< the array
  bool placesMeet = false;                       ///< of the array
  llvm::SmallPtrSet<Operation *, 8> uses;
  llvm::MapVector<Operation *, Update> updates; ///< by their stores
  SmallVector<View> views;
};
} // namespace

//===----------------------------------------------------------------------===//
// Keys
//===----------------------------------------------------------------------===//

void Modeller::addBound(unsigned key, OpFoldResult bound, bool isLower) {
  std::optional<Form> form = forms.of(bound);
  if (!form)
    return;
  Form unit;
  unit.at.coefficients.assign(key + 1, 0);
  unit.at.coefficients[key] = 1;
  std::optional<Form> inside =
      isLower ? plus(unit, form, -1) : plus(form, unit, -1);
  if (!inside)
    return;
  inside->at.constant -= isLower ? 0 : 1;
  model.loop.domain.push_back(inside->at);
}

void Modeller::addKeys() {
  constexpr int64_t kMost = ForeachOp::kMostOfKey;
  for (unsigned key = 0; key < op.getNumKeys(); ++key) {
    int64_t lower = op.getLowers()[key], upper = op.getUppers()[key];
    model.loop.keys.push_back({ForeachOp::nameOfKey(key),
                               lower == kDynamic ? -kMost : lower,
                               upper == kDynamic ? kMost : upper});
    if (lower == kDynamic)
      addBound(key, op.getLower(key), /*isLower=*/true);
    if (upper == kDynamic)
      addBound(key, op.getUpper(key), /*isLower=*/false);
  }
  if (!op.getWhere())
    return;
  IntegerSet where = *op.getWhere();
  for (auto [constraint, isEquation] :
       llvm::zip(where.getConstraints(), where.getEqFlags()))
    for (int64_t sign : {1, -1}) {
      if (sign < 0 && !isEquation)
        break;
      // A form of another kind restricts nothing that the analysis knows of.
      std::optional<Form> form =
          times(forms.of(constraint, op.getKeys(), where.getNumDims()), sign);
      if (form && form->low == form->high) {
        form->at.constant += form->low;
        model.loop.domain.push_back(form->at);
      }
    }
}

//===----------------------------------------------------------------------===//
// Arrays
//===----------------------------------------------------------------------===//

/// Its own name, its argument's number, or its number among the arrays.
std::string Modeller::nameOf(unsigned array) {
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

void Modeller::addArray(unsigned number, Value array) {
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
  View whole{array, {}};
  for (unsigned i = 0; i < type.getRank(); ++i)
    whole.dimensions.push_back({Form(), i, 1});
  views.assign(1, whole);
  placesMeet = !hasDistinctPlaces(type);
  // Of all views before any of their uses: `uses` is what updates ask for.
  for (size_t i = 0; i < views.size(); ++i)
    for (OpOperand &use : views[i].value.getUses()) {
      uses.insert(use.getOwner());
      if (std::optional<View> view = viewOf(views[i], use.getOwner()))
        views.push_back(*view);
    }
  updates.clear();
  for (Operation *user : uses)
    if (std::optional<Update> update = updateOf(user, uses);
        update && !placesMeet)
      updates.insert({user, *update});
  size_t first = model.operations.size();
  for (const View &view : views) {
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

/// What of the view the result of \p user is.
std::optional<View> Modeller::viewOf(const View &view, Operation *user) {
  if (auto cast = dyn_cast<memref::CastOp>(user))
    if (isa<MemRefType>(cast.getType()))
      return View{cast.getResult(), view.dimensions};
  auto slice = dyn_cast<memref::SubViewOp>(user);
  if (!slice)
    return std::nullopt;
  llvm::SmallBitVector dropped = slice.getDroppedDims();
  View made{slice.getResult(), view.dimensions};
  for (View::Dimension &dimension : made.dimensions) {
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

SmallVector<Modeller::Position> Modeller::positions(ValueRange indices,
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

void Modeller::access(const View &view, Operation *by, AccessKind kind,
                      ArrayRef<Position> positions) {
  loops::Access made;
  made.array = current;
  made.kind = kind;
  made.always = by->getBlock() == &op.getBody().front();
  // A transfer may go beyond an array's end.
  bool certain =
      !isa<VectorTransferOpInterface>(by) && runsAlways(by, op.getBody());
  for (const View::Dimension &dimension : view.dimensions) {
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

void Modeller::accessAny(const View &view, Operation *by) {
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

void Modeller::accessWhole(const View &view, Operation *by, AccessKind kind) {
  SmallVector<Position> all;
  for (int64_t size : cast<MemRefType>(view.value.getType()).getShape())
    all.push_back({Form(), size});
  access(view, by, kind, all);
}

void Modeller::addUse(const View &view, OpOperand &use) {
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
        bool followed = llvm::any_of(views, [&](const View &other) {
          return other.value.getDefiningOp() == user;
        });
        if (!followed)
          accessAny(view, user);
      });
}

//===----------------------------------------------------------------------===//
// Everything else
//===----------------------------------------------------------------------===//

/// Whether the body's memory \p value is an array's, or its own.
static bool isKnownMemory(Value value, ForeachOp op) {
  while (Operation *made = value.getDefiningOp()) {
    if (isa<memref::AllocOp, memref::AllocaOp>(made))
      return op.getBody().isAncestor(made->getParentRegion());
    auto view = dyn_cast<ViewLikeOpInterface>(made);
    if (!view)
      return false;
    value = view.getViewSource();
  }
  return llvm::is_contained(op.getBodyArrays(), value);
}

void Modeller::addOtherMemory() {
  op.getBody().walk([&](Operation *inner) {
    if (isMemoryEffectFree(inner) || isa<YieldOp>(inner))
      return;
    bool known = inner->hasTrait<OpTrait::HasRecursiveMemoryEffects>();
    if (auto effects = dyn_cast<MemoryEffectOpInterface>(inner)) {
      SmallVector<MemoryEffects::EffectInstance> all;
      effects.getEffects(all);
      known = llvm::all_of(all, [&](const MemoryEffects::EffectInstance &of) {
        return of.getValue() && isa<MemRefType>(of.getValue().getType()) &&
               isKnownMemory(of.getValue(), op);
      });
    }
    if (known)
      return;
    size_t memory = op.getArrays().size();
    if (model.loop.arrays.size() == memory)
      model.loop.arrays.push_back({"other memory", {}});
    for (AccessKind kind : {AccessKind::Read, AccessKind::Write}) {
      loops::Access made;
      made.array = memory;
      made.kind = kind;
      model.loop.accesses.push_back(made);
      model.operations.push_back(inner);
      model.certain.push_back(false);
    }
  });
}

LoopModel baechi::modelOf(ForeachOp op) { return Modeller(op).make(); }
