//===- Loops.cpp - Bufferized kernels to loops that LLVM vectorizes -===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/ExactSums.h"
#include "Common/BlockSums.h"
#include "Common/LaneSums.h"
#include "Common/Lowering.h"
#include "Common/Strides.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/Passes.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace baechi;

namespace {
/// Lower is better: how a contraction's innermost loop `dim` runs through
/// memory. Contiguous in the result and broadcast or contiguous in the factors
/// is what LLVM vectorizes best.
int64_t innermostCost(linalg::LinalgOp op, unsigned dim) {
  int64_t cost = 0;
  for (OpOperand &operand : op->getOpOperands()) {
    int64_t stride = strideAlong(op, operand, dim);
    bool isResult = op.isDpsInit(&operand);
    if (stride == 0)
      cost += isResult ? 2 : 0;
    else if (stride != 1)
      cost += isResult ? 8 : 4;
  }
  return cost;
}

/// Orders a contraction's loops: parallel ones, reductions in their order, and
/// innermost the parallel one that runs through memory best.
void orderContractionLoops(RewriterBase &rewriter, linalg::GenericOp op) {
  SmallVector<utils::IteratorType> kinds = op.getIteratorTypesArray();
  SmallVector<unsigned> order;
  for (auto kind :
       {utils::IteratorType::parallel, utils::IteratorType::reduction})
    for (unsigned dim : llvm::seq(op.getNumLoops()))
      if (kinds[dim] == kind)
        order.push_back(dim);
  auto *parallelEnd = order.begin() + op.getNumParallelLoops();
  if (parallelEnd != order.begin()) {
    auto *best = std::min_element(
        order.begin(), parallelEnd, [&](unsigned a, unsigned b) {
          return innermostCost(op, a) < innermostCost(op, b);
        });
    std::rotate(best, best + 1, order.end());
  }
  if (llvm::is_sorted(order))
    return;
  rewriter.setInsertionPoint(op);
  (void)linalg::interchangeGenericOp(rewriter, op, order);
}

/// Lets LLVM vectorize an elementwise operation whose result may lie in the
/// buffer of an argument: its iterations are independent even then.
LogicalResult lowerInPlace(RewriterBase &rewriter, linalg::LinalgOp op) {
  MLIRContext *context = op.getContext();
  auto group = LLVM::AccessGroupAttr::get(
      context, DistinctAttr::create(UnitAttr::get(context)));
  rewriter.setInsertionPoint(op);
  FailureOr<linalg::LinalgLoops> loops = linalg::linalgOpToLoops(rewriter, op);
  if (failed(loops))
    return failure();
  rewriter.eraseOp(op);
  auto annotation = LLVM::LoopAnnotationAttr::get(
      context, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {group});
  for (Operation *loop : *loops)
    loop->setAttr("loop_annotation", annotation);
  return success();
}

LogicalResult lowerKernel(func::FuncOp kernel,
                          const KernelSignature &signature) {
  IRRewriter rewriter(kernel.getContext());
  bool inOrder = isExact(kernel);
  SmallVector<std::pair<Value, Value>> sameBuffer;
  for (auto [result, arguments] : llvm::enumerate(signature.mayAlias))
    for (unsigned argument : arguments)
      sameBuffer.emplace_back(
          kernel.getArgument(argument),
          kernel.getArgument(signature.numArguments + result));

  SmallVector<memref::CopyOp> copies;
  SmallVector<linalg::LinalgOp> ops;
  kernel.walk([&](memref::CopyOp op) { copies.push_back(op); });
  for (memref::CopyOp copy : copies) {
    rewriter.setInsertionPoint(copy);
    rewriter.replaceOpWithNewOp<linalg::CopyOp>(copy, copy.getSource(),
                                                copy.getTarget());
  }

  // What is said of a program's arithmetic says nothing of its kernels.
  if (!inOrder)
    clearFastMath(kernel);
  generalizeContractions(rewriter, kernel);
  kernel.walk([&](linalg::LinalgOp op) { ops.push_back(op); });
  for (linalg::LinalgOp op : ops) {
    bool inPlace = llvm::any_of(sameBuffer, [&](auto pair) {
      return isElementwiseInPlace(op, pair.first, pair.second);
    });
    auto generic = dyn_cast<linalg::GenericOp>(*op);
    if (inPlace && failed(lowerInPlace(rewriter, op)))
      return failure();
    if (inPlace || !generic)
      continue;
    if (!inOrder)
      markSums(generic);
    if (!inOrder && isLoopOfDots(generic))
      markLoopOfDots(generic);
    // Of what was a product, too, such as one with a tensor of one number.
    bool isProduct = linalg::isaContractionOpInterface(op) ||
                     (inOrder && isOneChain(generic));
    if (isProduct && laneSumsOf(generic).empty())
      orderContractionLoops(rewriter, generic);
    // An exact product's sum has one order, also where it is in tiles. A sum
    // of what was multiplied before stays a sum, as where that is not fused.
    bool isChain = inOrder && isOneChain(generic);
    for (linalg::GenericOp each : sumInBlocks(rewriter, generic, isChain))
      if (!isChain && !laneSumsOf(each).empty())
        lowerLaneSum(rewriter, each);
  }
  return success();
}

/// Elementary functions whose polynomials LLVM vectorizes and that are within a
/// few units in the last place. The others are libm's: MLIR's sine and cosine,
/// for one, are wrong for large angles.
bool isApproximated(StringRef name) {
  return llvm::is_contained({"math.exp", "math.exp2", "math.expm1", "math.log",
                             "math.log1p", "math.log2", "math.tanh",
                             "math.erf"},
                            name);
}
} // namespace

