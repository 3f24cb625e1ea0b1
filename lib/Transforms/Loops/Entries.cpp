//===- Entries.cpp - Key arrays of loops over entries -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A loop over n that reads `rows[n]` and uses what it finds as a position is a
/// loop over the elements of `rows`: these are keys, and positions that they
/// are in are sums of keys, where positions that memory tells are any.
///
//===----------------------------------------------------------------------===//

#include "Nest.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace baechi;

bool baechi::isWritten(Value array, Operation *loop) {
  for (Operation *user : array.getUsers()) {
    if (!loop->isAncestor(user) || isMemoryEffectFree(user)) {
      if (isa<ViewLikeOpInterface>(user) &&
          llvm::any_of(user->getResults(),
                       [&](Value view) { return isWritten(view, loop); }))
        return true;
      continue;
    }
    auto effects = dyn_cast<MemoryEffectOpInterface>(user);
    if (!effects)
      return true;
    SmallVector<MemoryEffects::EffectInstance> all;
    effects.getEffects(all);
    for (const MemoryEffects::EffectInstance &effect : all)
      if (!isa<MemoryEffects::Read>(effect.getEffect()) &&
          (!effect.getValue() || effect.getValue() == array))
        return true;
    // What is stored may be used from where it is stored.
    if (isa<memref::StoreOp>(user) && user->getOperand(0) == array)
      return true;
  }
  return false;
}

/// The memref of a load or store of one element at \p counter, else null.
static Value elementAt(Operation *user, Value counter) {
  auto only = [&](ValueRange indices) {
    return indices.size() == 1 && indices.front() == counter;
  };
  if (auto load = dyn_cast<memref::LoadOp>(user))
    return only(load.getIndices()) ? load.getMemRef() : Value();
  if (auto store = dyn_cast<memref::StoreOp>(user))
    return only(store.getIndices()) ? store.getMemRef() : Value();
  if (auto load = dyn_cast<affine::AffineLoadOp>(user))
    return load.getAffineMap().isIdentity() && only(load.getMapOperands())
               ? load.getMemRef()
               : Value();
  if (auto store = dyn_cast<affine::AffineStoreOp>(user))
    return store.getAffineMap().isIdentity() && only(store.getMapOperands())
               ? store.getMemRef()
               : Value();
  return {};
}

/// Calls \p found with each access, and dimension of it, that has \p value as
/// its position; says whether any has it in its position.
static bool
positionsOf(Value value,
            function_ref<void(Operation *, Value, unsigned)> found) {
  bool any = false;
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    if (isa<arith::IndexCastOp>(user)) {
      any |= positionsOf(user->getResult(0), found);
    } else if (isa<arith::AddIOp, arith::SubIOp, arith::MulIOp,
                   affine::AffineApplyOp>(user)) {
      any |=
          positionsOf(user->getResult(0), [](Operation *, Value, unsigned) {});
    } else if (auto load = dyn_cast<memref::LoadOp>(user)) {
      any = true;
      found(user, load.getMemRef(), use.getOperandNumber() - 1);
    } else if (auto store = dyn_cast<memref::StoreOp>(user)) {
      if (use.getOperandNumber() < 2)
        continue;
      any = true;
      found(user, store.getMemRef(), use.getOperandNumber() - 2);
    } else if (isa<memref::SubViewOp>(user)) {
      any = true;
    }
  }
  return any;
}

/// Whether each run of \p body runs \p op.
static bool always(Operation *op, Block *body) {
  while (op->getBlock() != body) {
    op = op->getParentOp();
    std::optional<int64_t> lower, upper;
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      lower = getConstantIntValue(loop.getLowerBound());
      upper = getConstantIntValue(loop.getUpperBound());
    } else if (auto loop = dyn_cast<affine::AffineForOp>(op);
               loop && loop.hasConstantBounds()) {
      lower = loop.getConstantLowerBound();
      upper = loop.getConstantUpperBound();
    }
    if (!lower || !upper || *lower >= *upper)
      return false;
  }
  return true;
}

Entries baechi::entriesOf(Level &level) {
  Operation *loop = level.loop;
  llvm::SetVector<Value> arrays;
  Operation *other = nullptr;
  // In the body's order.
  loop->walk([&](Operation *user) {
    if (!llvm::is_contained(user->getOperands(), level.counter))
      return;
    Value array = elementAt(user, level.counter);
    bool isOutside =
        array && !loop->isAncestor(array.getParentBlock()->getParentOp());
    if (isOutside && isa<MemRefType>(array.getType()))
      arrays.insert(array);
    else
      other = user;
  });
  Entries entries;
  Block *body = &level.loop.getLoopRegions().front()->front();
  OpBuilder builder(loop);
  bool gathers = false;
  // The first reason why entries are not what it is over.
  StringRef why;
  Operation *where = nullptr;
  auto refuse = [&](Operation *at, StringRef reason) {
    if (where)
      return;
    where = at;
    why = reason;
  };
  for (Value array : arrays) {
    bool written = isWritten(array, loop), isKey = false;
    OpFoldResult upper;
    Operation *first = nullptr, *store = nullptr;
    SmallVector<Operation *> users(array.getUsers());
    for (Operation *user : llvm::reverse(users)) {
      if (!loop->isAncestor(user))
        continue;
      if (elementAt(user, level.counter) != array) {
        refuse(user, "it uses the array at other places, too");
        continue;
      }
      if (user->getNumResults() == 0) {
        if (store || user->getBlock() != body)
          refuse(user, "an entry's value is stored once, and always");
        store = user;
        continue;
      }
      if (!user->getResult(0).getType().isSignlessIntOrIndex())
        continue;
      isKey |= positionsOf(user->getResult(0), [&](Operation *by, Value of,
                                                   unsigned dimension) {
        auto type = cast<MemRefType>(of.getType());
        bool isOutside = !loop->isAncestor(of.getParentBlock()->getParentOp());
        if (!isOutside || !always(by, body))
          return;
        int64_t extent = type.getDimSize(dimension);
        std::optional<int64_t> known =
            upper ? getConstantIntValue(upper) : std::nullopt;
        if (extent != ShapedType::kDynamic)
          upper =
              builder.getIndexAttr(known ? std::min(*known, extent) : extent);
        else if (!upper)
          upper = memref::DimOp::create(builder, loop->getLoc(), of, dimension)
                      .getResult();
      });
      first = user;
    }
    for (Operation *user : users)
      if (store && loop->isAncestor(user) && user != store &&
          !(body->findAncestorOpInBlock(*user) &&
            body->findAncestorOpInBlock(*user)->isBeforeInBlock(store)))
        refuse(user, "it reads an entry's value after it was stored");
    if (!isKey) {
      entries.values.push_back(array);
      entries.stores.push_back(store);
      continue;
    }
    gathers = true;
    if (written)
      refuse(first, "keys are read only, and this array is written");
    if (!upper)
      refuse(first, "no array that each entry uses at this position says how "
                    "large it may be");
    entries.keys.push_back({array, builder.getIndexAttr(0), upper});
  }
  if (!gathers)
    return {};
  if (other)
    refuse(other, "it uses the counter for more than the entry's elements");
  if (level.step != 1)
    refuse(loop, "its step is not 1");
  if (!where)
    return entries;
  InFlightDiagnostic remark =
      loop->emitRemark("raised over its counter, not over the keys that it "
                       "reads: positions that these are in depend on data");
  remark.attachNote(where->getLoc()) << why;
  return {};
}
