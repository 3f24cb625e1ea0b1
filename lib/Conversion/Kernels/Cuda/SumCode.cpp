//===- SumCode.cpp - Linalg operations on the threads of a block -===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Selection.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace baechi;

namespace {
/// Terms that a thread of a long sum adds up in single precision: no more than
/// some hundred roundings.
constexpr int64_t kTermsOfBlock = 256;

/// The loop of a thread over its terms of an output.
SmallVector<Value> addTerms(LaunchCode &code, linalg::GenericOp op,
                            const LoopOrder &order, ValueRange output,
                            Value from, Value to, int64_t step,
                            ValueRange start) {
  OpBuilder &builder = code.builder;
  auto loop =
      scf::ForOp::create(builder, code.loc, from, to, code.index(step), start);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  SmallVector<Value> term =
      code.delinearize(loop.getInductionVar(), order.sumSizes);
  SmallVector<Value> sums = evaluate(code, op, joinIndices(order, output, term),
                                     loop.getRegionIterArgs());
  scf::YieldOp::create(builder, code.loc, sums);
  return loop.getResults();
}

/// The same, of long sums in blocks that are added up in double precision: what
/// is added one after the other is rounded to what has been added up by then
/// (see Common/BlockSums.h). `most`: terms of the thread.
SmallVector<Value> sumTerms(LaunchCode &code, linalg::GenericOp op,
                            const LoopOrder &order, ValueRange output,
                            Value from, Value to, int64_t step, int64_t most,
                            ValueRange start) {
  if (most <= kTermsOfBlock || !isLongSum(op, order))
    return addTerms(code, op, order, output, from, to, step, start);
  OpBuilder &builder = code.builder;
  Value stride = code.index(step * kTermsOfBlock);
  auto loop =
      scf::ForOp::create(builder, code.loc, from, to, stride,
                         inPrecision(code, builder.getF64Type(), start));
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(loop.getBody());
    Value first = loop.getInductionVar();
    Value none = arith::ConstantOp::create(builder, code.loc,
                                           builder.getF32FloatAttr(-0.0f));
    SmallVector<Value> block =
        addTerms(code, op, order, output, first,
                 code.minimum(code.add(first, stride), to), step,
                 SmallVector<Value>(start.size(), none));
    SmallVector<Value> sums;
    for (auto [sum, part] :
         llvm::zip_equal(loop.getRegionIterArgs(),
                         inPrecision(code, builder.getF64Type(), block)))
      sums.push_back(arith::AddFOp::create(builder, code.loc, sum, part));
    scf::YieldOp::create(builder, code.loc, sums);
  }
  return inPrecision(code, builder.getF32Type(), loop.getResults());
}

/// The sum's neutral elements.
SmallVector<Value> neutral(LaunchCode &code, ArrayRef<Operation *> combiners) {
  return llvm::map_to_vector(combiners, [&](Operation *combiner) -> Value {
    return arith::ConstantOp::create(code.builder, code.loc,
                                     *arith::getNeutralElement(combiner));
  });
}

/// Where thread `thread` of a block works.
struct Place {
  Value output, lane;
};
Place placeOf(LaunchCode &code, const SumShares &shares, Value thread) {
  if (shares.lanesAreNeighbours)
    return {code.div(thread, shares.lanes), code.rem(thread, shares.lanes)};
  return {code.rem(thread, shares.outputs), code.div(thread, shares.outputs)};
}

/// What the lanes of outputs hold, a value for each result: in registers, and
/// in shared memory while lanes are joined that lie in several warps.
class Lanes {
public:
  Lanes(LaunchCode &code, linalg::GenericOp op, const SumShares &shares)
      : code(code), apart(shares.lanesAreNeighbours ? 1 : shares.outputs) {
    for (Value init : op.getDpsInits()) {
      types.push_back(cast<MemRefType>(init.getType()).getElementType());
      held.push_back(code.privateValues(types.back(), 1));
    }
  }
  ~Lanes() {
    llvm::for_each(parts, [&](Value part) { code.release(part); });
  }

