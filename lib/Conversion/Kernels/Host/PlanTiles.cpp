//===- PlanTiles.cpp - Contractions as products of register tiles -*- C++
//-*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/ExactSums.h"
#include "Common/BlockSums.h"
#include "Tiles.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/TargetParser/Host.h"
#include <bit>
#include <unistd.h>

using namespace mlir;
using namespace baechi;

namespace {
/// Most elements of a panel of B: it stays in the second-level cache while all
/// rows pass by.
constexpr int64_t kPanelElements = int64_t(16) * 1024;
/// Most terms inside a tile where each reads a line of A of its own, as rows
/// lie side by side: lines and panel stay in the first-level cache until the
/// next tile reads the rest of the lines. (On AVX2 filters' gradients take 0.78
/// to 0.98 of their time with 512.)
constexpr int64_t kLinesOfRows = 128;
/// The same where rows are packed: what is packed at a time.
constexpr int64_t kPackedTerms = 512;
/// Packing pays from so many rows on, if B has the right order already.
constexpr int64_t kRowsToPack = 48;
/// With at most so many rows, transposing the result is less work than
/// transposing B.
constexpr int64_t kFewRows = 64;
/// But not where only parts of vectors would run along the rows, as those of
/// 4x4 places, and so many vectors of rows reuse what is transposed.
constexpr int64_t kVectorsToTranspose = 2;

/// Tiles of rows up to which the next panel is asked for.
constexpr int64_t kFewTiles = 24;
/// Bytes of a line of the cache.
constexpr int64_t kLine = 64;
/// Elements between rows of A from which on packing them pays.
constexpr int64_t kFarApart = 512;

/// A cache: its bytes, and lines of one place that it holds.
struct Cache {
  int64_t bytes = 0, ways = 0;
};

/// This host's second-level cache, where the system knows it.
const Cache &secondLevelCache() {
#ifdef _SC_LEVEL2_CACHE_ASSOC
  static const Cache cache{::sysconf(_SC_LEVEL2_CACHE_SIZE),
                           ::sysconf(_SC_LEVEL2_CACHE_ASSOC)};
#else
  static const Cache cache;
#endif
  return cache;
}

/// Rows so many elements apart of which the second-level cache holds a line
/// each: a large power of two apart, they share few of its places.
int64_t rowsHeld(int64_t stride) {
  const Cache &cache = secondLevelCache();
  if (cache.ways <= 0 || stride == 0)
    return 0;
  uint64_t apart = std::abs(stride) * sizeof(float);
  int64_t step = std::max(int64_t(1) << std::countr_zero(apart), kLine);
  return cache.ways * std::max<int64_t>(cache.bytes / cache.ways / step, 1);
}

int64_t sizeOf(const ProductLoops &loops) {
  int64_t size = 1;
  for (const ProductLoop &loop : loops)
    size *= loop.size;
  return size;
}

/// Makes columns of rows and rows of columns: C^T = B^T * A^T.
void transpose(StridedProduct &product) {
  std::swap(product.rows, product.columns);
  for (ProductFactors &factors : product.operands.factors)
    factors.transpose();
  for (ProductLoops *loops :
       {&product.batch, &product.rows, &product.columns, &product.sums})
    for (ProductLoop &loop : *loops)
      std::swap(loop.a, loop.b);
}

/// Takes out the loop that runs along the result's rows.
std::optional<ProductLoop> takeLoopAlongRows(ProductLoops &columns) {
  auto *found = llvm::find_if(
      columns, [](const ProductLoop &loop) { return loop.c == 1; });
  if (found == columns.end())
    return std::nullopt;
  ProductLoop column = *found;
  columns.erase(found);
  return column;
}

/// Takes out the largest loop.
ProductLoop takeLargest(ProductLoops &rows) {
  auto *found = llvm::max_element(
      rows, [](const ProductLoop &one, const ProductLoop &other) {
        return one.size < other.size;
      });
  ProductLoop row = *found;
  rows.erase(found);
  return row;
}

/// Products that are under way at a time where nothing waits: two units that
/// take four cycles for each.
constexpr int64_t kProductsUnderWay = 8;

/// What other tiles have to save, in percent.
constexpr int64_t kWorthwhile = 2;

/// Sets tiles of `vectors` and of as many rows as the registers hold beside the
/// vectors of B and an element of A, all about as many. One row more would be
/// kept in memory: on AVX2 tiles of 7 by 2 vectors reach 28 GFLOP/s where those
/// of 6 by 2 reach 75.
void setTile(TilePlan &plan, int64_t vectors) {
  plan.vectorsPerTile = vectors;
  int64_t rows = (plan.unit.registers - 1) / vectors - 1;
  if (plan.unit.registers >= 32)
    rows = std::min<int64_t>(rows, 12);
  rows = std::min(rows, plan.unit.lanes);
  int64_t tiles = llvm::divideCeil(plan.row.size, rows);
  plan.rowsPerTile = llvm::divideCeil(plan.row.size, tiles);
}

/// What an iteration of the sum takes for all tiles, in products of a vector:
/// as many as there are in a tile, its loads (as many at a time as products)
/// and what is under way being the least (Low et al., "Analytical Modeling Is
/// Enough for High-Performance BLIS", 2016, section 4.1).
int64_t slotsOf(const TilePlan &plan) {
  auto ofTile = [](int64_t rows, int64_t vectors) {
    return rows * vectors == 0
               ? 0
               : std::max({rows * vectors, rows + vectors, kProductsUnderWay});
  };
  auto ofPanel = [&](int64_t vectors) {
    return plan.row.size / plan.rowsPerTile *
               ofTile(plan.rowsPerTile, vectors) +
           ofTile(plan.row.size % plan.rowsPerTile, vectors);
  };
  int64_t vectors = llvm::divideCeil(plan.column.size, plan.unit.lanes);
  return vectors / plan.vectorsPerTile * ofPanel(plan.vectorsPerTile) +
         ofPanel(vectors % plan.vectorsPerTile);
}

/// Tiles of 4 vectors by 6 rows where there are 32 registers, else of 2 by 6,
/// or of 3 by 4 where that leaves fewer remainders.
void chooseTile(TilePlan &plan) {
  int64_t vectors = llvm::divideCeil(plan.column.size, plan.unit.lanes);
  if (plan.unit.registers >= 32)
    return setTile(plan, std::min<int64_t>(vectors, 4));
  setTile(plan, std::min<int64_t>(vectors, 2));
  if (vectors < 3)
    return;
  TilePlan wider = plan;
  setTile(wider, 3);
  if (slotsOf(wider) * 100 < slotsOf(plan) * (100 - kWorthwhile))
    plan = std::move(wider);
}

/// Makes one loop of neighbours that run through all operands as one does:
/// the order of the iterations stays.
void collapseNeighbours(ProductLoops &loops) {
  for (size_t at = 1; at < loops.size();) {
    ProductLoop &outer = loops[at - 1], &inner = loops[at];
    if (outer.a != inner.a * inner.size || outer.b != inner.b * inner.size ||
        outer.c != inner.c * inner.size) {
      ++at;
      continue;
    }
    inner.size *= outer.size;
    loops.erase(loops.begin() + (at - 1));
  }
}

/// Most terms of the sum inside a tile.
int64_t termsInside(const TilePlan &plan) {
  int64_t terms = kPanelElements / plan.columnsPerTile();
  // Blocks of several products would take turns.
  bool keepsOrder = plan.operands.factors.size() > 1;
  if (plan.row.a == 1 && !keepsOrder)
    terms = std::min(terms, plan.packRows ? kPackedTerms : kLinesOfRows);
  return terms;
}

/// Distributes the loops of the sum: as many inside as there is room for so
/// many terms. They are executed in the order of \p sums, however many are
/// inside.
void chooseBlocks(TilePlan &plan, ProductLoops sums, int64_t room) {
  int64_t products = plan.operands.factors.size();
  room = std::max<int64_t>(room / products, 1);
  while (!sums.empty() && sums.back().size <= room) {
    room /= sums.back().size;
    plan.sums.insert(plan.sums.begin(), sums.pop_back_val());
  }
  if (!sums.empty() && (room > 1 || plan.sums.empty())) {
    ProductLoop split = sums.pop_back_val();
    int64_t chunks = llvm::divideCeil(split.size, room);
    plan.chunk = llvm::divideCeil(split.size, chunks);
    // Whole vectors, for the transposition of packing.
    if (plan.chunk > 2 * plan.unit.lanes)
      plan.chunk = llvm::alignTo(plan.chunk, plan.unit.lanes);
    plan.sums.insert(plan.sums.begin(), split);
    sums.push_back(
        {static_cast<int64_t>(llvm::divideCeil(split.size, plan.chunk)),
         split.a * plan.chunk, split.b * plan.chunk, 0});
  } else {
    plan.chunk = plan.sums.front().size;
  }
  plan.blocks = std::move(sums);
}

/// Distributes them as the blocks of the sum say: some of the innermost loops
/// whole, a part of the next, and of all others one iteration; false where they
/// are others.
bool takeBlocks(TilePlan &plan, ProductLoops sums, ArrayRef<int64_t> block) {
  while (!sums.empty() && block.back() == sums.back().size) {
    plan.sums.insert(plan.sums.begin(), sums.pop_back_val());
    block = block.drop_back();
  }
  if (sums.empty())
    return false;
  if (block.back() > 1) {
    ProductLoop split = sums.pop_back_val();
    plan.chunk = block.back();
    block = block.drop_back();
    plan.sums.insert(plan.sums.begin(), split);
    int64_t chunks = llvm::divideCeil(split.size, plan.chunk);
    sums.push_back({chunks, split.a * plan.chunk, split.b * plan.chunk, 0});
  } else if (!plan.sums.empty()) {
    plan.chunk = plan.sums.front().size;
  } else {
    return false;
  }
  if (llvm::any_of(block, [](int64_t size) { return size != 1; }))
    return false;
  plan.blocks = std::move(sums);
  return true;
}
} // namespace

