//===- JoinMessages.cpp - Several sums of a piece in one message ----------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What pieces send each other for small sums takes what a message takes,
/// whatever its size: each puts the partial results of sums that are exchanged
/// together into one tensor, whose rows the others join with their own.
///
//===----------------------------------------------------------------------===//

#include "SumMessages.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace baechi;
using namespace baechi::split;

/// What lies before rows of different lengths: structured operations that read
/// from the first element on read all of a tensor.
static constexpr int64_t kBefore = 16;

namespace {
/// One level of exchanges that travel together.
class Message {
public:
  explicit Message(ArrayRef<const SumExchange *> exchanges, size_t level)
      : first(exchanges.front()->of) {
    size_t count = exchanges.front()->levels[level].readers.size();
    readers.resize(count);
    for (const SumExchange *exchange : exchanges) {
      const SumExchange::Level &part = exchange->levels[level];
      rows.append(part.rows.begin(), part.rows.end());
      for (auto [all, own] : llvm::zip_equal(readers, part.readers))
        all.append(own.begin(), own.end());
    }
  }

  void join() {
    size_t count = readers.size();
    for (size_t piece = 0; piece < count; ++piece)
      sendFrom(piece);
  }

private:
  /// What is read of \p piece; its own joins read the message, too: else what
  /// a partial result is last reshaped by becomes a part of the join, and the
  /// message waits for the others'.
  void sendFrom(size_t piece) {
    SmallVector<Value> sent;
    for (const SmallVector<Value> &row : rows)
      sent.push_back(row[piece]);
    SmallVector<OpOperand *> uses;
    Operation *earliest = nullptr;
    for (ArrayRef<Operation *> all : readers)
      for (Operation *reader : all)
        for (OpOperand &read : reader->getOpOperands())
          if (llvm::is_contained(sent, read.get())) {
            uses.push_back(&read);
            if (!earliest || reader->isBeforeInBlock(earliest))
              earliest = reader;
          }
    if (!earliest)
      return;
    IRRewriter rewriter(earliest->getContext());
    if (failed(moveValueDefinitions(rewriter, sent, earliest)))
      return; // it waits for one of those that it would be sent with
    rewriter.setInsertionPoint(earliest);
    Value packed = pack(rewriter, sent, piece);
    for (OpOperand *use : uses)
      readRow(*use, sent, packed);
  }

  static bool areAlike(ArrayRef<Value> sent) {
    return llvm::all_of(sent, [&](Value row) {
      return row.getType() == sent.front().getType();
    });
  }

  static int64_t lengthOf(Value row) {
    return cast<RankedTensorType>(row.getType()).getNumElements();
  }

  /// By a loop: insertions would be seen through, and the sums sent by
  /// themselves.
  Value pack(OpBuilder &builder, ArrayRef<Value> sent, size_t piece) const {
    Location loc = namedAfter(first, ".sums.piece" + Twine(piece));
    return areAlike(sent) ? packRows(builder, loc, sent)
                          : packBehind(builder, loc, sent);
  }

  /// Of one of \p count values, by an index that \p bounds end.
  static Value choose(OpBuilder &body, Location loc, Value index,
                      ArrayRef<int64_t> ends, ArrayRef<Value> values) {
    Value chosen = values.back();
    for (size_t at = values.size() - 1; at-- > 0;) {
      Value end = arith::ConstantIndexOp::create(body, loc, ends[at]);
      Value isBefore = arith::CmpIOp::create(
          body, loc, arith::CmpIPredicate::slt, index, end);
      chosen = arith::SelectOp::create(body, loc, isBefore, values[at], chosen);
    }
    return chosen;
  }

  static Value packRows(OpBuilder &builder, Location loc,
                        ArrayRef<Value> sent) {
    auto type = cast<RankedTensorType>(sent.front().getType());
    MLIRContext *context = builder.getContext();
    SmallVector<int64_t> shape(type.getShape());
    shape.insert(shape.begin(), int64_t(sent.size()));
    unsigned rank = shape.size();
    Value empty =
        tensor::EmptyOp::create(builder, loc, shape, type.getElementType());
    SmallVector<AffineExpr> dims;
    for (unsigned dim = 1; dim < rank; ++dim)
      dims.push_back(getAffineDimExpr(dim, context));
    SmallVector<AffineMap> maps(sent.size(),
                                AffineMap::get(rank, 0, dims, context));
    maps.push_back(builder.getMultiDimIdentityMap(rank));
    SmallVector<utils::IteratorType> loops(rank, utils::IteratorType::parallel);
    auto made = linalg::GenericOp::create(
        builder, loc, empty.getType(), sent, empty, maps, loops,
        [&](OpBuilder &body, Location loc, ValueRange values) {
          Value row = linalg::IndexOp::create(body, loc, 0);
          auto ends = llvm::to_vector(llvm::seq<int64_t>(1, sent.size() + 1));
          Value chosen =
              choose(body, loc, row, ends, llvm::to_vector(values.drop_back()));
          linalg::YieldOp::create(body, loc, chosen);
        });
    return made.getResult(0);
  }

