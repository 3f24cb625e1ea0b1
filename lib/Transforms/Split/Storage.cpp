//===- Storage.cpp - Arguments and results in pieces ----------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Which arguments may be in pieces is a greatest fixed point: each that is
/// read in one layout alone, less those whose next value is made otherwise, or
/// that are the next value of one that stays whole, until nothing changes.
///
//===----------------------------------------------------------------------===//

#include "Storage.h"
#include "Baechi/Analysis/Program.h"
#include "Baechi/Analysis/ReplicaSides.h"
#include "Baechi/Dialect/Pieces.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace baechi;
using namespace baechi::split;

using Layout = PieceTable::Layout;

namespace {
class Storer {
public:
  Storer(func::FuncOp step, PieceTable &table, OpBuilder &builder,
         ArrayRef<Operation *> gone)
      : step(step), block(step.front()), end(block.getTerminator()),
        table(table), builder(builder), gone(gone) {}

  Storage run(Stored how) {
    stored = how;
    layouts.resize(step.getNumArguments());
    updates.resize(end->getNumOperands());
    returned.resize(end->getNumOperands());
    if (stored != Stored::Whole)
      choose();
    writeReturn();
    for (Operation *op : llvm::reverse(gone)) // readers before what they read
      op->erase();
    if (stored == Stored::WithWholes)
      sides = replicaSides(step);
    writeArguments();
    return std::move(storage);
  }

private:
  void choose() {
    llvm::DenseSet<Operation *> cut(gone.begin(), gone.end());
    for (BlockArgument argument : step.getArguments()) {
      unsigned number = argument.getArgNumber();
      layouts[number] = readLayout(argument, cut);
      if (auto by = updatedBy(number))
        updates[*by].push_back(number);
    }
    while (dropSome())
      ;
    for (unsigned number = 0; number < end->getNumOperands(); ++number)
      if (const Layout *layout = resultLayout(number))
        returned[number] = *layout;
    if (llvm::any_of(layouts, [](const auto &each) { return bool(each); }))
      nameAll();
  }

  std::optional<unsigned> updatedBy(unsigned argument) {
    auto by =
        step.getArgAttrOfType<IntegerAttr>(argument, BaechiDialect::kUpdatedBy);
    return by ? std::optional<unsigned>(by.getInt()) : std::nullopt;
  }

  /// The function's argument \p number, which is cut, stays whole.
  void keepWhole(unsigned number, Location loc, const Twine &why) {
    layouts[number].reset();
    storage.whole.push_back({number, loc, why.str()});
  }

  /// The one layout that all readers of \p argument have it in.
  std::optional<Layout> readLayout(BlockArgument argument,
                                   const llvm::DenseSet<Operation *> &cut) {
    ArrayRef<Layout> read = table.layouts(argument);
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    if (read.empty() || !type || !type.hasStaticShape())
      return std::nullopt;
    unsigned number = argument.getArgNumber();
    if (step.getArgAttr(number, kPiece)) {
      keepWhole(number, argument.getLoc(), "it is a piece already");
      return std::nullopt;
    }
    if (read.size() > 1) {
      keepWhole(number, read[1].pieces.front().getLoc(),
                "it is cut in two ways by what reads it");
      return std::nullopt;
    }
    for (Operation *user : argument.getUsers()) {
      if (user == end || stored == Stored::WithWholes ||
          isSlicing(user, read.front()) ||
          cut.contains(block.findAncestorOpInBlock(*user)))
        continue;
      keepWhole(number, user->getLoc(),
                "'" + user->getName().getStringRef() + "' reads all of it");
      return std::nullopt;
    }
    return read.front();
  }

  /// Whether \p op has a part in making the pieces, as operations of
  /// PieceTable.
  static bool isSlicing(Operation *op, const Layout &layout) {
    if (op->getNumResults() == 1 &&
        llvm::is_contained(layout.pieces, op->getResult(0)))
      return true;
    return isa<tensor::ExpandShapeOp, tensor::ExtractSliceOp>(op) &&
           llvm::all_of(op->getUsers(), [&](Operation *user) {
             return isSlicing(user, layout);
           });
  }