  /// Within a section: what `values` gives where `has` holds, else `none`.
  void keep(Value thread, Value has, ValueRange none,
            function_ref<SmallVector<Value>()> values);
  /// Each lane becomes what `combine` makes of it and of the one `distance`
  /// further. Only those of threads for which `isNeeded` holds are used then.
  void join(int64_t distance,
            function_ref<SmallVector<Value>(ValueRange, ValueRange)> combine,
            function_ref<Value(Value thread)> isNeeded);
  /// Within a section.
  SmallVector<Value> of(Value thread) {
    return llvm::map_to_vector(held, [&](LaunchCode::Private each) {
      return code.load(each, thread, 0);
    });
  }

private:
  void store(Value thread, ValueRange values) {
    for (auto [each, value] : llvm::zip_equal(held, values))
      code.store(value, each, thread, 0);
  }

  LaunchCode &code;
  /// From a lane's thread to the next one's.
  const int64_t apart;
  SmallVector<Type> types;
  SmallVector<LaunchCode::Private> held;
  SmallVector<Value> parts;
};
} // namespace

void Lanes::keep(Value thread, Value has, ValueRange none,
                 function_ref<SmallVector<Value>()> values) {
  auto guarded = scf::IfOp::create(code.builder, code.loc, TypeRange(types),
                                   has, /*withElseRegion=*/true);
  {
    OpBuilder::InsertionGuard guard(code.builder);
    code.builder.setInsertionPointToStart(guarded.thenBlock());
    scf::YieldOp::create(code.builder, code.loc, values());
    code.builder.setInsertionPointToStart(guarded.elseBlock());
    scf::YieldOp::create(code.builder, code.loc, none);
  }
  store(thread, guarded.getResults());
}

void Lanes::join(
    int64_t distance,
    function_ref<SmallVector<Value>(ValueRange, ValueRange)> combine,
    function_ref<Value(Value)> isNeeded) {
  // Both lie in one warp if twice the distance does: groups of lanes are
  // aligned.
  if (2 * distance * apart <= kWarp)
    return code.combineInWarps(held, distance * apart, combine);
  auto share = [&](Value thread, ValueRange values) {
    for (auto [part, value] : llvm::zip_equal(parts, values))
      memref::StoreOp::create(code.builder, code.loc, value, part, thread);
  };
  if (parts.empty()) {
    for (Type type : types)
      parts.push_back(code.shared(MemRefType::get({code.threads}, type)));
    code.proceed([&](Value thread) { share(thread, of(thread)); });
  }
  code.section([&](Value thread) {
    code.when(isNeeded(thread), [&] {
      Value other = code.add(thread, code.index(distance * apart));
      SmallVector<Value> others =
          llvm::map_to_vector(parts, [&](Value part) -> Value {
            return memref::LoadOp::create(code.builder, code.loc, part, other);
          });
      SmallVector<Value> joined = combine(of(thread), others);
      store(thread, joined);
      // Nobody reads it before the next time that lanes are joined.
      share(thread, joined);
    });
  });
}

