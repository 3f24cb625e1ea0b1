//===- SumOrders.cpp - In which order a step's sums are added up ----------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/SumOrders.h"
#include "Baechi/Analysis/Contraction.h"
#include "Baechi/Analysis/ExactSums.h"
#include "Baechi/Analysis/Program.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SHA256.h"

using namespace mlir;
using namespace baechi;

/// Of the metadata of a location with a number.
static constexpr StringLiteral kNumbered = "baechi.sum ";

/// The sums and products of floats that are made of the results so far of a
/// reduction; their order is that of the loops, which bits depend on.
static SmallVector<Operation *> combinersOf(linalg::LinalgOp op) {
  SmallVector<Operation *> combiners;
  if (op.getNumReductionLoops() > 0 && op.getBlock())
    for (BlockArgument soFar : op.getRegionOutputArgs())
      for (Operation *user : soFar.getUsers())
        if (isa<arith::AddFOp, arith::MulFOp, arith::SubFOp, arith::DivFOp>(
                *user))
          combiners.push_back(user);
  return combiners;
}

void baechi::numberSums(func::FuncOp step) {
  MLIRContext *context = step.getContext();
  int64_t number = 0;
  step.walk([&](linalg::LinalgOp op) {
    for (Operation *combiner : combinersOf(op)) {
      auto text = StringAttr::get(context, kNumbered + Twine(number++));
      combiner->setLoc(FusedLoc::get(context, {combiner->getLoc()}, text));
    }
  });
}

namespace {
/// What a location says of a sum.
struct Note {
  int64_t number;
  std::string order; ///< of the reduction loops; empty: as they were
};
} // namespace

static std::optional<Note> noteOf(Operation *combiner) {
  std::optional<Note> note;
  combiner->getLoc()->walk([&](Location inner) {
    auto fused = dyn_cast<FusedLoc>(inner);
    auto text =
        fused ? dyn_cast_or_null<StringAttr>(fused.getMetadata()) : nullptr;
    StringRef said = text ? text.getValue() : StringRef();
    int64_t number;
    if (!said.consume_front(kNumbered) || said.consumeInteger(10, number))
      return WalkResult::advance();
    note = Note{number, said.str()};
    return WalkResult::interrupt();
  });
  return note;
}

void baechi::noteOrder(linalg::GenericOp op, ArrayRef<unsigned> order) {
  SmallVector<utils::IteratorType> kinds = op.getIteratorTypesArray();
  SmallVector<unsigned> reductions =
      llvm::filter_to_vector(order, [&](unsigned loop) {
        return kinds[loop] == utils::IteratorType::reduction;
      });
  if (llvm::is_sorted(reductions))
    return;
  // By their turns among themselves: unit loops are gone here, not there.
  SmallVector<unsigned> sorted(reductions);
  llvm::sort(sorted);
  std::string text;
  for (unsigned loop : reductions)
    text += " " + std::to_string(llvm::find(sorted, loop) - sorted.begin());
  for (Operation *combiner : combinersOf(op))
    if (std::optional<Note> note = noteOf(combiner))
      combiner->setLoc(FusedLoc::get(
          op.getContext(), {combiner->getLoc()},
          StringAttr::get(op.getContext(), kNumbered + Twine(note->number) +
                                               note->order + text)));
}

/// \p operation, which may have regions, as text that tells others apart.
static std::string digestOf(Operation *operation) {
  std::string text;
  llvm::raw_string_ostream os(text);
  operation->print(os, OpPrintingFlags().useLocalScope());
  auto digest = llvm::SHA256::hash(llvm::arrayRefFromStringRef(text));
  return llvm::toHex(digest, /*LowerCase=*/true);
}

/// Whether a long sum's blocks follow from its loops alone.
static bool isOfDimensions(linalg::GenericOp op) {
  return llvm::all_of(op.getIndexingMapsArray(), [](AffineMap map) {
    return map.isProjectedPermutation(/*allowZeroInResults=*/true);
  });
}