  /// How result \p number can be returned: as arguments that it updates are
  /// stored, or, where there are none, as it is made.
  const Layout *resultLayout(unsigned number) {
    Value value = end->getOperand(number);
    auto argument = dyn_cast<BlockArgument>(value);
    const Layout *made =
        argument ? layoutOf(argument.getArgNumber()) : table.madeIn(value);
    // Where there is a whole, it is as good.
    if (!made || step.getResultAttr(number, kPiece) ||
        (!argument && updates[number].empty() && table.isPutTogether(value)))
      return nullptr;
    bool isLike = llvm::all_of(updates[number], [&](unsigned updated) {
      return layouts[updated] && layouts[updated]->isLike(*made);
    });
    return isLike ? made : nullptr;
  }

  const Layout *layoutOf(unsigned argument) {
    return layouts[argument] ? &*layouts[argument] : nullptr;
  }

  /// Arguments whose next value is not made in their pieces, or that are
  /// returned as a whole, are whole.
  bool dropSome() {
    bool dropped = false;
    for (unsigned number = 0; number < layouts.size(); ++number)
      if (auto by = updatedBy(number);
          layouts[number] && by && !resultLayout(*by)) {
        keepWhole(number, end->getOperand(*by).getLoc(),
                  "its next value is not made in the same pieces");
        dropped = true;
      }
    for (auto [result, value] : llvm::enumerate(end->getOperands()))
      if (auto argument = dyn_cast<BlockArgument>(value);
          argument && layouts[argument.getArgNumber()] &&
          !resultLayout(result)) {
        keepWhole(argument.getArgNumber(), argument.getLoc(),
                  "it is the next value of what stays whole");
        dropped = true;
      }
    return dropped;
  }

  /// A name by position says which position the caller knows.
  void nameAll() {
    for (unsigned number = 0; number < step.getNumArguments(); ++number)
      if (!step.getArgAttr(number, BaechiDialect::kName))
        step.setArgAttr(number, BaechiDialect::kName,
                        builder.getStringAttr("arg" + Twine(number)));
  }

  /// The attributes of the pieces of a tensor that has \p attrs; \p fallback:
  /// its name where it has none.
  SmallVector<DictionaryAttr> attributesOf(DictionaryAttr attrs,
                                           const Layout &layout, Type type,
                                           const Twine &fallback) {
    auto given =
        attrs ? attrs.getAs<StringAttr>(BaechiDialect::kName) : StringAttr();
    std::string name = given ? given.str() : fallback.str();
    SmallVector<DictionaryAttr> made;
    int64_t start = 0;
    for (auto [piece, size] : llvm::enumerate(layout.sizes)) {
      NamedAttrList list(attrs);
      if (given)
        list.set(BaechiDialect::kName,
                 builder.getStringAttr(name + ".piece" + Twine(piece)));
      int64_t elements = size * layout.position.inner;
      list.set(kPiece,
               PieceAttr::get(builder.getContext(), name,
                              cast<RankedTensorType>(type), layout.position.dim,
                              start, elements, layout.position.outer));
      start += elements;
      made.push_back(list.getDictionary(builder.getContext()));
    }
    return made;
  }

  void writeReturn() {
    builder.setInsertionPoint(end);
    SmallVector<Value> values;
    SmallVector<DictionaryAttr> attributes;
    for (auto [number, value] : llvm::enumerate(end->getOperands())) {
      firstResult.push_back(values.size());
      DictionaryAttr attrs = step.getResultAttrDict(number);
      const std::optional<Layout> &layout = returned[number];
      if (!layout) {
        values.push_back(table.whole(value));
        attributes.push_back(attrs);
        continue;
      }
      ++storage.results;
      llvm::append_range(attributes,
                         attributesOf(attrs, *layout, value.getType(),
                                      "result" + Twine(number)));
      llvm::append_range(values, layout->pieces);
    }
    end->setOperands(values);
    resultAttributes = std::move(attributes);
  }