VectorUnit baechi::hostVectorUnit() {
  llvm::StringMap<bool> features = llvm::sys::getHostCPUFeatures();
  if (features.lookup("avx512f"))
    return {16, 32};
  if (features.lookup("avx2") && features.lookup("fma"))
    return {8, 16};
  if (features.lookup("neon"))
    return {4, 32};
  return {4, 16};
}

int64_t TilePlan::depth() const {
  return sizeOf(sums) / sums.front().size * chunk;
}

int64_t TilePlan::packedRows() const {
  return packRows ? sizeOf(aroundRows) * rowTiles() * rowsPerTile * depth() : 0;
}

int64_t TilePlan::packedPanel() const {
  return packPanel ? depth() * columnsPerTile() : 0;
}

int64_t TilePlan::scratchBytes() const {
  return (packedRows() + packedPanel()) *
         int64_t(operands.factors.size() * sizeof(float));
}

std::optional<TilePlan> baechi::planTiles(StridedProduct product,
                                          VectorUnit unit, bool inOrder) {
  for (ProductLoops *loops : {&product.batch, &product.rows, &product.columns})
    collapseLoops(*loops);
  bool inBlocks = inOrder && !product.block.empty();
  if (inOrder && !inBlocks)
    collapseNeighbours(product.sums);
  else if (!inOrder)
    collapseLoops(product.sums);
  auto column = takeLoopAlongRows(product.columns);
  if (!column) {
    transpose(product);
    column = takeLoopAlongRows(product.columns);
  }
  if (!column)
    return std::nullopt;
  ProductLoop row = takeLargest(product.rows);
  int64_t rows = row.size * sizeOf(product.rows);
  bool fillsVectors =
      row.size >= unit.lanes || rows < kVectorsToTranspose * unit.lanes;
  if (column->b != 1 && rows <= kFewRows && fillsVectors) {
    transpose(product);
    std::swap(*column, row);
    for (ProductLoop *loop : {&*column, &row})
      std::swap(loop->a, loop->b);
  }

  TilePlan plan;
  plan.operands = product.operands;
  plan.unit = unit;
  plan.inOrder = inOrder ? !inBlocks : sizeOf(product.sums) <= kShortSum;
  plan.column = *column;
  plan.row = row;
  plan.around = product.batch;
  plan.around.append(product.columns);
  plan.aroundRows = product.rows;
  chooseTile(plan);
  // The innermost runs through B most closely. (Analysis/SumOrders.cpp knows.)
  if (!inOrder)
    llvm::stable_sort(product.sums,
                      [](const ProductLoop &one, const ProductLoop &other) {
                        return std::abs(one.b) > std::abs(other.b);
                      });
  bool isPanel = column->size <= plan.columnsPerTile();
  // Rows so far apart share few sets of the caches.
  plan.packRows = !isPanel && plan.row.a == 1 &&
                  std::abs(product.sums.back().a) >= kFarApart;
  if (!inBlocks)
    chooseBlocks(plan, product.sums, termsInside(plan));
  else if (!takeBlocks(plan, product.sums, product.block))
    return std::nullopt;
  if (inOrder && plan.operands.factors.size() > 1 && !plan.blocks.empty())
    return std::nullopt;
  plan.packPanel =
      column->b != 1 ||
      (!isPanel && plan.row.size * sizeOf(plan.aroundRows) >= kRowsToPack);
  // With few rows, the time to read a panel shows; its rows are too far apart
  // for the processor to guess what comes next. (Asked for where the cache
  // loses them again, products of 64 rows took up to 1.7 times as long.)
  plan.prefetchPanel = !isPanel && column->b == 1 &&
                       plan.rowTiles() * sizeOf(plan.aroundRows) <= kFewTiles &&
                       plan.depth() <= rowsHeld(plan.sums.back().b);
  return plan;
}

std::optional<TilePlan> baechi::planTiles(func::FuncOp kernel,
                                          VectorUnit unit) {
  std::optional<StridedProduct> product = matchStridedProduct(kernel);
  if (!product)
    return std::nullopt;
  if (!isExact(kernel))
    return planTiles(std::move(*product), unit);
  WalkResult other = kernel.walk([](arith::AddFOp sum) {
    return fusedProductOf(sum) ? WalkResult::advance()
                               : WalkResult::interrupt();
  });
  if (other.wasInterrupted())
    return std::nullopt;
  return planTiles(std::move(*product), unit, /*inOrder=*/true);
}
