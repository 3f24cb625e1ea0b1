//===- Transposed.cpp - Elementwise work across rows -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Neighbouring threads write neighbours of the result's rows. What an operand
// holds along other rows they would read far apart, a piece of a line of memory
// each. So a block reads a tile along the operand's rows into shared memory,
// and takes it from there along the result's.
//
//===----------------------------------------------------------------------===//

#include "Common/Strides.h"
#include "Mapping.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace baechi;

namespace {
/// The side of a tile, and the lines of it that a block moves at once.
constexpr int64_t kTile = 32, kLines = 8;
/// Smaller dimensions leave most of a tile empty.
constexpr int64_t kLeastSize = kTile / 2;
constexpr int64_t kLeastPoints = 1024;

/// The operand to read by tiles, and the loop along its rows.
struct Across {
  OpOperand *operand;
  unsigned loop;
};

std::optional<Across> findAcross(linalg::GenericOp op, unsigned rows) {
  SmallVector<int64_t> sizes = op.getStaticLoopRanges();
  std::optional<Across> found;
  int64_t most = 0;
  for (OpOperand *operand : op.getDpsInputOperands()) {
    auto type = dyn_cast<MemRefType>(operand->get().getType());
    if (!type || type.getNumElements() <= most ||
        !op.getMatchingIndexingMap(operand).isProjectedPermutation() ||
        op.getMatchingBlockArgument(operand).use_empty() ||
        strideAlong(op, *operand, rows) <= 1)
      continue;
    for (unsigned loop : llvm::seq(op.getNumLoops()))
      if (loop != rows && sizes[loop] >= kLeastSize &&
          strideAlong(op, *operand, loop) == 1) {
        found = Across{operand, loop};
        most = type.getNumElements();
      }
  }
  return found;
}
} // namespace

bool baechi::launchTransposed(OpBuilder &builder, linalg::GenericOp op,
                              Executor executor) {
  LoopOrder order(op);
  if (order.outputs < kLeastPoints)
    return false;
  unsigned rows = order.parallel.back();
  SmallVector<int64_t> sizes = op.getStaticLoopRanges();
  std::optional<Across> across = findAcross(op, rows);
  if (!across || sizes[rows] < kLeastSize)
    return false;
  OpOperand &operand = *across->operand;

  // A block's tile: its place in the two loops, and those in all others.
  SmallVector<int64_t> tiles = sizes;
  int64_t blocks = 1;
  for (unsigned loop : {rows, across->loop})
    tiles[loop] = llvm::divideCeil(sizes[loop], kTile);
  for (int64_t count : tiles)
    blocks *= count;
  LaunchCode code(builder, op.getLoc(), executor, blocks, kTile * kLines);
  SmallVector<Value> tile = code.delinearize(code.block, tiles);
  // A line is one longer than it needs: a column then lies in all banks.
  Value buffer = code.shared(MemRefType::get(
      {kTile, kTile + 1},
      cast<MemRefType>(operand.get().getType()).getElementType()));
  /// For each of the thread's elements: threads are neighbours in loop `along`,
  /// lines follow loop `lines`.
  auto forEach = [&](unsigned along, unsigned lines,
                     function_ref<void(ValueRange, Value, Value)> element) {
    code.section([&](Value thread) {
      Value x = code.rem(thread, kTile), first = code.div(thread, kTile);
      auto loop = scf::ForOp::create(builder, code.loc, first,
                                     code.index(kTile), code.index(kLines));
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToStart(loop.getBody());
      Value y = loop.getInductionVar();
      SmallVector<Value> at = tile;
      at[along] = code.add(code.mul(tile[along], kTile), x);
      at[lines] = code.add(code.mul(tile[lines], kTile), y);
      code.when(code.less(at[along], code.index(sizes[along])), [&] {
        code.when(code.less(at[lines], code.index(sizes[lines])),
                  [&] { element(at, x, y); });
      });
    });
  };
  forEach(across->loop, rows, [&](ValueRange at, Value x, Value y) {
    memref::StoreOp::create(builder, code.loc,
                            loadOperand(code, op, operand, at), buffer,
                            ValueRange{y, x});
  });
  forEach(rows, across->loop, [&](ValueRange at, Value x, Value y) {
    Value value =
        memref::LoadOp::create(builder, code.loc, buffer, ValueRange{x, y});
    storeResults(code, op, at, evaluate(code, op, at, {}, &operand, value));
  });
  code.finish();
  return true;
}
