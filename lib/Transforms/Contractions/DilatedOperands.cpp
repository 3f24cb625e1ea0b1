//===- DilatedOperands.cpp - Contractions without holes ---------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The gradients of a convolution of stride s arrive as convolutions with a
// tensor that has s - 1 zeros between its elements: of two strides of two,
// three of four products are with zeros. Here they are left out:
//
// - Where the zeros lie along a loop of the sum (the gradient of the filters),
//   that loop steps from element to element, and s times as far through the
//   other operand.
// - Where they lie along a loop of the result (the gradient of the image, and
//   transposed convolutions), the results of each phase, modulo s, are a
//   convolution of their own, with the taps of that phase: the decomposition of
//   Dumoulin and Visin, "A guide to convolution arithmetic for deep learning"
//   (2016), section 4.6, as sub-pixel convolutions compute it (Shi et al., "Is
//   the deconvolution layer the same as a convolutional layer?", 2016).
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/Contraction.h"
#include "Baechi/Analysis/ExactSums.h"
#include "Baechi/Transforms/ContractionPatterns.h"
#include "mlir/Analysis/FlatLinearValueConstraints.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Utils/Utils.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::linalg;
using namespace baechi;

namespace {
/// Products that must be saved for an operator to become one a phase, each of
/// which costs a call, and another that puts their results together.
constexpr int64_t kWorthPhases = 1 << 18;
/// Phases that an operator may become: at stride 16 nothing is left to add up.
constexpr int64_t kMostPhases = 16;

/// A dimension of the dilated operand: `count` elements, the first at `offset`,
/// `stride` apart, all else zero; and the loops that run along it.
struct Axis {
  unsigned dim = 0;
  int64_t offset = 0, stride = 1, count = 0;
  std::optional<unsigned> sum, result;
};

/// A contraction with a dilated operand.
struct Dilated {
  Contraction contraction;
  /// The number of the operand.
  unsigned side = 0;
  tensor::InsertSliceOp insertion;
  /// Of the contraction's loops.
  SmallVector<int64_t> extents;
  /// What runs along loops of the sum alone, and along the result.
  SmallVector<Axis> sums, results;
};

/// The part of a contraction that computes every stride-th element of the
/// result: of each of `Dilated::results`, one entry.
struct Phase {
  /// Where results, taps and elements begin, and how many results and taps
  /// there are.
  struct Along {
    int64_t result = 0, results = 0, tap = 0, taps = 0, element = 0;
  };
  SmallVector<Along> along;

