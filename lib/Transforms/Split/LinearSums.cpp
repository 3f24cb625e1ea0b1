//===- LinearSums.cpp - Sums that need not wait for others ----------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LinearSums.h"
#include "Pieces.h"
#include "SumForms.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace baechi;
using namespace baechi::split;

/// Each is a row of the message.
static constexpr unsigned kMostFactors = 3;
/// Of an expression, in operations.
static constexpr unsigned kDeepest = 12;

namespace {
/// A part of what is summed up: `a`, and of each factor what it is multiplied
/// with. \p Part is what is known of one.
template <typename Part> struct Linear {
  std::optional<Part> a;
  SmallVector<std::optional<Part>, kMostFactors> b;
  /// It is this factor alone.
  std::optional<unsigned> factor;

  bool isFree() const { return a && b.empty(); }
};

/// Takes a sum's terms apart. \p compute is told an operation and what it
/// reads, and gives a part of its result.
template <typename Part> class TakeApart {
public:
  using Form = Linear<Part>;
  using Compute = function_ref<Part(Operation *, ArrayRef<Part>)>;
  TakeApart(function_ref<std::optional<Form>(Value)> leaf, Compute compute)
      : leaf(leaf), compute(compute) {}

  std::optional<Form> of(Value value, unsigned depth = 0) {
    if (std::optional<Form> found = leaf(value))
      return found;
    std::optional<ElementOf> element = elementOf(value);
    if (!element || depth > kDeepest)
      return std::nullopt;
    Operation *op = element->op;
    if (!isa<arith::AddFOp, arith::SubFOp, arith::NegFOp, arith::MulFOp,
             arith::DivFOp>(op))
      return std::nullopt;
    SmallVector<Form, 2> read;
    for (Value operand : element->operands) {
      std::optional<Form> form = of(operand, depth + 1);
      if (!form)
        return std::nullopt;
      read.push_back(std::move(*form));
    }
    if (isa<arith::MulFOp>(op))
      return read[1].isFree()   ? scaled(op, read[0], read[1], false)
             : read[0].isFree() ? scaled(op, read[1], read[0], true)
                                : std::nullopt;
    if (isa<arith::DivFOp>(op))
      return read[1].isFree() && !read[0].factor
                 ? scaled(op, read[0], read[1], false)
                 : std::nullopt;
    if (llvm::any_of(read, [](const Form &form) { return form.factor; }))
      return std::nullopt;
    return isa<arith::NegFOp>(op) ? negated(op, read[0])
                                  : added(op, read[0], read[1]);
  }

private:
  std::optional<Form> scaled(Operation *op, const Form &form, const Form &by,
                             bool isSecond) {
    auto part = [&](const Part &of) {
      return isSecond ? compute(op, {*by.a, of}) : compute(op, {of, *by.a});
    };
    Form result;
    if (form.factor) {
      result.b.resize(*form.factor + 1);
      result.b.back() = *by.a;
      return result;
    }
    if (form.a)
      result.a = part(*form.a);
    for (const std::optional<Part> &each : form.b)
      result.b.push_back(each ? std::optional(part(*each)) : std::nullopt);
    return result;
  }

  std::optional<Form> negated(Operation *op, const Form &form) {
    Form result;
    if (form.a)
      result.a = compute(op, {*form.a});
    for (const std::optional<Part> &each : form.b)
      result.b.push_back(each ? std::optional(compute(op, {*each}))
                              : std::nullopt);
    return result;
  }

  std::optional<Form> added(Operation *op, Form first, Form second) {
    Form result;
    size_t longest = std::max(first.b.size(), second.b.size());
    first.b.resize(longest);
    second.b.resize(longest);
    auto part = [&](std::optional<Part> a, std::optional<Part> b) {
      if (a && b)
        return std::optional(compute(op, {*a, *b}));
      // Less something: what is less, as nothing less it.
      return b && isa<arith::SubFOp>(op) ? std::optional(compute(op, {*b}))
             : a                         ? a
                                         : b;
    };
    result.a = part(first.a, second.a);
    for (auto [a, b] : llvm::zip_equal(first.b, second.b))
      result.b.push_back(part(a, b));
    return result;
  }

  function_ref<std::optional<Form>(Value)> leaf;
  Compute compute;
};
} // namespace

