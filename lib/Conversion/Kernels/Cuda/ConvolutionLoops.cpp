//===- ConvolutionLoops.cpp - The loops of a convolution -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ConvolutionLoops.h"
#include "Baechi/Analysis/Contraction.h"
#include "Baechi/Runtime/CudaAbi.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace baechi;

namespace {
constexpr size_t kMostSpaces = BAECHI_CUDA_MOST_SPACES;

/// The factors of loops in a dimension of the images; nothing where it is
/// anything else than loops times numbers.
std::optional<SmallVector<std::pair<unsigned, int64_t>>> termsOf(AffineExpr e) {
  SmallVector<std::pair<unsigned, int64_t>> terms;
  SmallVector<AffineExpr> left{e};
  while (!left.empty()) {
    AffineExpr next = left.pop_back_val();
    if (auto dim = dyn_cast<AffineDimExpr>(next)) {
      terms.emplace_back(dim.getPosition(), 1);
      continue;
    }
    auto binary = dyn_cast<AffineBinaryOpExpr>(next);
    if (!binary)
      return std::nullopt;
    if (next.getKind() == AffineExprKind::Add) {
      left.push_back(binary.getLHS());
      left.push_back(binary.getRHS());
      continue;
    }
    auto dim = dyn_cast<AffineDimExpr>(binary.getLHS());
    auto factor = dyn_cast<AffineConstantExpr>(binary.getRHS());
    if (next.getKind() != AffineExprKind::Mul || !dim || !factor)
      return std::nullopt;
    terms.emplace_back(dim.getPosition(), factor.getValue());
  }
  return terms;
}

bool isWindow(AffineExpr e) { return isa<AffineBinaryOpExpr>(e); }

} // namespace

std::optional<ConvolutionLoops>
baechi::sortConvolutionLoops(linalg::GenericOp op, bool &swapped) {
  std::optional<Contraction> product = matchContraction(op);
  bool left = llvm::any_of(op.getIndexingMapsArray()[0].getResults(), isWindow);
  swapped = llvm::any_of(op.getIndexingMapsArray()[1].getResults(), isWindow);
  if (left == swapped)
    return std::nullopt;
  OpOperand &images = swapped ? product->rhs() : product->lhs();
  OpOperand &other = swapped ? product->lhs() : product->rhs();
  auto image = traceOperand(op, images), rest = traceOperand(op, other);
  AffineMap resultMap = op.getIndexingMapsArray()[2];
  if (!image || !rest || !resultMap.isProjectedPermutation())
    return std::nullopt;
  auto resultType = cast<RankedTensorType>(op.getResult(0).getType());
  SmallVector<int64_t> sizes = op.getStaticLoopRanges();
  ProductLoops all(sizes.size());
  for (size_t i = 0; i < sizes.size(); ++i)
    all[i] = {sizes[i], image->strides[i], rest->strides[i], 0};
  int64_t stride = 1;
  for (int64_t dim = resultType.getRank() - 1; dim >= 0; --dim) {
    all[resultMap.getDimPosition(dim)].c = stride;
    stride *= resultType.getDimSize(dim);
  }

  LoopClass ofResult = swapped ? LoopClass::N : LoopClass::M;
  ConvolutionLoops loops;
  llvm::SmallDenseSet<unsigned> inSpace;
  for (AffineExpr e : op.getMatchingIndexingMap(&images).getResults()) {
    if (!isWindow(e))
      continue;
    auto terms = termsOf(e);
    if (!terms || terms->size() != 2)
      return std::nullopt;
    auto [placed, summed] = std::pair((*terms)[0], (*terms)[1]);
    if (product->classes[placed.first] != ofResult)
      std::swap(placed, summed);
    if (product->classes[placed.first] != ofResult ||
        product->classes[summed.first] != LoopClass::K ||
        !inSpace.insert(placed.first).second ||
        !inSpace.insert(summed.first).second || placed.second <= 0 ||
        summed.second <= 0)
      return std::nullopt;
    ConvolutionSpace &space = loops.spaces.emplace_back();
    space.place = all[placed.first];
    space.window = all[summed.first];
    space.step = placed.second;
    space.dilation = summed.second;
    space.stride = space.place.a / space.step;
  }
  for (auto [i, loop] : llvm::enumerate(all)) {
    if (inSpace.contains(i) || loop.size == 1)
      continue;
    LoopClass which = product->classes[i];
    (which == LoopClass::Batch ? loops.groups
     : which == LoopClass::K   ? loops.summed
     : which == ofResult       ? loops.ofResult
                               : loops.ofOther)
        .push_back(loop);
  }
  return loops;
}

bool baechi::setSpaces(ConvolutionLoops &loops, bool ofFilters) {
  if (ofFilters)
    for (ConvolutionSpace &space : loops.spaces) {
      std::swap(space.place, space.window);
      std::swap(space.step, space.dilation);
    }
  for (auto *each : {&loops.ofResult, &loops.summed, &loops.ofOther})
    collapseLoops(*each);
  ProductLoops &batch = ofFilters ? loops.summed : loops.ofResult;
  ProductLoops &channels = ofFilters ? loops.ofResult : loops.summed;
  // Dimensions of space with windows of one pixel.
  while (batch.size() > 1 && loops.spaces.size() < kMostSpaces) {
    auto *inner = llvm::min_element(
        batch,
        [](const ProductLoop &a, const ProductLoop &b) { return a.a < b.a; });
    ConvolutionSpace &space = loops.spaces.emplace_back();
    space.place = *inner;
    space.stride = inner->a;
    batch.erase(inner);
  }
  llvm::stable_sort(loops.spaces,
                    [](const ConvolutionSpace &a, const ConvolutionSpace &b) {
                      return a.stride > b.stride;
                    });
  // The library wants two.
  if (loops.spaces.size() == 1)
    loops.spaces.insert(loops.spaces.begin(), ConvolutionSpace());
  return loops.spaces.size() <= kMostSpaces && batch.size() <= 1 &&
         channels.size() <= 1 && loops.ofOther.size() <= 1 &&
         loops.groups.size() <= 1;
}
