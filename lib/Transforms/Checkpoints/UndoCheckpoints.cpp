//===- UndoCheckpoints.cpp - Compute once what is computed again ----------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/Program.h"
#include "Baechi/Costs/Roofline.h"
#include "Baechi/Transforms/Checkpoints/Passes.h"
#include "SameElements.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/StringExtras.h"
#include <map>
#include <unordered_map>

namespace baechi {
#define GEN_PASS_DEF_UNDOCHECKPOINTS
#include "Baechi/Transforms/Checkpoints/Passes.h.inc"
} // namespace baechi

using namespace mlir;
using namespace baechi;

/// JAX's scope of what it computes again (jax._src.ad_checkpoint).
static constexpr StringRef kScope = "rematted_computation";

static bool isComputedAgain(Operation *op) {
  auto name = op->getLoc()->findInstanceOf<NameLoc>();
  return name &&
         llvm::is_contained(llvm::split(name.getName().strref(), '/'), kScope);
}

/// What operations write into. Merged, it would have to be copied.
static bool isInitial(Operation *op) {
  return isa<tensor::EmptyOp, linalg::FillOp>(op) ||
         op->hasTrait<OpTrait::ConstantLike>();
}

static Operation *initialOf(Value value) {
  Operation *op = value.getDefiningOp();
  return op && isInitial(op) ? op : nullptr;
}

static bool areSame(Operation *a, Operation *b);

static bool areSame(Value a, Value b) {
  if (a == b || (a.getType() == b.getType() &&
                 firstWithElements(a) == firstWithElements(b)))
    return true;
  Operation *from = initialOf(a), *as = initialOf(b);
  return from && as && areSame(from, as);
}

static bool areSame(Operation *a, Operation *b) {
  llvm::DenseMap<Value, Value> inner;
  return OperationEquivalence::isEquivalentTo(
      a, b,
      [&](Value mine, Value other) {
        auto known = inner.find(mine);
        return success(known != inner.end() ? known->second == other
                                            : areSame(mine, other));
      },
      [&](Value mine, Value other) { inner[mine] = other; },
      OperationEquivalence::IgnoreLocations);
}

static size_t hashOf(Operation *op) {
  return OperationEquivalence::computeHash(
      op,
      [](Value operand) {
        return initialOf(operand) ? hash_value(operand.getType())
                                  : hash_value(firstWithElements(operand));
      },
      OperationEquivalence::ignoreHashValue,
      OperationEquivalence::IgnoreLocations);
}

static bool mayMerge(Operation *op) {
  return op->getNumResults() > 0 && !isInitial(op) &&
         !op->hasTrait<OpTrait::IsTerminator>() && isMemoryEffectFree(op);
}

/// Erases what nothing reads any more, and what only that has read.
static void eraseUnused(Operation *op) {
  SmallVector<Value> operands(op->getOperands());
  op->erase();
  for (Value operand : operands)
    if (Operation *from = initialOf(operand); from && from->use_empty())
      eraseUnused(from);
}

namespace {
/// One block, whose operations run one after the other.
class Merger {
public:
  /// \p mayBeUndone: asked of each operation that is computed again while the
  /// same stands before it.
  explicit Merger(function_ref<bool(Operation *)> mayBeUndone)
      : mayBeUndone(mayBeUndone) {}

  void run(Block &block) {
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (!mayMerge(&op))
        continue;
      SmallVector<Operation *> &alike = byHash[hashOf(&op)];
      auto *same = isComputedAgain(&op)
                       ? llvm::find_if(alike,
                                       [&](Operation *before) {
                                         return areSame(before, &op);
                                       })
                       : alike.end();
      if (same == alike.end() || !mayBeUndone(&op)) {
        alike.push_back(&op);
        continue;
      }
      op.replaceAllUsesWith((*same)->getResults());
      eraseUnused(&op);
    }
  }

private:
  function_ref<bool(Operation *)> mayBeUndone;
  std::unordered_map<size_t, SmallVector<Operation *>> byHash;
};

/// All blocks of a module, those inside others last. Bodies of structured
/// operations are on scalars.
SmallVector<Block *> blocksOf(ModuleOp module) {
  SmallVector<Block *> blocks;
  module.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isa<linalg::LinalgOp>(op))
      return WalkResult::skip();
    if (!isa<ModuleOp>(op))
      for (Region &region : op->getRegions())
        for (Block &block : region)
          blocks.push_back(&block);
    return WalkResult::advance();
  });
  return blocks;
}

