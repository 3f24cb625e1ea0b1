//===- MakeMoments.cpp - Mean and variance of pieces ----------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/Program.h"
#include "Baechi/Dialect/Baechi.h"
#include "Moments.h"
#include "Pieces.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace baechi;
using namespace baechi::split;

namespace {
/// The moments of some of the data.
struct Part {
  Value sum, squares;
  int64_t terms;
};

class Merger {
public:
  Merger(OpBuilder &builder, const Moments &moments)
      : builder(builder), moments(moments),
        type(cast<RankedTensorType>(moments.sum->getResult(0).getType())) {}

  /// Of one piece: its own mean is as good as any to take off. What its
  /// rounding leaves is summed up, too, and put right: pieces whose means
  /// differ by much are as exact as the whole.
  Part ofPiece(Value data, Value sum, int64_t terms, size_t number) {
    loc = namedAfter(moments.squares, ".piece" + Twine(number));
    AffineMap same = builder.getMultiDimIdentityMap(type.getRank());
    Value mean =
        elements({sum}, {same}, 1, [&](OpBuilder &body, ValueRange read) {
          return SmallVector<Value>{divided(body, read[0], terms)};
        })[0];
    auto squares = cast<linalg::LinalgOp>(moments.squares);
    SmallVector<AffineMap> maps = squares.getIndexingMapsArray();
    Operation *add = &squares.getBlock()->front();
    auto summed = linalg::GenericOp::create(
        builder, loc, {type, type}, ValueRange{data, mean},
        ValueRange{neutralTensor(builder, loc, type, add),
                   neutralTensor(builder, loc, type, add)},
        ArrayRef{maps[0], maps[1], maps[1], maps[1]},
        squares.getIteratorTypesArray(),
        [&](OpBuilder &body, Location loc, ValueRange read) {
          Value apart = arith::SubFOp::create(body, loc, read[0], read[1]);
          Value square = arith::MulFOp::create(body, loc, apart, apart);
          linalg::YieldOp::create(
              body, loc,
              ValueRange{arith::AddFOp::create(body, loc, read[2], square),
                         arith::AddFOp::create(body, loc, read[3], apart)});
        });
    SmallVector<Value> right =
        elements({mean, summed.getResult(0), summed.getResult(1)},
                 {same, same, same}, 2, [&](OpBuilder &body, ValueRange read) {
                   Value left = ifFinite(body, read[0], read[2]);
                   Value rest = divided(body, left, terms);
                   Value rounded = arith::MulFOp::create(
                       body, loc, read[0], count(body, double(terms)));
                   Value more = arith::MulFOp::create(body, loc, left, rest);
                   return SmallVector<Value>{
                       arith::AddFOp::create(body, loc, rounded, left),
                       arith::SubFOp::create(body, loc, read[1], more)};
                 });
    return {right[0], right[1], terms};
  }

  /// For each piece those of all.
  SmallVector<Part> forEach(ArrayRef<Part> parts) {
    SmallVector<Part> each(parts);
    size_t count = parts.size();
    if (!llvm::isPowerOf2_64(count)) {
      SmallVector<Value> sent = packed(parts);
      for (auto [number, part] : llvm::enumerate(each)) {
        part = merged(sent[0], parts[0].terms, sent[1], parts[1].terms, number);
        for (size_t other = 2; other < count; ++other)
          part = merged(packed(part, number), part.terms, sent[other],
                        parts[other].terms, number);
      }
      return each;
    }
    for (size_t bit = 1; bit < count; bit *= 2) {
      SmallVector<Part> before = each;
      SmallVector<Value> sent = packed(before);
      for (auto [number, part] : llvm::enumerate(each)) {
        size_t low = number & ~bit, high = number | bit;
        part = merged(sent[low], before[low].terms, sent[high],
                      before[high].terms, number);
      }
    }
    return each;
  }

private:
  Value count(OpBuilder &body, double value) const {
    return arith::ConstantOp::create(
        body, loc, body.getFloatAttr(type.getElementType(), value));
  }

  Value divided(OpBuilder &body, Value sum, int64_t terms) const {
    return arith::DivFOp::create(body, loc, sum, count(body, double(terms)));
  }

  /// \p value where \p mean is a finite number, else 0: infinite sums stay so.
  Value ifFinite(OpBuilder &body, Value mean, Value value) const {
    Value zero = count(body, 0.0);
    Value none = arith::SubFOp::create(body, loc, mean, mean); // else NaN
    Value finite =
        arith::CmpFOp::create(body, loc, arith::CmpFPredicate::OEQ, none, zero);
    return arith::SelectOp::create(body, loc, finite, value, zero);
  }

  /// \p first less \p second; 0 also where both are the same infinity.
  Value difference(OpBuilder &body, Value first, Value second) const {
    Value same = arith::CmpFOp::create(body, loc, arith::CmpFPredicate::OEQ,
                                       first, second);
    Value apart = arith::SubFOp::create(body, loc, first, second);
    return arith::SelectOp::create(body, loc, same, count(body, 0.0), apart);
  }

