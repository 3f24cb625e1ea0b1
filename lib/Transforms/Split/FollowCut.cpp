//===- FollowCut.cpp - What a cut runs through ----------------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/Contraction.h"
#include "FollowPartials.h"
#include "Meetings.h"
#include "Uniform.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "llvm/ADT/STLExtras.h"
#include <numeric>

using namespace mlir;
using namespace baechi;
using namespace baechi::split;

int64_t Cut::extent() const {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t(0));
}

SmallVector<int64_t> Cut::sizesAt(CutPosition position) const {
  return llvm::map_to_vector(
      sizes, [&](int64_t size) { return size * position.inner; });
}

bool Cut::isCutElsewhere(Value value, CutPosition at) const {
  auto found = values.find(value);
  return found != values.end() && found->second != at;
}

bool Cut::isReadInPieces(Value value) const {
  auto at = values.find(value);
  return at != values.end() &&
         llvm::all_of(value.getUses(), [&](OpOperand &use) {
           Operation *user = use.getOwner();
           Operation *op = value.getParentBlock()->findAncestorOpInBlock(*user);
           auto found = operations.find(op);
           if (found == operations.end())
             return false;
           const OperationCut &how = found->second;
           if (user == op)
             return how.operands[use.getOperandNumber()] == at->second;
           auto capture = how.captures.find(value);
           return capture != how.captures.end() &&
                  capture->second == at->second;
         });
}

bool Cut::staysPartial(Value partial) const {
  if (!partial.hasOneUse())
    return false;
  auto reader = operations.find(*partial.user_begin());
  return reader != operations.end() &&
         reader->second.kind == OperationCut::Kind::Partial;
}

/// Whether the terms of a sum are added one after the other, whatever its code
/// is: those that lie together are added in vectors.
static bool addsInOrder(Operation *op) {
  auto loops = dyn_cast<linalg::LinalgOp>(op);
  if (!loops)
    return false;
  // Products of matrices, not those with a vector.
  auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  bool isProduct = type && type.getRank() > 1 &&
                   (linalg::isaContractionOpInterface(loops) ||
                    linalg::isaConvolutionOpInterface(loops));
  if (isProduct || matchContraction(op))
    return true;
  SmallVector<utils::IteratorType> kinds = loops.getIteratorTypesArray();
  return llvm::none_of(loops.getDpsInputOperands(), [&](OpOperand *input) {
    AffineMap map = loops.getMatchingIndexingMap(input);
    return map.getNumResults() > 0 &&
           llvm::any_of(llvm::enumerate(kinds), [&](auto loop) {
             return loop.value() == utils::IteratorType::reduction &&
                    map.getResults().back().isFunctionOfDim(loop.index());
           });
  });
}

namespace {
/// Spreads one cut over producers and consumers until it meets reductions and
/// what cannot be cut.
class Follower {
public:
  Follower(Cut &cut, Block &block, const PlanOptions &options,
           const SplitPlan &taken)
      : cut(cut), block(block), extent(cut.extent()),
        reductions(options.reductions), ordered(options.ordered), taken(taken) {
  }

  void run(Value start, CutPosition position) {
    cut.values.insert({start, position});
    work.push_back(start);
    while (!work.empty()) {
      Value value = work.pop_back_val();
      position = cut.values.find(value)->second;
      if (auto result = dyn_cast<OpResult>(value))
        visit(result.getOwner(), [&](std::string &why) {
          return cutAlongResult(result, position, extent, why);
        });
      for (auto [user, use] : usesOf(value))
        visit(user, [&, use = use, user = user](std::string &why) {
          return cutAlongUse(user, *use, position, extent, why);
        });
    }
  }

private:
  /// Whether pieces of a product of matrices have one row, or column.
  bool leavesVectors(Operation *op, const OperationCut &how) const {
    auto loops = dyn_cast<linalg::LinalgOp>(op);
    if (!loops || how.results.empty() || !how.results.front() ||
        how.results.front()->outer != 1 ||
        !llvm::is_contained(cut.sizesAt(*how.results.front()), 1) ||
        (!linalg::isaContractionOpInterface(loops) && !matchContraction(op)))
      return false;
    auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
    return type && type.getRank() == 2;
  }

  void add(Value value, CutPosition position) {
    // The first position stays: a value that meets itself in another dimension
    // is put together for that reader.
    if (!isSharedUniform(value) && cut.values.insert({value, position}).second)
      work.push_back(value);
  }

  /// In the program's order, which that of the list of uses is not.
  SmallVector<std::pair<Operation *, OpOperand *>> usesOf(Value value) {
    SmallVector<std::pair<Operation *, OpOperand *>> uses;
    for (OpOperand &use : value.getUses())
      uses.emplace_back(block.findAncestorOpInBlock(*use.getOwner()), &use);
    llvm::sort(uses, [](const auto &a, const auto &b) {
      if (a.first != b.first)
        return a.first->isBeforeInBlock(b.first);
      if (a.second->getOwner() != b.second->getOwner())
        return a.second->getOwner() == a.first;
      return a.second->getOperandNumber() < b.second->getOperandNumber();
    });
    return uses;
  }

  template <typename Rule> void visit(Operation *op, Rule rule) {
    if (cut.operations.contains(op) || op->hasTrait<OpTrait::IsTerminator>())
      return;
    if (taken.cutOf.contains(op)) {
      cut.whole.push_back({op, "it follows another cut"});
      return;
    }
    if (taken.kept.contains(op)) {
      cut.whole.push_back({op, "it asks for one piece"});
      return;
    }
    std::string why;
    std::optional<OperationCut> found = rule(why);
    if (found && found->kind == OperationCut::Kind::Reduction && !reductions) {
      why = "it reduces the dimension, and sums are to be exact";
      found.reset();
    }
    if (found && found->kind == OperationCut::Kind::Reduction && ordered &&
        !addsInOrder(op)) {
      why = "it sums up what lies together, in an order of its own";
      found.reset();
    }
    if (found && ordered && leavesVectors(op, *found)) {
      why = "its pieces would be products with a vector, whose sums have an "
            "order of their own";
      found.reset();
    }
    // Micro-batches are cut where nothing reads across their borders.
    if (found && !found->windows.empty() && cut.chained) {
      why = "it reads windows along the dimension";
      found.reset();
    }
    if (!found) {
      cut.whole.push_back({op, std::move(why)});
      return;
    }
    for (auto [operand, at] : llvm::zip(op->getOperands(), found->operands))
      if (at)
        add(operand, *at);
    for (auto [result, at] : llvm::zip(op->getResults(), found->results))
      if (at)
        add(result, *at);
    for (auto [value, at] : found->captures)
      add(value, at);
    cut.operations.insert({op, std::move(*found)});
  }

  Cut &cut;
  Block &block;
  int64_t extent;
  bool reductions, ordered;
  const SplitPlan &taken;
  SmallVector<Value> work;
};
} // namespace

Cut split::followCut(Value value, CutPosition position, ArrayRef<int64_t> sizes,
                     const PlanOptions &options, const SplitPlan &taken) {
  Cut cut;
  cut.chained = options.chained;
  cut.sizes.assign(sizes.begin(), sizes.end());
  Block &block = *value.getParentBlock();
  Follower follower(cut, block, options, taken);
  follower.run(value, position);
  // Those that another way to them has cut since.
  llvm::erase_if(cut.whole, [&](const Whole &whole) {
    return cut.operations.contains(whole.op);
  });
  // A sum of sums would be one of all of their terms, in another order.
  if (!options.ordered)
    followPartials(cut, block, taken);
  if (cut.chained)
    findMeetings(cut, block);
  return cut;
}