/// The order in which register tiles run through the loops of the sum, those
/// that move furthest first, where both factors say the same and tiles are sure
/// to be made; or that of loops where it is the same. Nullopt: it is not known.
/// In an exact step it is that of the loops.
static std::optional<SmallVector<unsigned>> tileOrder(linalg::GenericOp op,
                                                      bool isExact) {
  std::optional<Contraction> product = matchContraction(op);
  SmallVector<unsigned> sums = product->loops(LoopClass::K);
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  llvm::erase_if(sums, [&](unsigned loop) { return ranges[loop] == 1; });
  if (sums.size() < 2 || isExact)
    return sums;
  std::optional<SmallVector<unsigned>> order;
  bool areRead = true;
  for (OpOperand *factor : {&product->lhs(), &product->rhs()}) {
    std::optional<StridedView> view = traceOperand(op, *factor);
    if (!view)
      return std::nullopt;
    areRead &=
        !isa_and_nonnull<linalg::FillOp, arith::ConstantOp, tensor::EmptyOp>(
            view->root.getDefiningOp());
    auto stride = [&](unsigned loop) { return std::abs(view->strides[loop]); };
    SmallVector<unsigned> own(sums);
    llvm::stable_sort(own, [&](unsigned one, unsigned other) {
      return stride(one) > stride(other);
    });
    for (auto [one, other] : llvm::zip(own, llvm::drop_begin(own)))
      if (stride(one) == stride(other))
        return std::nullopt;
    if (order && *order != own)
      return std::nullopt;
    order = std::move(own);
  }
  // What runs along the result's rows is in one factor alone.
  auto along = dyn_cast<AffineDimExpr>(
      op.getIndexingMapsArray().back().getResults().back());
  bool areTiles = areRead && along &&
                  product->classes[along.getPosition()] != LoopClass::Batch;
  if (!areTiles && !llvm::is_sorted(*order))
    return std::nullopt;
  return order;
}

/// Of an operation of the step itself, \p number being where it stands, as a
/// word for what is not known.
static SumOrder orderOf(linalg::LinalgOp op, size_t number, bool isExact) {
  SumOrder order;
  int64_t terms = 1;
  for (auto [kind, range] :
       llvm::zip_equal(op.getIteratorTypesArray(), op.getStaticLoopRanges()))
    if (kind == utils::IteratorType::reduction) {
      order.extents.push_back(range);
      terms *= range;
    }
  auto unknown = [&](StringRef why) {
    order.how = ("? " + why + " " + Twine(number)).str();
    return order;
  };
  auto generic = dyn_cast<linalg::GenericOp>(*op);
  if (!generic)
    return unknown("it has no body of scalars");
  bool isLong = terms > kShortSum;
  switch (sumKindOf(generic).value_or(SumKind::InTurn)) {
  case SumKind::Fused:
    if (isLong)
      return unknown("it is a product of more than 32,768 terms");
    // Which it is made of, its operands decide.
    if (!isExact && isLoopOfDots(generic))
      return unknown("it may be tiles or lanes");
    if (auto loops = tileOrder(generic, isExact)) {
      order.how = "fused";
      order.extents.clear();
      for (unsigned loop : *loops) {
        order.extents.push_back(generic.getStaticLoopRanges()[loop]);
        order.how += " " + std::to_string(loop);
      }
    } else {
      return unknown("its factors run through its terms in other orders");
    }
    order.inTurn = true;
    break;
  case SumKind::InLanes:
    // Those of the innermost loop, whose sums follow each other.
    order.how = "lanes";
    order.inTurn = !isLong && order.extents.size() > 1;
    break;
  case SumKind::InTurn:
    order.how = isLoopOfDots(generic) ? "lanes" : "turn";
    order.inTurn = !isLong && order.how == "turn";
    break;
  }
  if (isLong && !isOfDimensions(generic))
    return unknown("it is a window's sum of more than 32,768 terms");
  return order;
}

/// What \p value is of, behind reshapes.
static Operation *producerOf(Value value) {
  Operation *producer = value.getDefiningOp();
  while (isa_and_nonnull<tensor::ExpandShapeOp, tensor::CollapseShapeOp,
                         tensor::CastOp>(producer))
    producer = producer->getOperand(0).getDefiningOp();
  return producer;
}

static std::string startText(Operation *producer) {
  Attribute value;
  if (auto fill = dyn_cast_or_null<linalg::FillOp>(producer))
    matchPattern(fill.value(), m_Constant(&value));
  else if (DenseElementsAttr all; producer &&
                                  matchPattern(producer, m_Constant(&all)) &&
                                  all.isSplat())
    value = all.getSplatValue<Attribute>();
  std::string text;
  if (value)
    llvm::raw_string_ostream(text) << value;
  return text;
}