void baechi::sumOutputs(
    LaunchCode &code, linalg::GenericOp op, const LoopOrder &order,
    const SumShares &shares, Value firstOutput, Value from, Value to,
    function_ref<SmallVector<Value>(ValueRange)> start,
    function_ref<void(Value, ValueRange, ValueRange)> finish) {
  Value outputs = code.index(order.outputs);
  if (shares.lanes == 1) {
    code.section([&](Value thread) {
      Value output = code.add(firstOutput, thread);
      Value mine = output;
      if (shares.outputs < code.threads)
        mine = arith::SelectOp::create(
            code.builder, code.loc,
            code.less(thread, code.index(shares.outputs)), output, outputs);
      code.when(code.less(mine, outputs), [&] {
        SmallVector<Value> at = code.delinearize(output, order.parallelSizes);
        finish(output, at,
               sumTerms(code, op, order, at, from, to, 1, shares.termsOfLane,
                        start(at)));
      });
    });
    return;
  }

  SmallVector<Operation *> combiner = combiners(op);
  Lanes lanes(code, op, shares);
  auto isMine = [&](const Place &place, int64_t among) -> Value {
    Value known = code.less(code.add(firstOutput, place.output), outputs);
    Value first = code.less(place.lane, code.index(among));
    return arith::AndIOp::create(code.builder, code.loc, known, first);
  };
  code.section([&](Value thread) {
    Place place = placeOf(code, shares, thread);
    lanes.keep(thread, isMine(place, shares.lanes), neutral(code, combiner),
               [&] {
                 SmallVector<Value> at = code.delinearize(
                     code.add(firstOutput, place.output), order.parallelSizes);
                 return sumTerms(code, op, order, at,
                                 code.add(from, place.lane), to, shares.lanes,
                                 shares.termsOfLane, neutral(code, combiner));
               });
  });
  auto combineAll = [&](ValueRange mine, ValueRange others) {
    SmallVector<Value> sums;
    for (auto [a, b, op] : llvm::zip_equal(mine, others, combiner))
      sums.push_back(combine(code, op, a, b));
    return sums;
  };
  // A tree: the order of additions depends on shapes only.
  for (int64_t among = shares.lanes / 2; among >= 1; among /= 2)
    lanes.join(among, combineAll, [&](Value thread) {
      return isMine(placeOf(code, shares, thread), among);
    });
  code.proceed([&](Value thread) {
    Place place = placeOf(code, shares, thread);
    code.when(isMine(place, 1), [&] {
      Value output = code.add(firstOutput, place.output);
      SmallVector<Value> at = code.delinearize(output, order.parallelSizes);
      finish(output, at, combineAll(start(at), lanes.of(thread)));
    });
  });
}

void baechi::selectOutputs(
    LaunchCode &code, linalg::GenericOp op, const LoopOrder &order,
    const Selection &selection, const SumShares &shares, Value firstOutput,
    function_ref<SmallVector<Value>(ValueRange)> start,
    function_ref<void(Value, ValueRange, ValueRange)> finish) {
  Lanes lanes(code, op, shares);
  auto isOutput = [&](const Place &place) {
    return code.less(code.add(firstOutput, place.output),
                     code.index(order.outputs));
  };
  auto none = [&] {
    return llvm::map_to_vector(op.getDpsInits(), [&](Value init) -> Value {
      Type type = cast<MemRefType>(init.getType()).getElementType();
      return arith::ConstantOp::create(code.builder, code.loc,
                                       code.builder.getZeroAttr(type));
    });
  };
  // Lanes without terms hold the start, which changes nothing.
  int64_t terms = llvm::divideCeil(order.terms, shares.lanes);
  code.section([&](Value thread) {
    Place place = placeOf(code, shares, thread);
    lanes.keep(thread, isOutput(place), none(), [&] {
      SmallVector<Value> at = code.delinearize(
          code.add(firstOutput, place.output), order.parallelSizes);
      Value from = code.mul(place.lane, terms);
      Value to = code.minimum(code.add(from, code.index(terms)),
                              code.index(order.terms));
      return addTerms(code, op, order, at, from, to, 1, start(at));
    });
  });
  auto choose = [&](ValueRange mine, ValueRange others) {
    IRMapping values;
    values.map(op.getRegionOutputArgs(), mine);
    values.map(selection.terms, others);
    for (Operation *step : selection.steps) {
      for (Value operand : step->getOperands())
        if (!op.getRegion().isAncestor(operand.getParentRegion()))
          values.map(operand, code.value(operand));
        else if (Operation *constant =
                     operand.getDefiningOp<arith::ConstantOp>();
                 constant && !values.contains(operand))
          code.builder.clone(*constant, values);
      code.builder.clone(*step, values);
    }
    return llvm::map_to_vector(
        op.getBody()->getTerminator()->getOperands(),
        [&](Value yielded) { return values.lookup(yielded); });
  };
  // Neighbours first: the terms stay in their order.
  for (int64_t distance = 1; distance < shares.lanes; distance *= 2)
    lanes.join(distance, choose, [&](Value thread) -> Value {
      Place place = placeOf(code, shares, thread);
      Value first = arith::CmpIOp::create(
          code.builder, code.loc, arith::CmpIPredicate::eq,
          code.rem(place.lane, 2 * distance), code.index(0));
      return arith::AndIOp::create(code.builder, code.loc, isOutput(place),
                                   first);
    });
  code.proceed([&](Value thread) {
    Place place = placeOf(code, shares, thread);
    Value first = code.less(place.lane, code.index(1));
    Value mine =
        arith::AndIOp::create(code.builder, code.loc, isOutput(place), first);
    code.when(mine, [&] {
      Value output = code.add(firstOutput, place.output);
      finish(output, code.delinearize(output, order.parallelSizes),
             lanes.of(thread));
    });
  });
}

