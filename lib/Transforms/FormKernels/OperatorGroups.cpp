//===- OperatorGroups.cpp - Operators that become kernels -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OperatorGroups.h"
#include "OperatorKinds.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace baechi;
using namespace baechi::formkernels;

/// Edges followed in the search for a cycle before a merge is given up.
static constexpr unsigned kSearchEffort = 1000;

Reads formkernels::readsOf(Operation *op,
                           llvm::function_ref<bool(Operation *)> stop) {
  Reads reads;
  SmallVector<Operation *> work{op};
  auto visit = [&](Value value) {
    Operation *producer = value.getDefiningOp();
    if (!producer || !isCloned(producer) || (stop && stop(producer)))
      reads.tensors.insert(value);
    else if (reads.clones.insert(producer))
      work.push_back(producer);
  };
  while (!work.empty()) {
    Operation *next = work.pop_back_val();
    for (Value operand : next->getOperands())
      visit(operand);
    SetVector<Value> captured;
    getUsedValuesDefinedAbove(next->getRegions(), captured);
    for (Value value : captured)
      visit(value);
  }
  return reads;
}

OperatorGroups::OperatorGroups(Block &block, unsigned maxBuffers,
                               DenseMap<Operation *, int64_t> sides)
    : maxBuffers(maxBuffers), sides(std::move(sides)) {
  unsigned count = 0;
  Operation *ordered = nullptr;
  for (Operation &op : block) {
    positions[&op] = count++;
    if (op.hasTrait<OpTrait::IsTerminator>() || !isOperator(&op))
      continue;
    Group group = groups.size();
    groups.push_back({{&op}, group});
    groupNumbers[&op] = group;
    all.push_back(&op);
    SetVector<Operation *> producers;
    for (Value tensor : readsOf(&op).tensors)
      if (Operation *producer = tensor.getDefiningOp();
          producer && groupNumbers.contains(producer))
        producers.insert(producer);
    if (isOrdered(&op)) {
      if (ordered)
        producers.insert(ordered);
      ordered = &op;
    }
    for (Operation *producer : producers)
      edges[producer].consumers.push_back(&op);
    edges[&op].producers.assign(producers.begin(), producers.end());
  }
}

std::optional<OperatorGroups::Group>
OperatorGroups::groupOf(Operation *op) const {
  auto found = groupNumbers.find(op);
  if (found == groupNumbers.end())
    return std::nullopt;
  return found->second;
}

/// The groups other than `to` that can be reached from `from` along
/// `neighbours` and lie between the two in order. Nothing when one of them
/// leads to `to`, or when there are too many.
std::optional<SmallVector<OperatorGroups::Group>>
OperatorGroups::reachable(Group from, Group to, Neighbours neighbours) const {
  auto [low, high] = std::minmax(groups[from].order, groups[to].order);
  SmallVector<Group> found, work{from};
  DenseSet<Group> seen{from};
  unsigned effort = 0;
  while (!work.empty()) {
    Group group = work.pop_back_val();
    for (Operation *member : groups[group].members) {
      for (Operation *neighbour : edges.at(member).*neighbours) {
        if (++effort > kSearchEffort)
          return std::nullopt;
        Group next = groupNumbers.at(neighbour);
        if (next == to && group != from)
          return std::nullopt;
        if (next == to || groups[next].order < low ||
            groups[next].order > high || !seen.insert(next).second)
          continue;
        found.push_back(next);
        work.push_back(next);
      }
    }
  }
  return found;
}

bool OperatorGroups::tooManyBuffers(Group a, Group b) const {
  auto isInside = [&](Operation *op) {
    std::optional<Group> group = op ? groupOf(op) : std::nullopt;
    return group == a || group == b;
  };
  llvm::DenseSet<Value> buffers;
  for (Group group : {a, b})
    for (Operation *member : groups[group].members) {
      for (Value tensor : readsOf(member).tensors)
        if (!isInside(tensor.getDefiningOp()))
          buffers.insert(tensor);
      for (Value result : member->getResults())
        if (llvm::any_of(result.getUsers(), [&](Operation *user) {
              Operation *op = member->getBlock()->findAncestorOpInBlock(*user);
              return !isInside(op);
            }))
          buffers.insert(result);
    }
  return buffers.size() > maxBuffers;
}

std::optional<int64_t> OperatorGroups::sideOf(Group group) const {
  auto found = sides.find(groups[group].members.front());
  return found == sides.end() ? std::nullopt : std::optional(found->second);
}

std::optional<OperatorGroups::Group> OperatorGroups::merge(Group a, Group b) {
  if (a == b)
    return a;
  if (sideOf(a) != sideOf(b))
    return std::nullopt;
  // What the host computes is no part of a kernel, also of no elements.
  for (Group group : {a, b})
    if (hostCallOf(groups[group].members.front()))
      return std::nullopt;
  if (maxBuffers > 0 && tooManyBuffers(a, b))
    return std::nullopt;
  Group first = groups[a].order < groups[b].order ? a : b;
  Group last = first == a ? b : a;
  auto after = reachable(first, last, &Edges::consumers);
  if (!after)
    return std::nullopt;
  auto before = reachable(last, first, &Edges::producers);
  if (!before)
    return std::nullopt;

  // What leads to the last goes before both, what the first leads to goes
  // behind, in the places that all of these have now.
  auto byOrder = [&](Group x, Group y) {
    return groups[x].order < groups[y].order;
  };
  llvm::sort(*before, byOrder);
  llvm::sort(*after, byOrder);
  SmallVector<Group> sequence(*before);
  sequence.push_back(first);
  sequence.push_back(last);
  llvm::append_range(sequence, *after);
  SmallVector<unsigned> places;
  for (Group group : sequence)
    places.push_back(groups[group].order);
  llvm::sort(places);
  for (auto [group, place] : llvm::zip_equal(sequence, places))
    groups[group].order = place;

  if (groups[first].members.size() < groups[last].members.size())
    std::swap(first, last);
  for (Operation *member : groups[last].members)
    groupNumbers[member] = first;
  llvm::append_range(groups[first].members, groups[last].members);
  groups[last].members.clear();
  return first;
}

std::vector<std::pair<OperatorGroups::Group, SmallVector<Operation *>>>
OperatorGroups::inOrder() const {
  std::vector<std::pair<Group, SmallVector<Operation *>>> ordered;
  for (auto [number, group] : llvm::enumerate(groups)) {
    if (group.members.empty())
      continue;
    SmallVector<Operation *> members = llvm::to_vector(group.members);
    llvm::sort(members, [&](Operation *x, Operation *y) {
      return position(x) < position(y);
    });
    ordered.emplace_back(number, std::move(members));
  }
  llvm::sort(ordered, [&](const auto &x, const auto &y) {
    return groups[x.first].order < groups[y.first].order;
  });
  return ordered;
}

void formkernels::groupInsertions(OperatorGroups &groups) {
  for (Operation *op : groups.operators()) {
    auto insertion = dyn_cast<tensor::InsertSliceOp>(op);
    if (!insertion)
      continue;
    auto previous = insertion.getDest().getDefiningOp<tensor::InsertSliceOp>();
    if (previous && previous->hasOneUse())
      (void)groups.merge(*groups.groupOf(previous), *groups.groupOf(insertion));
  }
}