SumOrders baechi::sumOrdersOf(func::FuncOp step) {
  SumOrders found;
  llvm::DenseMap<std::pair<Operation *, int64_t>, size_t> places;
  size_t count = 0;
  step.walk([&](linalg::LinalgOp op) {
    Operation *own = step.front().findAncestorOpInBlock(*op);
    for (Operation *combiner : combinersOf(op)) {
      std::optional<Note> note = noteOf(combiner);
      if (!note) {
        if (found.unnumbered.empty())
          found.unnumbered = nameOf(op).empty() ? "an operation" : nameOf(op);
        continue;
      }
      SumOrders::Sum &sum = found.sums[note->number];
      if (sum.name.empty())
        sum.name = nameOf(op);
      SumOrder order;
      if (own == op.getOperation()) {
        order = orderOf(op, count++, isExact(step));
        unsigned output = 0;
        for (BlockArgument soFar : op.getRegionOutputArgs())
          if (llvm::is_contained(soFar.getUsers(), combiner))
            output = soFar.getArgNumber() - op.getNumDpsInputs();
        Operation *producer = producerOf(op.getDpsInits()[output]);
        auto before = places.find({producer, note->number});
        if (before != places.end())
          order.continues = before->second;
        else
          order.start = startText(producer);
        places[{op.getOperation(), note->number}] = sum.orders.size();
      } else {
        // A loop is one kernel: the same text is the same code.
        order.how = "within " + digestOf(own);
      }
      order.how += note->order;
      sum.orders.push_back(std::move(order));
    }
  });
  return found;
}

/// Whether \p pieces, of which each continues the one before, add up the terms
/// of \p whole in its order.
static bool addUp(const SumOrder &whole, ArrayRef<const SumOrder *> pieces) {
  if (pieces.size() == 1)
    return pieces.front()->isLike(whole);
  // What is cut is what runs outermost.
  if (!whole.inTurn || whole.extents.empty() ||
      pieces.front()->start != whole.start)
    return false;
  int64_t left = whole.extents.front();
  for (const SumOrder *piece : pieces) {
    if (piece->how != whole.how ||
        piece->extents.size() != whole.extents.size() ||
        !std::equal(whole.extents.begin() + 1, whole.extents.end(),
                    piece->extents.begin() + 1))
      return false;
    left -= piece->extents.front();
  }
  return left == 0;
}

/// Whether \p pieces of a sum are those of \p whole: a set of what is alike, as
/// of the phases of a strided convolution, or in one order with all terms.
static bool areAlike(const std::vector<SumOrder> &whole,
                     const std::vector<SumOrder> &pieces) {
  auto among = [](const std::vector<SumOrder> &all, const SumOrder &one) {
    return llvm::any_of(
        all, [&](const SumOrder &other) { return one.isLike(other); });
  };
  auto areAmong = [&](const std::vector<SumOrder> &all,
                      const std::vector<SumOrder> &some) {
    return llvm::all_of(some,
                        [&](const SumOrder &one) { return among(all, one); });
  };
  if (areAmong(whole, pieces) && areAmong(pieces, whole))
    return true;
  if (whole.size() != 1 || whole.front().continues)
    return false;
  std::vector<SmallVector<const SumOrder *>> chains;
  std::vector<std::optional<size_t>> chainOf(pieces.size());
  for (auto [place, piece] : llvm::enumerate(pieces)) {
    if (!piece.continues) {
      chainOf[place] = chains.size();
      chains.push_back({&piece});
      continue;
    }
    std::optional<size_t> chain = chainOf[*piece.continues];
    // Each is continued once.
    if (!chain || chains[*chain].back() != &pieces[*piece.continues])
      return false;
    chainOf[place] = chain;
    chains[*chain].push_back(&piece);
  }
  return llvm::all_of(
      chains, [&](const auto &chain) { return addUp(whole.front(), chain); });
}

/// \p sum, as a message calls it.
static std::string textOf(const SumOrders::Sum &sum) {
  return sum.name.empty() ? "a sum without a name" : "'" + sum.name + "'";
}

std::string baechi::whyBitsMayDiffer(const SumOrders &whole,
                                     const SumOrders &pieces) {
  for (const SumOrders *each : {&whole, &pieces})
    if (!each->unnumbered.empty())
      return "'" + each->unnumbered + "' adds up what the program does not";
  for (const auto &[number, sum] : whole.sums)
    if (auto found = pieces.sums.find(number);
        found == pieces.sums.end() ||
        !areAlike(sum.orders, found->second.orders))
      return textOf(sum) + " may be added up in another order";
  for (const auto &[number, sum] : pieces.sums)
    if (!whole.sums.count(number))
      return textOf(sum) + " is added up in pieces alone";
  return "";
}