/// The factor that \p value repeats, for sums of \p sum's type.
static Value factorOf(Value value, linalg::LinalgOp sum) {
  SmallVector<AffineMap> maps = sum.getIndexingMapsArray();
  AffineMap where = maps[0];
  Value source = repeatedSource(value, where);
  bool isFactor = source != value &&
                  source.getType() == sum->getResult(0).getType() &&
                  simplifyAffineMap(where) == maps[1];
  return isFactor ? source : Value();
}

std::optional<LinearSum> split::linearSumOf(Operation *op,
                                            function_ref<bool(Value)> waits) {
  linalg::LinalgOp sum = sumFromZero(op);
  if (!sum || !sum.getIndexingMapsArray()[0].isPermutation() ||
      !waits(sum.getDpsInputs()[0]))
    return std::nullopt;
  Value input = sum.getDpsInputs()[0];
  LinearSum linear{op, {}, {}, false};
  using Form = Linear<bool>;
  auto leaf = [&](Value value) -> std::optional<Form> {
    Form form;
    if (!waits(value)) {
      if (value.getType() != input.getType())
        return std::nullopt;
      linear.terms.insert(value);
      form.a = true;
      return form;
    }
    Value factor = factorOf(value, sum);
    if (!factor)
      return std::nullopt;
    auto *known = llvm::find(linear.factors, factor);
    form.factor = known - linear.factors.begin();
    if (known == linear.factors.end())
      linear.factors.push_back(factor);
    return form;
  };
  auto compute = [](Operation *, ArrayRef<bool>) { return true; };
  std::optional<Form> form = TakeApart<bool>(leaf, compute).of(input);
  if (!form || form->factor || linear.factors.empty() ||
      linear.factors.size() > kMostFactors)
    return std::nullopt;
  linear.hasRest = form->a.has_value();
  return linear;
}

namespace {
/// Makes a sum that was taken apart.
class Maker {
public:
  Maker(OpBuilder &builder, const LinearSum &linear, const Cut &cut,
        PieceTable &table)
      : builder(builder), linear(linear),
        sum(cast<linalg::LinalgOp>(linear.sum)), cut(cut), table(table),
        type(cast<RankedTensorType>(linear.sum->getResult(0).getType())),
        add(&sum.getBlock()->front()) {}

  void run() {
    size_t count = cut.sizes.size();
    SmallVector<SmallVector<Value>> sums =
        table.exchange(sum, makePartials(), add);
    for (Value factor : linear.factors)
      sums.push_back(table.wholeForEach(factor, count));
    SmallVector<Value> results;
    for (size_t number = 0; number < count; ++number)
      results.push_back(combine(columnOf(sums, number), number));
    Value value = sum->getResult(0);
    table.setPartials(value, results, add, /*chained=*/false);
    table.setSums(value, results);
  }

private:
  static SmallVector<Value> columnOf(ArrayRef<SmallVector<Value>> rows,
                                     size_t number) {
    return llvm::map_to_vector(
        rows, [&](const SmallVector<Value> &row) { return row[number]; });
  }

  /// The partial sums of a and of each b: of each piece.
  SmallVector<SmallVector<Value>> makePartials() {
    const OperationCut &how = cut.operations.find(sum)->second;
    SmallVector<SmallVector<Value>> terms;
    for (Value term : linear.terms)
      terms.push_back(table.pieces(term, cut.sizes, *how.operands[0]));
    SmallVector<SmallVector<Value>> partials(linear.factors.size() +
                                             linear.hasRest);
    for (size_t number = 0, count = cut.sizes.size(); number < count; ++number)
      for (auto [row, value] :
           llvm::zip_equal(partials, sumPiece(columnOf(terms, number), number)))
        row.push_back(value);
    return partials;
  }