  bool isEmpty() const {
    return llvm::any_of(
        along, [](const Along &at) { return at.results <= 0 || at.taps <= 0; });
  }
};

/// The coefficients of the loops in `expr`, which has no other part.
std::optional<SmallVector<int64_t>> coefficientsOf(AffineExpr expr,
                                                   unsigned loops) {
  SmallVector<int64_t> coefficients;
  if (failed(getFlattenedAffineExpr(expr, loops, /*numSymbols=*/0,
                                    &coefficients)) ||
      coefficients.size() != loops + 1 || coefficients.pop_back_val() != 0)
    return std::nullopt;
  return coefficients;
}

bool isZeros(Value tensor) {
  if (auto fill = tensor.getDefiningOp<FillOp>())
    return matchPattern(fill.value(), m_AnyZeroFloat()) ||
           matchPattern(fill.value(), m_Zero());
  DenseElementsAttr elements;
  if (!matchPattern(tensor, m_Constant(&elements)) || !elements.isSplat())
    return false;
  auto number = elements.getSplatValue<Attribute>();
  if (auto real = dyn_cast<FloatAttr>(number))
    return real.getValue().isZero();
  auto whole = dyn_cast<IntegerAttr>(number);
  return whole && whole.getValue().isZero();
}

/// How many dimensions of `map` the loop runs along.
unsigned countUses(AffineMap map, unsigned loop) {
  return llvm::count_if(map.getResults(), [&](AffineExpr expr) {
    return expr.isFunctionOfDim(loop);
  });
}

/// The dimension that is `loop`, where no other one depends on it.
std::optional<unsigned> onlyDim(AffineMap map, unsigned loop) {
  if (countUses(map, loop) != 1)
    return std::nullopt;
  return map.getResultPosition(getAffineDimExpr(loop, map.getContext()));
}

/// Finds the loops along an axis, as far as they are known to leave out zeros.
bool setLoops(const Dilated &found, Axis &axis) {
  GenericOp op = found.contraction.op;
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  AffineMap other = maps[1 - found.side];
  auto coefficients =
      coefficientsOf(maps[found.side].getResult(axis.dim), op.getNumLoops());
  if (!coefficients)
    return false;
  for (auto [loop, coefficient] : llvm::enumerate(*coefficients)) {
    if (coefficient == 0)
      continue;
    bool isSum = found.contraction.classes[loop] == LoopClass::K;
    std::optional<unsigned> &place = isSum ? axis.sum : axis.result;
    if (coefficient != 1 || place || countUses(maps[found.side], loop) != 1)
      return false;
    place = loop;
  }
  if (!axis.result)
    return axis.sum.has_value();
  return !other.isFunctionOfDim(*axis.result) &&
         onlyDim(maps.back(), *axis.result) &&
         (!axis.sum || onlyDim(other, *axis.sum));
}

/// Matches a contraction whose operand `side` has zeros between its elements.
std::optional<Dilated> matchDilated(GenericOp op, unsigned side) {
  auto contraction = matchContraction(op);
  if (!contraction || !startsFromZero(*contraction))
    return std::nullopt;
  Dilated found{*contraction,
                side,
                op.getDpsInputs()[side].getDefiningOp<tensor::InsertSliceOp>(),
                op.getStaticLoopRanges(),
                {},
                {}};
  tensor::InsertSliceOp insertion = found.insertion;
  if (!insertion || ShapedType::isDynamicShape(insertion.getStaticOffsets()) ||
      ShapedType::isDynamicShape(insertion.getStaticStrides()) ||
      !isZeros(insertion.getDest()) ||
      insertion.getSourceType().getRank() != insertion.getDestType().getRank())
    return std::nullopt;
  bool dilates = false;
  for (auto [dim, count] :
       llvm::enumerate(insertion.getSourceType().getShape())) {
    Axis axis;
    axis.dim = dim;
    axis.offset = insertion.getStaticOffset(dim);
    axis.stride = count == 1 ? 1 : insertion.getStaticStride(dim);
    axis.count = count;
    dilates |= axis.stride > 1;
    if (count == insertion.getDestType().getDimSize(dim))
      continue;
    if (!setLoops(found, axis))
      return std::nullopt;
    (axis.result ? found.results : found.sums).push_back(axis);
  }
  return dilates ? std::optional(std::move(found)) : std::nullopt;
}

/// The phases that have products.
SmallVector<Phase> phasesOf(const Dilated &dilated) {
  ArrayRef<int64_t> extents = dilated.extents;
  SmallVector<Phase> phases(1);
  for (const Axis &axis : dilated.results) {
    SmallVector<Phase> longer;
    for (const Phase &phase : phases)
      for (int64_t first = 0; first < axis.stride; ++first) {
        Phase::Along at;
        at.result = first;
        at.results =
            llvm::divideCeilSigned(extents[*axis.result] - first, axis.stride);
        // Taps that meet elements: offset = first + tap, modulo stride.
        at.tap = llvm::mod(axis.offset - first, axis.stride);
        int64_t taps = axis.sum ? extents[*axis.sum] : 1;
        at.taps = llvm::divideCeilSigned(taps - at.tap, axis.stride);
        at.element = (first + at.tap - axis.offset) / axis.stride;
        longer.push_back(phase);
        longer.back().along.push_back(at);
      }
    phases = std::move(longer);
  }
  llvm::erase_if(phases, [](const Phase &phase) { return phase.isEmpty(); });
  return phases;
}

/// Whether phases save more than they cost.
bool areWorthIt(const Dilated &dilated, ArrayRef<Phase> phases) {
  if (dilated.results.empty())
    return true;
  SmallVector<int64_t> extents = dilated.extents;
  int64_t before = 1, left = 0, around = 1;
  for (int64_t extent : extents)
    before *= extent;
  for (const Axis &axis : dilated.sums)
    extents[*axis.sum] = axis.count;
  for (const Axis &axis : dilated.results) {
    extents[*axis.result] = 1;
    if (axis.sum)
      extents[*axis.sum] = 1;
  }
  for (int64_t extent : extents)
    around *= extent;
  for (const Phase &phase : phases) {
    int64_t products = around;
    for (const Phase::Along &at : phase.along)
      products *= at.results * at.taps;
    left += products;
  }
  return phases.size() <= kMostPhases && before - left >= kWorthPhases;
}

/// A slice of a tensor of static shape, dimension by dimension.
class Slice {
public:
  explicit Slice(Value of) : tensor(of) {
    shape = cast<RankedTensorType>(of.getType()).getShape();
    offsets.assign(shape.size(), 0);
    strides.assign(shape.size(), 1);
    sizes.assign(shape.begin(), shape.end());
  }
  void set(unsigned dim, int64_t offset, int64_t size, int64_t stride = 1) {
    offsets[dim] = offset;
    sizes[dim] = size;
    strides[dim] = size == 1 ? 1 : stride;
  }
  Value extract(OpBuilder &builder, Location loc) const {
    if (ArrayRef(sizes) == shape)
      return tensor;
    return tensor::ExtractSliceOp::create(builder, loc, tensor, of(offsets),
                                          of(sizes), of(strides));
  }
  /// The tensor with `part` in the place of the slice.
  Value insert(OpBuilder &builder, Location loc, Value part) const {
    return tensor::InsertSliceOp::create(builder, loc, part, tensor,
                                         of(offsets), of(sizes), of(strides));
  }

private:
  SmallVector<OpFoldResult> of(ArrayRef<int64_t> numbers) const {
    return getAsIndexOpFoldResult(tensor.getContext(), numbers);
  }