/// Those inside first: loops that are merged have none left to look at.
void mergeAll(ModuleOp module, function_ref<bool(Operation *)> mayBeUndone) {
  SmallVector<Block *> blocks = blocksOf(module);
  for (Block *block : llvm::reverse(blocks))
    Merger(mayBeUndone).run(*block);
}

/// What would be computed once, by who reads whose results. What one
/// checkpoint computes again hangs together: it begins with what is computed
/// elsewhere.
class Regions {
public:
  explicit Regions(ModuleOp module) {
    llvm::DenseSet<Operation *> undone = findUndone(module);
    for (Block *block : blocksOf(module))
      add(*block, undone);
  }

  unsigned of(Operation *op) const { return regionOf.lookup(op); }

private:
  /// Operations of \p module, by what becomes of those of a copy.
  static llvm::DenseSet<Operation *> findUndone(ModuleOp module) {
    OwningOpRef<ModuleOp> copy = module.clone();
    llvm::DenseMap<Operation *, Operation *> originals;
    SmallVector<Operation *> all;
    module.walk([&](Operation *op) { all.push_back(op); });
    size_t next = 0;
    copy->walk([&](Operation *op) { originals[op] = all[next++]; });
    llvm::DenseSet<Operation *> undone;
    mergeAll(*copy, [&](Operation *op) {
      undone.insert(originals.lookup(op));
      return true;
    });
    return undone;
  }

  void add(Block &block, const llvm::DenseSet<Operation *> &undone) {
    llvm::EquivalenceClasses<Operation *> classes;
    SmallVector<Operation *> found;
    for (Operation &op : block) {
      if (!undone.contains(&op))
        continue;
      found.push_back(&op);
      classes.insert(&op);
      for (Value operand : op.getOperands())
        for (Value value : {operand, firstWithElements(operand)})
          if (Operation *from = value.getDefiningOp();
              from && classes.contains(from))
            classes.unionSets(from, &op);
    }
    llvm::DenseMap<Operation *, unsigned> numbers; // of leaders
    for (Operation *op : found) {
      auto [leader, isNew] =
          numbers.try_emplace(classes.getLeaderValue(op), count);
      count += isNew;
      regionOf[op] = leader->second;
    }
  }

  unsigned count = 0;
  llvm::DenseMap<Operation *, unsigned> regionOf;
};

struct UndoCheckpoints
    : public baechi::impl::UndoCheckpointsBase<UndoCheckpoints> {
  using UndoCheckpointsBase::UndoCheckpointsBase;
  UndoCheckpoints(const UndoCheckpointsOptions &options,
                  UndoneCheckpoints *report)
      : UndoCheckpointsBase(options), report(report) {}

  void runOnOperation() override {
    Regions regions(getOperation());
    Roofline roofline = defaultRooflines().front();
    std::map<unsigned, UndoneCheckpoints::Region> undone;
    mergeAll(getOperation(), [&](Operation *op) {
      unsigned number = regions.of(op);
      if (llvm::is_contained(keep, number))
        return false;
      // Views and the like are no work.
      if (isa<linalg::LinalgOp>(op) || op->getNumRegions() > 0) {
        UndoneCheckpoints::Region &region = undone[number];
        ++region.operators;
        region.ns += roofline.timeNs(workOf(op));
        for (Type type : op->getResultTypes())
          region.bytes += tensorBytes(type, /*aligned=*/false).value_or(0);
      }
      return true;
    });
    if (!report)
      return;
    report->regions.clear();
    for (auto &[number, region] : undone) {
      region.number = number;
      report->regions.push_back(region);
    }
  }

private:
  UndoneCheckpoints *report = nullptr;
};
} // namespace

int64_t UndoneCheckpoints::operators() const {
  int64_t all = 0;
  for (const Region &region : regions)
    all += region.operators;
  return all;
}

int64_t UndoneCheckpoints::bytes() const {
  int64_t all = 0;
  for (const Region &region : regions)
    all += region.bytes;
  return all;
}

bool baechi::hasCheckpoints(ModuleOp module) {
  return module
      .walk([](Operation *op) {
        return isComputedAgain(op) ? WalkResult::interrupt()
                                   : WalkResult::advance();
      })
      .wasInterrupted();
}

std::unique_ptr<Pass> baechi::createUndoCheckpoints(UndoneCheckpoints *undone,
                                                    ArrayRef<unsigned> keep) {
  UndoCheckpointsOptions options;
  options.keep.assign(keep.begin(), keep.end());
  return std::make_unique<UndoCheckpoints>(options, undone);
}