  SmallVector<Value> sumPiece(ArrayRef<Value> terms, size_t number) {
    Location loc = namedAfter(sum, ".piece" + Twine(number));
    SmallVector<AffineMap> maps = sum.getIndexingMapsArray();
    size_t rows = linear.factors.size() + linear.hasRest;
    SmallVector<AffineMap> all(terms.size(), maps[0]);
    all.append(rows, maps[1]);
    SmallVector<Value> starts;
    for (size_t row = 0; row < rows; ++row)
      starts.push_back(neutralTensor(builder, loc, type, add));
    auto made = linalg::GenericOp::create(
        builder, loc, SmallVector<Type>(rows, type), terms, starts, all,
        sum.getIteratorTypesArray(),
        [&](OpBuilder &body, Location loc, ValueRange arguments) {
          SmallVector<Value> next;
          for (auto [term, before] :
               llvm::zip_equal(termsOf(body, loc, arguments),
                               arguments.drop_front(terms.size())))
            next.push_back(
                arith::AddFOp::create(body, loc, before, term).getResult());
          linalg::YieldOp::create(body, loc, next);
        });
    return llvm::to_vector_of<Value>(made.getResults());
  }

  /// Of one element: a, and each b.
  SmallVector<Value> termsOf(OpBuilder &body, Location loc,
                             ValueRange arguments) {
    using Form = Linear<Value>;
    auto leaf = [&](Value value) -> std::optional<Form> {
      Form form;
      auto term = llvm::find(linear.terms, value);
      if (term != linear.terms.end()) {
        form.a = arguments[term - linear.terms.begin()];
        return form;
      }
      auto factor = llvm::find(linear.factors, factorOf(value, sum));
      if (factor == linear.factors.end())
        return std::nullopt;
      form.factor = factor - linear.factors.begin();
      return form;
    };
    auto compute = [&](Operation *op, ArrayRef<Value> read) -> Value {
      if (isa<arith::SubFOp>(op) && read.size() == 1)
        return arith::NegFOp::create(body, loc, read[0]);
      Operation *own = op->clone();
      own->setOperands(read);
      own->getResult(0).setType(type.getElementType());
      body.insert(own);
      return own->getResult(0);
    };
    Form form = *TakeApart<Value>(leaf, compute).of(sum.getDpsInputs()[0]);
    SmallVector<Value> terms;
    if (form.a)
      terms.push_back(*form.a);
    for (const std::optional<Value> &b : form.b)
      terms.push_back(*b);
    return terms;
  }

  /// The sum of a, if there is one, and of each b times its factor.
  Value combine(ArrayRef<Value> read, size_t number) {
    Location loc = namedAfter(sum, ".sum.piece" + Twine(number));
    int64_t rank = type.getRank();
    Value empty = tensor::EmptyOp::create(builder, loc, type.getShape(),
                                          type.getElementType());
    SmallVector<AffineMap> maps(read.size() + 1,
                                builder.getMultiDimIdentityMap(rank));
    SmallVector<utils::IteratorType> loops(rank, utils::IteratorType::parallel);
    size_t count = linear.factors.size();
    auto made = linalg::GenericOp::create(
        builder, loc, type, read, empty, maps, loops,
        [&](OpBuilder &body, Location loc, ValueRange arguments) {
          Value result = linear.hasRest ? arguments[0] : Value();
          for (size_t which = 0; which < count; ++which) {
            Value product = arith::MulFOp::create(
                body, loc, arguments[linear.hasRest + which],
                arguments[linear.hasRest + count + which]);
            result = result ? arith::AddFOp::create(body, loc, result, product)
                                  .getResult()
                            : product;
          }
          linalg::YieldOp::create(body, loc, result);
        });
    return made.getResult(0);
  }

  OpBuilder &builder;
  const LinearSum &linear;
  linalg::LinalgOp sum;
  const Cut &cut;
  PieceTable &table;
  RankedTensorType type;
  Operation *add;
};
} // namespace

void split::makeLinearSum(OpBuilder &builder, const LinearSum &linear,
                          const Cut &cut, PieceTable &table) {
  Maker(builder, linear, cut, table).run();
}