  static Value packBehind(OpBuilder &builder, Location loc,
                          ArrayRef<Value> sent) {
    SmallVector<int64_t> ends;
    for (Value row : sent)
      ends.push_back(lengthOf(row) + (ends.empty() ? kBefore : ends.back()));
    Value empty =
        tensor::EmptyOp::create(builder, loc, ends.back(),
                                getElementTypeOrSelf(sent.front().getType()));
    auto made = linalg::GenericOp::create(
        builder, loc, empty.getType(), ValueRange(), empty,
        builder.getMultiDimIdentityMap(1), utils::IteratorType::parallel,
        [&](OpBuilder &body, Location loc, ValueRange) {
          Value index = linalg::IndexOp::create(body, loc, 0);
          auto constant = [&](int64_t value) -> Value {
            return arith::ConstantIndexOp::create(body, loc, value);
          };
          SmallVector<Value> values;
          for (auto [row, end] : llvm::zip_equal(sent, ends)) {
            int64_t length = lengthOf(row);
            Value own =
                arith::SubIOp::create(body, loc, index, constant(end - length));
            own = arith::MaxSIOp::create(body, loc, own, constant(0));
            own = arith::MinSIOp::create(body, loc, own, constant(length - 1));
            values.push_back(tensor::ExtractOp::create(body, loc, row, own));
          }
          linalg::YieldOp::create(body, loc,
                                  choose(body, loc, index, ends, values));
        });
    return made.getResult(0);
  }

  /// Has \p use, which reads one of \p sent, read it in \p packed.
  static void readRow(OpOperand &use, ArrayRef<Value> sent, Value packed) {
    auto reader = cast<linalg::GenericOp>(use.getOwner());
    MLIRContext *context = reader.getContext();
    SmallVector<AffineMap> maps = reader.getIndexingMapsArray();
    AffineMap &map = maps[use.getOperandNumber()];
    SmallVector<AffineExpr> exprs(map.getResults());
    size_t row = llvm::find(sent, use.get()) - sent.begin();
    if (areAlike(sent)) {
      exprs.insert(exprs.begin(), getAffineConstantExpr(row, context));
    } else {
      int64_t start = kBefore;
      for (Value before : sent.take_front(row))
        start += lengthOf(before);
      exprs[0] = exprs[0] + start;
    }
    map = AffineMap::get(map.getNumDims(), 0, exprs, context);
    reader.setIndexingMapsAttr(Builder(context).getAffineMapArrayAttr(maps));
    use.set(packed);
  }

  Operation *first;
  SmallVector<SmallVector<Value>> rows;
  SmallVector<SmallVector<Operation *>> readers;
};
} // namespace

/// Whether all pieces wait for the sums. One that is for an update alone is
/// joined where that is, as a part of it; in a message with others it would
/// have that wait for the update's kernel.
static bool isForEach(const SumExchange &exchange) {
  return !exchange.levels.empty() &&
         llvm::all_of(exchange.levels.back().readers,
                      [](ArrayRef<Operation *> own) {
                        return !own.back()->use_empty();
                      });
}

void split::joinMessages(const PieceTable &table, const SplitPlan &plan,
                         const SumMessages &messages) {
  // Of as many pieces, and of one type; rows of different lengths lie behind
  // each other.
  using Key = std::tuple<Operation *, Type, size_t>;
  llvm::MapVector<Key, SmallVector<const SumExchange *>> groups;
  for (const SumExchange &exchange : table.exchanges()) {
    auto cut = plan.cutOf.find(exchange.of);
    if (!isForEach(exchange) || cut == plan.cutOf.end())
      continue;
    const SumExchange::Level &level = exchange.levels.front();
    Operation *first =
        messages.firstOf(sumBehind(exchange.of, plan.cuts[cut->second]));
    auto type = cast<RankedTensorType>(level.rows.front().front().getType());
    groups[{first, type.getRank() == 1 ? type.getElementType() : Type(type),
            level.readers.size()}]
        .push_back(&exchange);
  }
  for (const auto &[key, together] : groups) {
    const SumExchange::Level &level = together.front()->levels.front();
    if (together.size() + level.rows.size() > 2)
      for (size_t at = 0, n = together.front()->levels.size(); at < n; ++at)
        Message(together, at).join();
  }
}
