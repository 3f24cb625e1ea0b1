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
/// The loop of a thread over its terms of an output.
SmallVector<Value> sumTerms(LaunchCode &code, linalg::GenericOp op,
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
} // namespace

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
               sumTerms(code, op, order, at, from, to, 1, start(at)));
      });
    });
    return;
  }

  SmallVector<Operation *> combiner = combiners(op);
  SmallVector<Value> parts;
  for (Value init : op.getDpsInits())
    parts.push_back(code.shared(MemRefType::get(
        {code.threads}, cast<MemRefType>(init.getType()).getElementType())));
  auto isMine = [&](const Place &place, int64_t lanes) -> Value {
    Value known = code.less(code.add(firstOutput, place.output), outputs);
    Value among = code.less(place.lane, code.index(lanes));
    return arith::AndIOp::create(code.builder, code.loc, known, among);
  };
  code.section([&](Value thread) {
    Place place = placeOf(code, shares, thread);
    code.when(isMine(place, shares.lanes), [&] {
      SmallVector<Value> at = code.delinearize(
          code.add(firstOutput, place.output), order.parallelSizes);
      SmallVector<Value> sums =
          sumTerms(code, op, order, at, code.add(from, place.lane), to,
                   shares.lanes, neutral(code, combiner));
      for (auto [part, sum] : llvm::zip_equal(parts, sums))
        memref::StoreOp::create(code.builder, code.loc, sum, part, thread);
    });
  });
  // A tree: the order of additions depends on shapes only.
  int64_t apart = shares.lanesAreNeighbours ? 1 : shares.outputs;
  for (int64_t lanes = shares.lanes / 2; lanes >= 1; lanes /= 2)
    code.section([&](Value thread) {
      Place place = placeOf(code, shares, thread);
      code.when(isMine(place, lanes), [&] {
        SmallVector<Value> sums;
        for (auto [part, op] : llvm::zip_equal(parts, combiner)) {
          auto partOf = [&](Value of) -> Value {
            return memref::LoadOp::create(code.builder, code.loc, part, of);
          };
          Value other = code.add(thread, code.index(lanes * apart));
          sums.push_back(combine(code, op, partOf(thread), partOf(other)));
        }
        if (lanes > 1) {
          for (auto [part, sum] : llvm::zip_equal(parts, sums))
            memref::StoreOp::create(code.builder, code.loc, sum, part, thread);
          return;
        }
        Value output = code.add(firstOutput, place.output);
        SmallVector<Value> at = code.delinearize(output, order.parallelSizes);
        for (auto [sum, held, op] : llvm::zip_equal(sums, start(at), combiner))
          sum = combine(code, op, held, sum);
        finish(output, at, sums);
      });
    });
  llvm::for_each(parts, [&](Value part) { code.release(part); });
}

void baechi::selectOutputs(
    LaunchCode &code, linalg::GenericOp op, const LoopOrder &order,
    const Selection &selection, const SumShares &shares, Value firstOutput,
    function_ref<SmallVector<Value>(ValueRange)> start,
    function_ref<void(Value, ValueRange, ValueRange)> finish) {
  SmallVector<Value> parts;
  for (Value init : op.getDpsInits())
    parts.push_back(code.shared(MemRefType::get(
        {code.threads}, cast<MemRefType>(init.getType()).getElementType())));
  auto isOutput = [&](const Place &place) {
    return code.less(code.add(firstOutput, place.output),
                     code.index(order.outputs));
  };
  auto load = [&](Value thread) {
    return llvm::map_to_vector(parts, [&](Value part) -> Value {
      return memref::LoadOp::create(code.builder, code.loc, part, thread);
    });
  };
  auto store = [&](Value thread, ValueRange values) {
    for (auto [part, value] : llvm::zip_equal(parts, values))
      memref::StoreOp::create(code.builder, code.loc, value, part, thread);
  };
  // Lanes without terms hold the start, which changes nothing.
  int64_t terms = llvm::divideCeil(order.terms, shares.lanes);
  code.section([&](Value thread) {
    Place place = placeOf(code, shares, thread);
    code.when(isOutput(place), [&] {
      SmallVector<Value> at = code.delinearize(
          code.add(firstOutput, place.output), order.parallelSizes);
      Value from = code.mul(place.lane, terms);
      Value to = code.minimum(code.add(from, code.index(terms)),
                              code.index(order.terms));
      store(thread, sumTerms(code, op, order, at, from, to, 1, start(at)));
    });
  });
  // Neighbours first: the terms stay in their order.
  int64_t apart = shares.lanesAreNeighbours ? 1 : shares.outputs;
  for (int64_t lanes = 2; lanes <= shares.lanes; lanes *= 2)
    code.section([&](Value thread) {
      Place place = placeOf(code, shares, thread);
      Value first = arith::CmpIOp::create(
          code.builder, code.loc, arith::CmpIPredicate::eq,
          code.rem(place.lane, lanes), code.index(0));
      Value mine =
          arith::AndIOp::create(code.builder, code.loc, isOutput(place), first);
      code.when(mine, [&] {
        IRMapping values;
        values.map(op.getRegionOutputArgs(), load(thread));
        Value other = code.add(thread, code.index(lanes / 2 * apart));
        values.map(selection.terms, load(other));
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
        SmallVector<Value> results = llvm::map_to_vector(
            op.getBody()->getTerminator()->getOperands(),
            [&](Value yielded) { return values.lookup(yielded); });
        if (lanes < shares.lanes)
          return store(thread, results);
        Value output = code.add(firstOutput, place.output);
        finish(output, code.delinearize(output, order.parallelSizes), results);
      });
    });
  llvm::for_each(parts, [&](Value part) { code.release(part); });
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
