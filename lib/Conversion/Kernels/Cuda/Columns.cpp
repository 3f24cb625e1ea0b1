//===- Columns.cpp - Loops over rows, a thread a column -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The iterations of a scatter depend on each other: two may change one row. But
// column j of a row only depends on columns j. So a thread runs all iterations,
// in their order, for one column: as many threads as there are columns, none of
// which waits for another.
//
//===----------------------------------------------------------------------===//

#include "Mapping.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace baechi;

namespace {
/// Fewer columns keep fewer threads busy than a block's.
constexpr int64_t kLeastColumns = 8;
/// Small blocks: there are seldom enough columns for all of the device.
constexpr int64_t kMostThreads = 64;

/// How an operand moves with the last loop of an operation.
enum class Along { Columns, Nothing, Other };

Along movesAlong(linalg::GenericOp op, OpOperand &operand) {
  AffineMap map = op.getMatchingIndexingMap(&operand);
  unsigned last = op.getNumLoops() - 1;
  if (!map.isFunctionOfDim(last))
    return Along::Nothing;
  ArrayRef<AffineExpr> results = map.getResults();
  bool elsewhere = llvm::any_of(results.drop_back(), [&](AffineExpr expr) {
    return expr.isFunctionOfDim(last);
  });
  bool alone = results.back() == getAffineDimExpr(last, op.getContext());
  return alone && !elsewhere ? Along::Columns : Along::Other;
}

/// Whether the last dimension of `view` is that of the buffer that it is of.
bool keepsColumns(Value view, int64_t columns) {
  auto lastSize = [](Value buffer) {
    auto type = dyn_cast<MemRefType>(buffer.getType());
    return type && type.getRank() > 0 ? type.getShape().back() : -1;
  };
  while (true) {
    if (lastSize(view) != columns)
      return false;
    auto op = view.getDefiningOp<ViewLikeOpInterface>();
    if (!op)
      return true;
    // A part that is as long as the whole in a dimension starts where it does.
    auto reshape = [](auto reshape) {
      return reshape.getReassociationIndices().back().size() == 1;
    };
    bool known = false;
    if (auto part = dyn_cast<memref::SubViewOp>(op.getOperation()))
      known = part.getStaticStrides().back() == 1;
    else if (auto expand = dyn_cast<memref::ExpandShapeOp>(op.getOperation()))
      known = reshape(expand);
    else if (auto collapse =
                 dyn_cast<memref::CollapseShapeOp>(op.getOperation()))
      known = reshape(collapse);
    if (!known)
      return false;
    view = op.getViewSource();
  }
}

/// What a thread's code is made of.
bool isKnown(Operation *op) {
  if (isa<scf::ForOp, scf::IfOp>(op))
    return op->getNumResults() == 0;
  return isa<linalg::GenericOp, memref::AllocOp, memref::LoadOp,
             ViewLikeOpInterface, scf::YieldOp>(op) ||
         (isMemoryEffectFree(op) && op->getNumRegions() == 0);
}

class Columns {
public:
  explicit Columns(scf::ForOp loop) : loop(loop) {}
  std::optional<int64_t> find();

private:
  bool collect();
  bool isApart(linalg::GenericOp op);

  scf::ForOp loop;
  SmallVector<linalg::GenericOp> work;
  llvm::DenseSet<Value> written;
  int64_t columns = 0;
};
} // namespace

bool Columns::collect() {
  WalkResult unknown = loop->walk([&](Operation *op) {
    if (isa<linalg::YieldOp>(op) || op->getParentOfType<linalg::GenericOp>())
      return WalkResult::advance();
    if (!isKnown(op))
      return WalkResult::interrupt();
    if (auto generic = dyn_cast<linalg::GenericOp>(op)) {
      work.push_back(generic);
      for (Value init : generic.getDpsInits())
        written.insert(rootBuffer(init));
    }
    return WalkResult::advance();
  });
  return !unknown.wasInterrupted() && !work.empty();
}

bool Columns::isApart(linalg::GenericOp op) {
  SmallVector<int64_t> sizes = op.getStaticLoopRanges();
  if (op.getNumReductionLoops() != 0 || sizes.empty() ||
      sizes.back() != columns)
    return false;
  return llvm::all_of(op->getOpOperands(), [&](OpOperand &operand) {
    Value buffer = operand.get();
    return !isa<MemRefType>(buffer.getType()) ||
           !written.contains(rootBuffer(buffer)) ||
           (movesAlong(op, operand) == Along::Columns &&
            keepsColumns(buffer, columns));
  });
}

