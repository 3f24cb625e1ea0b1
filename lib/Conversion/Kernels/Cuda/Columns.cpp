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
// which waits for another. Where all that an iteration changes is one row, its
// rows are shared out as well: each row has an owner, and a thread runs of all
// iterations those that change a row of its owner. Every element still changes
// in the iterations' order.
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
/// All owners look at the row of every iteration, so that more of them gain
/// little; an owner should have some iterations.
constexpr int64_t kMostOwners = 64, kLeastIterations = 8;
/// Bytes of the owners' own buffers, together.
constexpr int64_t kMostOfOwners = 1 << 20;

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
  std::optional<IndependentColumns> find();

private:
  bool collect();
  bool isApart(linalg::GenericOp op);
  Value rowOf(Value buffer);
  void findOwners(IndependentColumns &found);

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

/// The row that an iteration changes of `buffer`, of which it touches no other;
/// null: there is no such row.
Value Columns::rowOf(Value buffer) {
  Value row;
  auto touches = [&](Operation *op, Value operand) {
    if (!isa<MemRefType>(operand.getType()) || rootBuffer(operand) != buffer)
      return true;
    // A view that the iteration makes begins with one of the buffer.
    Operation *made = operand.getDefiningOp();
    if (operand != buffer)
      return made && loop->isProperAncestor(made);
    auto part = dyn_cast<memref::SubViewOp>(op);
    if (!part || part.getStaticSizes().size() < 2 ||
        part.getStaticSizes().front() != 1)
      return false;
    auto at = dyn_cast<Value>(part.getMixedOffsets().front());
    if (!at || (row && at != row))
      return false;
    row = at;
    return true;
  };
  WalkResult others = loop->walk([&](Operation *op) {
    return llvm::all_of(op->getOperands(),
                        [&](Value operand) { return touches(op, operand); })
               ? WalkResult::advance()
               : WalkResult::interrupt();
  });
  return !others.wasInterrupted() && row && row.getDefiningOp() &&
                 row.getParentBlock() == loop.getBody()
             ? row
             : nullptr;
}

void Columns::findOwners(IndependentColumns &found) {
  int64_t bytes = 0, fewest = kMostOwners;
  Value row;
  for (Value buffer : written) {
    auto type = cast<MemRefType>(buffer.getType());
    if (auto alloc = buffer.getDefiningOp<memref::AllocOp>();
        alloc && loop->isProperAncestor(alloc)) {
      bytes += bytesOfBuffer(type);
      continue;
    }
    Value changed = rowOf(buffer);
    if (!changed || (row && row != changed))
      return;
    row = changed;
    fewest = std::min(fewest, type.getShape().front());
  }
  auto from = getConstantIntValue(loop.getLowerBound()),
       to = getConstantIntValue(loop.getUpperBound()),
       step = getConstantIntValue(loop.getStep());
  if (!row || !from || !to || !step || *from >= *to)
    return;
  int64_t trips = llvm::divideCeil(*to - *from, *step);
  int64_t most = std::min({fewest, trips / kLeastIterations,
                           kMostOfOwners / std::max<int64_t>(bytes, 1)});
  if (most < 2)
    return;
  found.row = row;
  found.owners = llvm::bit_floor<uint64_t>(most);
}

std::optional<IndependentColumns> Columns::find() {
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
  if (!worthIt || mixed.wasInterrupted())
    return std::nullopt;
  IndependentColumns found;
  found.columns = columns;
  findOwners(found);
  return found;
}

std::optional<IndependentColumns> baechi::independentColumns(scf::ForOp loop) {
  return Columns(loop).find();
}

//===----------------------------------------------------------------------===//
// Code
//===----------------------------------------------------------------------===//

namespace {
/// The code of a thread.
class ColumnCode {
public:
  /// \p owner: the thread's, which counts where there are several.
  ColumnCode(LaunchCode &code, func::FuncOp kernel,
             const IndependentColumns &columns, Value column, Value owner)
      : code(code), kernel(kernel), columns(columns), column(column),
        owner(owner) {}
  void emit(Operation &op);

private:
  void emitWork(linalg::GenericOp op);
  void emitBuffer(memref::AllocOp alloc);
  void emitAll(Block &block) { emitFrom(block, block.begin()); }
  void emitFrom(Block &block, Block::iterator op);

  LaunchCode &code;
  func::FuncOp kernel;
  const IndependentColumns &columns;
  Value column, owner;
};
} // namespace

/// What follows the row that an iteration changes is its owner's alone.
void ColumnCode::emitFrom(Block &block, Block::iterator op) {
  for (; op != block.without_terminator().end(); ++op) {
    emit(*op);
    if (!columns.row || &*op != columns.row.getDefiningOp())
      continue;
    Value ours = arith::CmpIOp::create(
        code.builder, code.loc, arith::CmpIPredicate::eq, owner,
        code.rem(code.value(columns.row), columns.owners));
    return code.when(ours, [&] { emitFrom(block, std::next(op)); });
  }
}

/// Each thread has its column of a buffer, and each owner a buffer.
void ColumnCode::emitBuffer(memref::AllocOp alloc) {
  OpBuilder entry = OpBuilder::atBlockBegin(&kernel.getBody().front());
  auto allocate = [&](MemRefType type) -> Value {
    return memref::AllocOp::create(entry, alloc.getLoc(), type,
                                   entry.getI64IntegerAttr(kBufferAlignment));
  };
  if (columns.owners == 1)
    return code.map(alloc, code.value(allocate(alloc.getType())));
  int64_t bytes = bytesOfBuffer(alloc.getType());
  Value all =
      allocate(MemRefType::get({columns.owners * bytes}, entry.getI8Type()));
  code.map(alloc, memref::ViewOp::create(code.builder, alloc.getLoc(),
                                         alloc.getType(), code.value(all),
                                         code.mul(owner, bytes), ValueRange()));
}

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
  if (auto alloc = dyn_cast<memref::AllocOp>(op))
    return emitBuffer(alloc);
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

void baechi::launchColumns(OpBuilder &builder, scf::ForOp loop,
                           const IndependentColumns &columns,
                           func::FuncOp kernel, Executor executor) {
  int64_t threads = std::clamp<int64_t>(
      llvm::bit_ceil<uint64_t>(columns.columns), 32, kMostThreads);
  int64_t blocks = llvm::divideCeil(columns.columns, threads);
  LaunchCode code(builder, loop.getLoc(), executor, blocks * columns.owners,
                  threads);
  code.section([&](Value thread) {
    Value owner = code.div(code.block, blocks);
    Value column =
        code.add(code.mul(code.rem(code.block, blocks), threads), thread);
    code.when(code.less(column, code.index(columns.columns)), [&] {
      ColumnCode(code, kernel, columns, column, owner).emit(*loop);
    });
  });
  code.finish();
}
