//===- LoopModel.cpp - A loop as its analysis reads it ----------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A loop's keys and their bounds, and what its body touches that is no
/// array's.
///
//===----------------------------------------------------------------------===//

#include "LoopModeller.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;
using namespace baechi;
using loops::AccessKind;

static constexpr int64_t kDynamic = ShapedType::kDynamic;

//===----------------------------------------------------------------------===//
// Keys
//===----------------------------------------------------------------------===//

void LoopModeller::addBound(unsigned key, OpFoldResult bound, bool isLower) {
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

void LoopModeller::addKeys() {
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
// Memory that is no array's
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

void LoopModeller::addOtherMemory() {
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

LoopModel LoopModeller::make() {
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

LoopModel baechi::modelOf(ForeachOp op) { return LoopModeller(op).make(); }