  Value tensor;
  ArrayRef<int64_t> shape;
  SmallVector<int64_t> offsets, sizes, strides;
};

class Rewrite {
public:
  Rewrite(IRRewriter &rewriter, const Dilated &dilated)
      : rewriter(rewriter), dilated(dilated), op(dilated.contraction.op),
        loc(op.getLoc()), maps(op.getIndexingMapsArray()) {
    rewriter.setInsertionPoint(op);
    stepOverHoles();
  }

  /// The result, of all phases.
  Value compute(ArrayRef<Phase> phases) {
    auto type = cast<RankedTensorType>(op.getResult(0).getType());
    tensor::InsertSliceOp insertion = dilated.insertion;
    Value elements = insertion.getSource();
    if (dilated.results.empty())
      return multiply(elements, other, type);
    SmallVector<int64_t> low = padAround(elements, phases);
    // Where each result is of a phase, nothing has to be there before.
    int64_t all = 1;
    for (const Axis &axis : dilated.results)
      all *= std::min(axis.stride, dilated.extents[*axis.result]);
    Value whole = int64_t(phases.size()) == all ? empty(type) : zeros(type);
    for (const Phase &phase : phases) {
      Slice source(elements), taps(other), results(whole);
      SmallVector<int64_t> shape(type.getShape());
      for (auto [axis, at, before] :
           llvm::zip_equal(dilated.results, phase.along, low)) {
        source.set(axis.dim, at.element + before, at.results + at.taps - 1);
        if (axis.sum)
          taps.set(*onlyDim(maps[1 - dilated.side], *axis.sum), at.tap, at.taps,
                   axis.stride);
        unsigned dim = *onlyDim(maps.back(), *axis.result);
        shape[dim] = at.results;
        results.set(dim, at.result, at.results, axis.stride);
      }
      Value part = multiply(source.extract(rewriter, loc),
                            taps.extract(rewriter, loc), type.clone(shape));
      whole = results.insert(rewriter, loc, part);
    }
    return whole;
  }

private:
  Value empty(RankedTensorType type) {
    return tensor::EmptyOp::create(rewriter, loc, type.getShape(),
                                   type.getElementType());
  }
  Value zeros(RankedTensorType type) {
    auto fill = op.getDpsInits()[0].getDefiningOp<FillOp>();
    return FillOp::create(rewriter, loc, fill.value(), empty(type)).result();
  }

  /// Makes the loops of the sum run along the elements alone: so the other
  /// operand is read from the first one's place, stride by stride.
  void stepOverHoles() {
    other = op.getDpsInputs()[1 - dilated.side];
    AffineMap &map = maps[1 - dilated.side];
    ArrayRef<int64_t> extents = dilated.extents;
    Slice slice(other);
    for (auto [dim, expr] : llvm::enumerate(map.getResults())) {
      auto shape = cast<RankedTensorType>(other.getType()).getShape();
      int64_t begin = 0;
      SmallVector<AffineExpr> loops;
      for (unsigned loop = 0; loop < map.getNumDims(); ++loop)
        loops.push_back(rewriter.getAffineDimExpr(loop));
      for (const Axis &axis : dilated.sums) {
        auto coefficients = *coefficientsOf(expr, map.getNumDims());
        int64_t coefficient = coefficients[*axis.sum];
        if (coefficient == 0)
          continue;
        coefficients[*axis.sum] = 0;
        bool isAlone =
            coefficient == 1 &&
            llvm::all_of(llvm::zip_equal(coefficients, extents), [](auto pair) {
              return std::get<0>(pair) == 0 || std::get<1>(pair) == 1;
            });
        if (isAlone) {
          slice.set(dim, axis.offset, axis.count, axis.stride);
          continue;
        }
        begin += coefficient * axis.offset;
        loops[*axis.sum] = loops[*axis.sum] * axis.stride;
      }
      if (begin > 0)
        slice.set(dim, begin, shape[dim] - begin);
      expressions.push_back(expr.replaceDims(loops));
    }
    other = slice.extract(rewriter, loc);
    map = AffineMap::get(map.getNumDims(), 0, expressions, map.getContext());
  }