void baechi::generalizeContractions(RewriterBase &rewriter,
                                    func::FuncOp kernel) {
  SmallVector<linalg::LinalgOp> named;
  kernel.walk([&](linalg::LinalgOp op) {
    if (!isa<linalg::GenericOp>(op) && linalg::isaContractionOpInterface(op))
      named.push_back(op);
  });
  for (linalg::LinalgOp op : named) {
    rewriter.setInsertionPoint(op);
    (void)linalg::generalizeNamedOp(rewriter, op);
  }
}

LogicalResult baechi::lowerToLoops(ModuleOp kernels,
                                   const KernelSignatures &signatures) {
  for (auto kernel : kernels.getOps<func::FuncOp>())
    if (auto it = signatures.find(kernel.getSymNameAttr());
        it != signatures.end())
      if (failed(lowerKernel(kernel, it->second)))
        return failure();
  // Before the polynomials, whose roundings are part of them.
  for (auto kernel : kernels.getOps<func::FuncOp>())
    fixFloatingPoint(kernel);
  // Calls of libm would keep LLVM from vectorizing.
  RewritePatternSet patterns(kernels.getContext());
  populateMathF32ExpansionPatterns(patterns, [](StringRef) { return true; });
  populateMathPolynomialApproximationPatterns(patterns, isApproximated);
  // The only operations of arith that LLVM has no instruction for. (The pass
  // that expands them expands maxima, too, which LLVM then does not vectorize.)
  arith::populateCeilFloorDivExpandOpsPatterns(patterns);
  if (failed(applyPatternsGreedily(kernels, std::move(patterns))))
    return failure();

  PassManager passes(kernels.getContext());
  passes.addNestedPass<func::FuncOp>(createConvertLinalgToLoopsPass());
  // Removes buffers that are only written: an operation may have a result for
  // no other reason than to say how far a loop runs.
  passes.addPass(createCanonicalizerPass());
  if (failed(passes.run(kernels)))
    return failure();
  for (auto kernel : kernels.getOps<func::FuncOp>())
    if (failed(placeAllocations(kernel)))
      return failure();
  return success();
}