std::optional<int64_t> Columns::find() {
  if (!collect() || work.front().getNumLoops() == 0)
    return std::nullopt;
  columns = work.front().getStaticLoopRanges().back();
  int64_t most = 1;
  for (linalg::GenericOp op : work) {
    if (!isApart(op))
      return std::nullopt;
    int64_t points = 1;
    for (int64_t size : op.getStaticLoopRanges())
      points *= size;
    most = std::max(most, points);
  }
  // Scalars are read alike by all threads: not from what one of them writes.
  WalkResult mixed = loop->walk([&](memref::LoadOp load) {
    return written.contains(rootBuffer(load.getMemRef()))
               ? WalkResult::interrupt()
               : WalkResult::advance();
  });
  // Rows of several lines have more for a block to do side by side.
  bool worthIt = columns >= kLeastColumns &&
                 (most <= 4 * columns || columns >= kBlockThreads);
  return worthIt && !mixed.wasInterrupted() ? std::optional(columns)
                                            : std::nullopt;
}

std::optional<int64_t> baechi::independentColumns(scf::ForOp loop) {
  return Columns(loop).find();
}

//===----------------------------------------------------------------------===//
// Code
//===----------------------------------------------------------------------===//

namespace {
/// The code of a thread.
class ColumnCode {
public:
  ColumnCode(LaunchCode &code, func::FuncOp kernel, Value column)
      : code(code), kernel(kernel), column(column) {}
  void emit(Operation &op);

private:
  void emitWork(linalg::GenericOp op);
  void emitAll(Block &block) {
    for (Operation &op : block.without_terminator())
      emit(op);
  }

  LaunchCode &code;
  func::FuncOp kernel;
  Value column;
};
} // namespace

/// All points of the column.
void ColumnCode::emitWork(linalg::GenericOp op) {
  SmallVector<int64_t> sizes = op.getStaticLoopRanges();
  sizes.pop_back();
  int64_t points = 1;
  for (int64_t size : sizes)
    points *= size;
  auto point = [&](Value linear) {
    SmallVector<Value> at = code.delinearize(linear, sizes);
    at.push_back(column);
    storeResults(code, op, at, evaluate(code, op, at));
  };
  if (points == 1)
    return point(code.index(0));
  auto loop = scf::ForOp::create(code.builder, code.loc, code.index(0),
                                 code.index(points), code.index(1));
  OpBuilder::InsertionGuard guard(code.builder);
  code.builder.setInsertionPointToStart(loop.getBody());
  point(loop.getInductionVar());
}

void ColumnCode::emit(Operation &op) {
  if (auto work = dyn_cast<linalg::GenericOp>(op))
    return emitWork(work);
  if (auto alloc = dyn_cast<memref::AllocOp>(op)) {
    // Each thread has its column of it.
    OpBuilder entry = OpBuilder::atBlockBegin(&kernel.getBody().front());
    Value all = memref::AllocOp::create(entry, alloc.getLoc(), alloc.getType(),
                                        entry.getI64IntegerAttr(64));
    return code.map(alloc, code.value(all));
  }
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    auto copy = scf::ForOp::create(
        code.builder, loop.getLoc(), code.value(loop.getLowerBound()),
        code.value(loop.getUpperBound()), code.value(loop.getStep()));
    code.map(loop.getInductionVar(), copy.getInductionVar());
    OpBuilder::InsertionGuard guard(code.builder);
    code.builder.setInsertionPointToStart(copy.getBody());
    return emitAll(*loop.getBody());
  }
  if (auto branch = dyn_cast<scf::IfOp>(op)) {
    bool hasElse = !branch.getElseRegion().empty();
    auto copy = scf::IfOp::create(code.builder, branch.getLoc(),
                                  code.value(branch.getCondition()), hasElse);
    OpBuilder::InsertionGuard guard(code.builder);
    code.builder.setInsertionPoint(copy.thenYield());
    emitAll(*branch.thenBlock());
    if (!hasElse)
      return;
    code.builder.setInsertionPoint(copy.elseYield());
    return emitAll(*branch.elseBlock());
  }
  code.clone(op);
}

void baechi::launchColumns(OpBuilder &builder, scf::ForOp loop, int64_t columns,
                           func::FuncOp kernel, Executor executor) {
  int64_t threads =
      std::clamp<int64_t>(llvm::bit_ceil<uint64_t>(columns), 32, kMostThreads);
  LaunchCode code(builder, loop.getLoc(), executor,
                  llvm::divideCeil(columns, threads), threads);
  code.section([&](Value thread) {
    Value column = code.add(code.mul(code.block, threads), thread);
    code.when(code.less(column, code.index(columns)),
              [&] { ColumnCode(code, kernel, column).emit(*loop); });
  });
  code.finish();
}