  /// Puts zeros around the elements as far as a phase reads beyond them, the
  /// same for all, and says how many come before.
  SmallVector<int64_t> padAround(Value &elements, ArrayRef<Phase> phases) {
    auto type = cast<RankedTensorType>(elements.getType());
    SmallVector<int64_t> before, low(type.getRank(), 0), shape(type.getShape());
    for (auto [index, axis] : llvm::enumerate(dilated.results)) {
      int64_t first = 0, end = axis.count;
      for (const Phase &phase : phases) {
        const Phase::Along &at = phase.along[index];
        first = std::min(first, at.element);
        end = std::max(end, at.element + at.results + at.taps - 1);
      }
      before.push_back(-first);
      low[axis.dim] = -first;
      shape[axis.dim] = end - first;
    }
    if (ArrayRef(shape) == type.getShape())
      return before;
    Value zero = arith::ConstantOp::create(
        rewriter, loc, rewriter.getZeroAttr(type.getElementType()));
    SmallVector<int64_t> high;
    for (auto [size, first, count] :
         llvm::zip_equal(shape, low, type.getShape()))
      high.push_back(size - first - count);
    elements = tensor::PadOp::create(
        rewriter, loc, type.clone(shape), elements,
        getAsIndexOpFoldResult(rewriter.getContext(), low),
        getAsIndexOpFoldResult(rewriter.getContext(), high), zero);
    return before;
  }

  Value multiply(Value elements, Value factors, RankedTensorType type) {
    SmallVector<Value> inputs{factors, factors};
    inputs[dilated.side] = elements;
    auto product = GenericOp::create(rewriter, loc, type, inputs, zeros(type),
                                     maps, op.getIteratorTypesArray());
    IRMapping mapping;
    op.getRegion().cloneInto(&product.getRegion(), mapping);
    product->setDiscardableAttrs(op->getDiscardableAttrDictionary());
    return product.getResult(0);
  }

  IRRewriter &rewriter;
  const Dilated &dilated;
  GenericOp op;
  Location loc;
  SmallVector<AffineMap> maps;
  SmallVector<AffineExpr> expressions;
  Value other;
};

bool skipZeros(IRRewriter &rewriter, GenericOp op, unsigned side,
               bool inSumsAlone) {
  std::optional<Dilated> dilated = matchDilated(op, side);
  if (!dilated || (inSumsAlone && !dilated->results.empty()))
    return false;
  SmallVector<Phase> phases = phasesOf(*dilated);
  if (!areWorthIt(*dilated, phases))
    return false;
  tensor::InsertSliceOp insertion = dilated->insertion;
  Value result = Rewrite(rewriter, *dilated).compute(phases);
  rewriter.replaceOp(op, result);
  if (insertion->use_empty())
    rewriter.eraseOp(insertion);
  return true;
}
} // namespace

void baechi::skipDilationZeros(Operation *root, bool inSumsAlone,
                               const IsKept &isKept) {
  IRRewriter rewriter(root->getContext());
  // Parts may have a second such operand; they come behind what they replace.
  for (unsigned side : {0, 1}) {
    SmallVector<GenericOp> operations;
    root->walk([&](GenericOp op) { operations.push_back(op); });
    for (GenericOp op : operations) {
      auto step = op->getParentOfType<func::FuncOp>();
      // Long sums run in blocks, which round otherwise without zeros: once
      // sums have one order it is too late for these.
      bool isLong = termsOf(op) > kShortSum,
           isFixed = step && isExact(step) && isLong;
      if (!isFixed && !(isKept && isKept(op)))
        skipZeros(rewriter, op, side, inSumsAlone && !isLong);
    }
  }
}