  void writeArguments() {
    SmallVector<DictionaryAttr> attributes;
    for (unsigned number = 0, n = layouts.size(); number < n; ++number) {
      DictionaryAttr attrs = step.getArgAttrDict(number);
      unsigned position = attributes.size();
      const std::optional<Layout> &layout = layouts[number];
      if (!layout) {
        attributes.push_back(attrs);
        renumberUpdate(attributes, position, updatedBy(number), 0);
        continue;
      }
      BlockArgument argument = block.getArgument(position);
      ++storage.arguments;
      storage.bytes += tensorBytes(argument.getType(), false).value_or(0);
      llvm::append_range(attributes,
                         attributesOf(attrs, *layout, argument.getType(), ""));
      SmallVector<Operation *> slices;
      SmallVector<OpOperand *> wholes;
      for (OpOperand &use : argument.getUses())
        if (isSlicing(use.getOwner(), *layout))
          slices.push_back(use.getOwner());
        else
          wholes.push_back(&use);
      SmallVector<Value> pieces;
      for (auto [piece, slice] : llvm::enumerate(layout->pieces)) {
        renumberUpdate(attributes, position + piece, updatedBy(number), piece);
        Value mine = block.insertArgument(position + 1 + piece, slice.getType(),
                                          argument.getLoc());
        Value(slice).replaceAllUsesWith(mine);
        pieces.push_back(mine);
      }
      putTogether(argument, *layout, pieces, wholes);
      for (Operation *slice : slices)
        eraseWithUsers(slice);
      block.eraseArgument(position);
    }
    step.setType(builder.getFunctionType(block.getArgumentTypes(),
                                         end->getOperandTypes()));
    step.setAllArgAttrs(attributes);
    step.setAllResultAttrs(resultAttributes);
  }

  /// For what reads \p argument as a whole, once a replica, before its first.
  void putTogether(BlockArgument argument, const Layout &layout,
                   ArrayRef<Value> pieces, ArrayRef<OpOperand *> wholes) {
    llvm::MapVector<int64_t, SmallVector<OpOperand *>> readers;
    for (OpOperand *use : wholes) {
      auto side = sides.find(block.findAncestorOpInBlock(*use->getOwner()));
      readers[side == sides.end() ? -1 : side->second].push_back(use);
    }
    for (auto &[side, uses] : readers) {
      Operation *first = nullptr;
      for (OpOperand *use : uses)
        if (Operation *op = block.findAncestorOpInBlock(*use->getOwner());
            !first || op->isBeforeInBlock(first))
          first = op;
      builder.setInsertionPoint(first);
      Value whole =
          assemble(builder, argument, pieces, layout.sizes, layout.position);
      for (OpOperand *use : uses)
        use->set(whole);
    }
  }

  /// Results have other numbers where some before them are in pieces.
  void renumberUpdate(SmallVectorImpl<DictionaryAttr> &attributes,
                      unsigned position, std::optional<unsigned> by,
                      unsigned piece) {
    if (!by)
      return;
    NamedAttrList list(attributes[position]);
    list.set(BaechiDialect::kUpdatedBy,
             builder.getI64IntegerAttr(firstResult[*by] + piece));
    attributes[position] = list.getDictionary(builder.getContext());
  }

  /// What made slices of a whole.
  static void eraseWithUsers(Operation *op) {
    for (Operation *user : llvm::make_early_inc_range(op->getUsers()))
      eraseWithUsers(user);
    op->erase();
  }

  func::FuncOp step;
  Block &block;
  Operation *end;
  PieceTable &table;
  OpBuilder &builder;
  ArrayRef<Operation *> gone;
  Stored stored = Stored::Whole;
  llvm::DenseMap<Operation *, int64_t> sides; ///< replicas', WithWholes
  Storage storage;
  /// Of arguments and results, by their position before; nothing: whole.
  SmallVector<std::optional<Layout>> layouts, returned;
  /// Arguments by the result that is their next value.
  SmallVector<SmallVector<unsigned, 1>> updates;
  SmallVector<unsigned> firstResult;
  SmallVector<DictionaryAttr> resultAttributes;
};
} // namespace

Storage split::writeSignature(func::FuncOp step, PieceTable &table,
                              OpBuilder &builder, ArrayRef<Operation *> gone,
                              Stored stored) {
  return Storer(step, table, builder, gone).run(stored);
}