  /// One loop nest that makes \p results tensors of what it reads by \p maps.
  SmallVector<Value>
  elements(ValueRange read, SmallVector<AffineMap> maps, unsigned results,
           function_ref<SmallVector<Value>(OpBuilder &, ValueRange)> compute) {
    SmallVector<Value> empty;
    for (unsigned i = 0; i < results; ++i)
      empty.push_back(tensor::EmptyOp::create(builder, loc, type.getShape(),
                                              type.getElementType()));
    int64_t rank = type.getRank();
    maps.append(results, builder.getMultiDimIdentityMap(rank));
    SmallVector<utils::IteratorType> loops(rank, utils::IteratorType::parallel);
    auto made = linalg::GenericOp::create(
        builder, loc, SmallVector<Type>(results, type), read, empty, maps,
        loops, [&](OpBuilder &body, Location loc, ValueRange arguments) {
          linalg::YieldOp::create(body, loc, compute(body, arguments));
        });
    return llvm::to_vector_of<Value>(made.getResults());
  }

  /// Both sums of a part as one tensor, by a loop over the two: insertions
  /// would be seen through, and the sums sent by themselves.
  Value packed(const Part &part, size_t piece) {
    loc = namedAfter(moments.squares, ".moments.piece" + Twine(piece));
    MLIRContext *context = builder.getContext();
    SmallVector<int64_t> shape(type.getShape());
    shape.insert(shape.begin(), 2);
    unsigned rank = shape.size();
    Value empty =
        tensor::EmptyOp::create(builder, loc, shape, type.getElementType());
    SmallVector<AffineExpr> dims;
    for (unsigned dim = 1; dim < rank; ++dim)
      dims.push_back(getAffineDimExpr(dim, context));
    AffineMap read = AffineMap::get(rank, 0, dims, context);
    AffineMap written = builder.getMultiDimIdentityMap(rank);
    SmallVector<utils::IteratorType> loops(rank, utils::IteratorType::parallel);
    auto made = linalg::GenericOp::create(
        builder, loc, empty.getType(), ValueRange{part.sum, part.squares},
        empty, ArrayRef{read, read, written}, loops,
        [&](OpBuilder &body, Location loc, ValueRange values) {
          Value half = linalg::IndexOp::create(body, loc, 0);
          Value zero = arith::ConstantIndexOp::create(body, loc, 0);
          Value first = arith::CmpIOp::create(
              body, loc, arith::CmpIPredicate::eq, half, zero);
          Value chosen =
              arith::SelectOp::create(body, loc, first, values[0], values[1]);
          linalg::YieldOp::create(body, loc, chosen);
        });
    return made.getResult(0);
  }

  SmallVector<Value> packed(ArrayRef<Part> parts) {
    SmallVector<Value> sent;
    for (auto [piece, part] : llvm::enumerate(parts))
      sent.push_back(packed(part, piece));
    return sent;
  }

  /// The \p first of two packed parts and the \p second, merged by \p piece.
  Part merged(Value first, int64_t ofFirst, Value second, int64_t ofSecond,
              size_t piece) {
    loc = namedAfter(moments.squares, ".sum.piece" + Twine(piece));
    int64_t terms = ofFirst + ofSecond;
    double weight = double(ofFirst) * double(ofSecond) / double(terms);
    MLIRContext *context = builder.getContext();
    unsigned rank = type.getRank();
    auto half = [&](int64_t number) {
      SmallVector<AffineExpr> exprs{getAffineConstantExpr(number, context)};
      for (unsigned dim = 0; dim < rank; ++dim)
        exprs.push_back(getAffineDimExpr(dim, context));
      return AffineMap::get(rank, 0, exprs, context);
    };
    SmallVector<Value> both = elements(
        {first, second, first, second}, {half(0), half(0), half(1), half(1)}, 2,
        [&](OpBuilder &body, ValueRange read) {
          Value apart = difference(body, divided(body, read[0], ofFirst),
                                   divided(body, read[1], ofSecond));
          Value square = arith::MulFOp::create(body, loc, apart, apart);
          Value between =
              arith::MulFOp::create(body, loc, square, count(body, weight));
          Value within = arith::AddFOp::create(body, loc, read[2], read[3]);
          return SmallVector<Value>{
              arith::AddFOp::create(body, loc, read[0], read[1]),
              arith::AddFOp::create(body, loc, within, between)};
        });
    both[0].getDefiningOp()->setAttr(BaechiDialect::kPartials,
                                     builder.getUnitAttr());
    return {both[0], both[1], terms};
  }

  OpBuilder &builder;
  const Moments &moments;
  RankedTensorType type;
  Location loc = UnknownLoc::get(builder.getContext());
};
} // namespace

void split::makeMoments(OpBuilder &builder, const Moments &moments,
                        const Cut &cut, PieceTable &table) {
  makePieces(builder, moments.sum, cut, table);
  Value sum = moments.sum->getResult(0),
        squares = moments.squares->getResult(0);
  SmallVector<Value> sums(table.partials(sum));
  const OperationCut &how = cut.operations.find(moments.sum)->second;
  SmallVector<Value> data =
      table.pieces(moments.data, cut.sizes, *how.operands[0]);
  Merger merger(builder, moments);
  SmallVector<Part> parts;
  for (auto [number, size] : llvm::enumerate(cut.sizes))
    parts.push_back(merger.ofPiece(data[number], sums[number],
                                   moments.terms / cut.extent() * size,
                                   number));
  SmallVector<Value> ofSum, ofSquares, ownSquares;
  for (const Part &part : merger.forEach(parts)) {
    ofSum.push_back(part.sum);
    ofSquares.push_back(part.squares);
  }
  for (const Part &part : parts)
    ownSquares.push_back(part.squares);
  table.setSums(sum, ofSum);
  table.setPartials(squares, ownSquares, how.combiners.front(),
                    /*chained=*/false);
  table.setSums(squares, ofSquares);
}
