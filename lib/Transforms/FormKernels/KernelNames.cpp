//===- KernelNames.cpp - Names that say what kernels do -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelNames.h"
#include "Baechi/Analysis/Contraction.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include <numeric>

using namespace mlir;
using namespace baechi;
using namespace baechi::formkernels;

/// More words than these say no more.
static constexpr size_t kMaxWords = 5;

using Words = SetVector<StringRef>;

/// The loops of a structured operation; the largest result's dimensions of
/// others.
static SmallVector<int64_t> sizesOf(Operation *op) {
  if (auto structured = dyn_cast<linalg::LinalgOp>(op))
    return structured.getStaticLoopRanges();
  RankedTensorType largest;
  for (Type type : op->getResultTypes())
    if (auto tensor = dyn_cast<RankedTensorType>(type);
        tensor &&
        (!largest || tensor.getNumElements() > largest.getNumElements()))
      largest = tensor;
  return largest ? llvm::to_vector(largest.getShape()) : SmallVector<int64_t>();
}

static int64_t iterations(Operation *op) {
  SmallVector<int64_t> sizes = sizesOf(op);
  return std::accumulate(sizes.begin(), sizes.end(), int64_t(1),
                         std::multiplies<>());
}

Operation *formkernels::mainOperation(ArrayRef<Operation *> operations) {
  Operation *main = operations.front();
  for (Operation *op : operations) {
    if (matchContraction(op))
      return op;
    if (iterations(op) > iterations(main))
      main = op;
  }
  return main;
}

/// "arith.addf" -> "add"; empty for what is not worth naming.
static StringRef wordFor(Operation *op) {
  if (isa<arith::ConstantOp, arith::ExtFOp, arith::TruncFOp, arith::ExtSIOp,
          arith::ExtUIOp, arith::TruncIOp, arith::IndexCastOp,
          arith::IndexCastUIOp, linalg::IndexOp, linalg::YieldOp>(op))
    return "";
  if (isa<arith::CmpFOp, arith::CmpIOp>(op))
    return "compare";
  if (isa<arith::MaximumFOp, arith::MaxNumFOp, arith::MaxSIOp, arith::MaxUIOp>(
          op))
    return "max";
  if (isa<arith::MinimumFOp, arith::MinNumFOp, arith::MinSIOp, arith::MinUIOp>(
          op))
    return "min";
  if (isa<arith::SIToFPOp, arith::UIToFPOp, arith::FPToSIOp, arith::FPToUIOp,
          arith::BitcastOp>(op))
    return "convert";
  if (isa<tensor::ExtractOp>(op))
    return "gather";
  StringRef name = op->getName().stripDialect();
  if (isa_and_nonnull<arith::ArithDialect>(op->getDialect()) &&
      name.size() > 2 && (name.ends_with("f") || name.ends_with("i")))
    name = name.drop_back(name.ends_with("si") || name.ends_with("ui") ? 2 : 1);
  return name;
}

/// What a reduction does with the elements: the word of the operation that
/// combines them with the result so far.
static StringRef reductionWord(linalg::GenericOp op) {
  Operation *combiner =
      op.getBody()->getTerminator()->getOperand(0).getDefiningOp();
  StringRef word = combiner ? wordFor(combiner) : "";
  return word == "add" ? "sum" : word.empty() ? "reduce" : word;
}

static StringRef shuffleWord(linalg::GenericOp op) {
  if (op.getNumDpsInputs() == 0)
    return "fill";
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  if (maps.front() == maps.back())
    return "copy";
  return maps.front().isPermutation() ? "transpose" : "broadcast";
}

static void addWords(Operation *op, Words &words, bool &rowMax, bool &rowSum) {
  auto generic = dyn_cast<linalg::GenericOp>(op);
  if (!generic) {
    words.insert(op->getName().stripDialect());
    return;
  }
  size_t before = words.size();
  bool known = false;
  Operation *combiner = nullptr;
  if (generic.getNumReductionLoops() > 0)
    combiner =
        generic.getBody()->getTerminator()->getOperand(0).getDefiningOp();
  for (Operation &inner : generic.getBody()->without_terminator()) {
    if (&inner == combiner)
      continue;
    if (StringRef word = wordFor(&inner); !word.empty()) {
      words.insert(word);
      known = true;
    }
  }
  if (combiner) {
    StringRef word = reductionWord(generic);
    rowMax |= word == "max";
    rowSum |= word == "sum";
    words.insert(word);
  } else if (!known && words.size() == before) {
    words.insert(shuffleWord(generic));
  }
}

/// \p products: how many such contractions are added up.
static std::string contractionName(const Contraction &contraction,
                                   size_t products) {
  bool convolution =
      llvm::any_of(contraction.op->getAttrOfType<ArrayAttr>("indexing_maps")
                       .getAsValueRange<AffineMapAttr>(),
                   [](AffineMap map) { return !map.isProjectedPermutation(); });
  int64_t batch = contraction.size(LoopClass::Batch);
  std::string name = convolution ? "conv"
                     : batch > 1 ? "batch_matmul"
                                 : "matmul";
  if (!startsFromZero(contraction))
    name += "_add";
  if (products > 1)
    name += "_sum" + std::to_string(products);
  name += "_";
  if (batch > 1)
    name += std::to_string(batch) + "x";
  return name + std::to_string(contraction.size(LoopClass::M)) + "x" +
         std::to_string(contraction.size(LoopClass::N)) + "x" +
         std::to_string(contraction.size(LoopClass::K));
}

std::string formkernels::kernelName(ArrayRef<Operation *> operations) {
  Operation *main = mainOperation(operations);
  if (std::optional<Contraction> contraction = matchContraction(main))
    return contractionName(*contraction,
                           llvm::count_if(operations, matchContraction));

  Words words;
  bool rowMax = false, rowSum = false;
  for (Operation *op : operations)
    addWords(op, words, rowMax, rowSum);
  std::string name;
  if (rowMax && rowSum && words.contains("exp"))
    name = words.contains("log") ? "log_softmax" : "softmax";
  else if (rowSum && words.contains("rsqrt"))
    name = "layer_norm";
  else
    name = llvm::join(llvm::ArrayRef(words.getArrayRef()).take_front(kMaxWords),
                      "_");

  // Never a word alone: a kernel `tanh` would be called instead of libm's.
  SmallVector<int64_t> sizes = sizesOf(main);
  if (sizes.empty())
    return name + "_scalar";
  return name + "_" +
         llvm::join(
             llvm::map_range(sizes,
                             [](int64_t size) { return std::to_string(size); }),
             "x");
}