static void executeElementwise(LaunchCode &code, linalg::GenericOp op,
                               const LoopOrder &order,
                               const StartValues &starts) {
  auto point = [&](Value linear) {
    SmallVector<Value> at =
        joinIndices(order, code.delinearize(linear, order.parallelSizes), {});
    storeResults(code, op, at, evaluate(code, op, at));
  };
  code.section([&](Value thread) {
    Value outputs = code.index(order.outputs);
    if (order.outputs == code.threads)
      return point(thread);
    if (order.outputs < code.threads)
      return code.when(code.less(thread, outputs), [&] { point(thread); });
    auto loop = scf::ForOp::create(code.builder, code.loc, thread, outputs,
                                   code.index(code.threads));
    OpBuilder::InsertionGuard guard(code.builder);
    code.builder.setInsertionPointToStart(loop.getBody());
    point(loop.getInductionVar());
  });
}

void baechi::executeInBlock(LaunchCode &code, linalg::GenericOp op,
                            const StartValues &starts) {
  LoopOrder order(op);
  if (order.outputs == 0)
    return;
  if (order.sums.empty())
    return executeElementwise(code, op, order, starts);
  SumShares shares;
  shares.lanesAreNeighbours = order.rowsAreSums;
  // Short sums, and those that only go in order, are one thread's.
  std::optional<Selection> selection = matchSelection(op, starts);
  if (order.terms > 4 && (selection || !combiners(op).empty())) {
    int64_t most = llvm::bit_floor<uint64_t>(
        std::max<int64_t>(1, code.threads / order.outputs));
    if (order.rowsAreSums)
      most = std::max<int64_t>(most, std::min<int64_t>(32, code.threads));
    shares.lanes = std::min<int64_t>(
        most, llvm::bit_ceil<uint64_t>(llvm::divideCeil(order.terms, 2)));
  }
  shares.outputs = code.threads / shares.lanes;
  shares.termsOfLane = llvm::divideCeil(order.terms, shares.lanes);
  auto pointOf = [&](ValueRange output) {
    SmallVector<Value> none(order.sums.size(), code.index(0));
    return joinIndices(order, output, none);
  };
  auto start = [&](ValueRange output) {
    return startValues(code, op, pointOf(output), starts);
  };
  auto finish = [&](Value, ValueRange output, ValueRange sums) {
    storeResults(code, op, pointOf(output), sums);
  };
  auto batch = [&](Value first) {
    if (selection && shares.lanes > 1)
      selectOutputs(code, op, order, *selection, shares, first, start, finish);
    else
      sumOutputs(code, op, order, shares, first, code.index(0),
                 code.index(order.terms), start, finish);
  };
  if (order.outputs <= shares.outputs)
    return batch(code.index(0));
  code.loop(code.index(0), code.index(order.outputs),
            code.index(shares.outputs), batch);
}
