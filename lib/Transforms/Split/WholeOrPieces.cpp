//===- WholeOrPieces.cpp - Which operations of a class are cut ------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Over links a class may save time in some of a network's layers, and lose it
/// in others, where pieces wait for each other's statistics or send large
/// gradients. Which operations are in pieces is one pairwise program
/// (`Placement/Choice`): a node is an operation, whole or in pieces; or a value
/// between them, as the whole, in pieces or both, where both are sent; or the
/// sending of a whole to all pieces, once for all that read it.
///
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Choice/SolveChoice.h"
#include "Exchange.h"

using namespace mlir;
using namespace baechi;
using namespace baechi::split;

/// Entries of the solver's tables: some hundredths of a second.
static constexpr uint64_t kWork = 20'000'000;

namespace {
class WholeOrPieces {
public:
  WholeOrPieces(const Exchange &exchange, const Cut &cut,
                function_ref<double(Operation *)> savedNs)
      : exchange(exchange), cut(cut), pieces(double(cut.sizes.size())) {
    for (const auto &[op, how] : cut.operations)
      addOperation(op, how, savedNs(op));
    for (const auto &[op, how] : cut.operations) {
      tiePartials(op);
      for (Value whole : exchange.wholesReadBy(op, how, cut))
        forbid(nodeOf[op], InPieces, sendingOf(whole), Unsent);
    }
    for (const auto &[value, at] : cut.values)
      addValue(value);
  }

  /// Those that are better whole.
  SmallVector<Operation *> solve() const {
    placement::ChoiceOptions options;
    options.work = kWork;
    placement::ChoiceResult result = placement::solveChoice(program, options);
    SmallVector<Operation *> found;
    // All whole, and all in pieces, are choices.
    for (const auto &[op, node] : nodeOf)
      if (!result.choice.empty() && result.choice[node] == AsWhole)
        found.push_back(op);
    return found;
  }

private:
  enum OfOperation : int32_t { AsWhole, InPieces };
  enum OfSending : int32_t { Unsent, Sent };
  enum OfValue : int32_t { OneWhole, OnlyPieces, Both };

  int32_t addNode(ArrayRef<double> costs) {
    placement::ChoiceNode node;
    for (double ns : costs)
      node.strategies.push_back({.cost = std::max(int64_t(ns), int64_t(0))});
    program.nodes.push_back(std::move(node));
    return int32_t(program.nodes.size() - 1);
  }

  placement::ChoiceEdge &addEdge(int32_t first, int32_t second) {
    size_t rows = program.nodes[first].strategies.size();
    size_t columns = program.nodes[second].strategies.size();
    return program.edges.emplace_back(placement::ChoiceEdge{
        first, second, std::vector<int64_t>(rows * columns, 0)});
  }

  void set(placement::ChoiceEdge &edge, int32_t row, int32_t column,
           int64_t cost) const {
    size_t columns = program.nodes[edge.second].strategies.size();
    edge.costs[size_t(row) * columns + size_t(column)] = cost;
  }

  void forbid(int32_t first, int32_t row, int32_t second, int32_t column) {
    set(addEdge(first, second), row, column, placement::infiniteCost);
  }

  void addOperation(Operation *op, const OperationCut &how, double savedNs) {
    double inPieces = exchange.sentByNs(op, how, cut);
    nodeOf[op] = addNode({savedNs, inPieces});
  }

  /// What adds up partial results reads them so.
  void tiePartials(Operation *op) {
    for (Value result : op->getResults())
      if (cut.staysPartial(result)) {
        placement::ChoiceEdge &edge =
            addEdge(nodeOf[op], nodeOf[*result.user_begin()]);
        set(edge, AsWhole, InPieces, placement::infiniteCost);
        set(edge, InPieces, AsWhole, placement::infiniteCost);
      }
  }

  int32_t sendingOf(Value whole) {
    auto [found, isNew] = sendings.try_emplace(whole, 0);
    if (isNew)
      found->second = addNode({0, exchange.sentToAllNs(whole, pieces)});
    return found->second;
  }

  /// A value on the class's way, between what makes it and what reads it.
  void addValue(Value value) {
    if (!exchange.isMoved(value))
      return;
    double ns = exchange.movedNs(value, pieces);
    auto made = nodeOf.find(value.getDefiningOp());
    SmallVector<int32_t> readers;
    bool isReadWhole = false;
    for (Operation *user : value.getUsers()) {
      Operation *reader = readerOf(value, user);
      if (auto found = nodeOf.find(reader); found != nodeOf.end())
        readers.push_back(found->second);
      else
        isReadWhole |= !reader->hasTrait<OpTrait::IsTerminator>();
    }
    int32_t node = addNode({0, 0, ns});
    if (made == nodeOf.end()) {
      program.nodes[node].strategies[OnlyPieces].cost = placement::infiniteCost;
    } else {
      placement::ChoiceEdge &edge = addEdge(made->second, node);
      set(edge, AsWhole, OnlyPieces, placement::infiniteCost);
      set(edge, InPieces, OneWhole, placement::infiniteCost);
    }
    if (isReadWhole)
      program.nodes[node].strategies[OnlyPieces].cost = placement::infiniteCost;
    llvm::sort(readers);
    readers.erase(llvm::unique(readers), readers.end());
    for (int32_t reader : readers) {
      placement::ChoiceEdge &edge = addEdge(node, reader);
      set(edge, OneWhole, InPieces, placement::infiniteCost);
      set(edge, OnlyPieces, AsWhole, placement::infiniteCost);
    }
  }

  const Exchange &exchange;
  const Cut &cut;
  double pieces;
  placement::ChoiceProgram program;
  llvm::MapVector<Operation *, int32_t> nodeOf;
  llvm::DenseMap<Value, int32_t> sendings;
};
} // namespace

SmallVector<Operation *>
Exchange::betterWhole(const Cut &cut,
                      function_ref<double(Operation *)> savedNs) const {
  return WholeOrPieces(*this, cut, savedNs).solve();
}
