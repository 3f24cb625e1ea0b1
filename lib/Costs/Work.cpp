//===- Work.cpp - Operations and bytes of one operator ----------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/InPlace.h"
#include "Baechi/Analysis/Program.h"
#include "Baechi/Costs/Roofline.h"
#include "Baechi/Costs/Trips.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/CastInterfaces.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/IntEqClasses.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace baechi;

namespace {
/// Points of a map that are counted one by one; beyond it a bound is taken.
constexpr double mostPoints = 1 << 16;

double elementsOf(Type type) {
  auto shaped = dyn_cast<ShapedType>(type);
  return shaped && shaped.hasStaticShape() ? shaped.getNumElements() : 1;
}

double bytesOf(Type type) { return tensorBytes(type, false).value_or(0); }

double pointsOf(linalg::LinalgOp op) {
  double points = 1;
  for (int64_t range : op.getStaticLoopRanges())
    points *= ShapedType::isDynamic(range) ? 1 : range;
  return points;
}

/// How often the regions of \p op are executed.
double timesOf(Operation *op) {
  if (auto structured = dyn_cast<linalg::LinalgOp>(op))
    return pointsOf(structured);
  if (auto loop = dyn_cast<LoopLikeOpInterface>(op))
    return tripsOf(loop);
  if (isa<tensor::GenerateOp>(op))
    return elementsOf(op->getResult(0).getType());
  return 1;
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

/// Operations an element of a data-computing scalar or elementwise operation:
/// none for constants, casts and computations of positions.
double arithmeticOf(Operation *op) {
  if (op->hasTrait<OpTrait::ConstantLike>() || isa<CastOpInterface>(op))
    return 0;
  auto isPosition = [](Type type) {
    return getElementTypeOrSelf(type).isIndex();
  };
  if (llvm::any_of(op->getOperandTypes(), isPosition) ||
      llvm::any_of(op->getResultTypes(), isPosition))
    return 0;
  return isa<math::FmaOp>(op) ? 2 : 1;
}

/// Elements of \p lhs that one element of the result of a product sums over,
/// where the dimensions are in \p numbers, of StableHLO's `#stablehlo.dot`.
/// StableHLO is not linked, so that only its text can be read.
std::optional<double> contractedElements(RankedTensorType lhs,
                                         Attribute numbers) {
  std::string text;
  llvm::raw_string_ostream(text) << numbers;
  auto [before, after] = StringRef(text).split("lhs_contracting_dimensions");
  StringRef list = after.split('[').second.split(']').first;
  SmallVector<StringRef> dims;
  list.split(dims, ',', -1, /*KeepEmpty=*/false);
  double elements = 1;
  for (StringRef text : dims) {
    int64_t dim;
    if (text.trim().getAsInteger(10, dim) || dim < 0 || dim >= lhs.getRank())
      return std::nullopt;
    elements *= lhs.getDimSize(dim);
  }
  return dims.empty() ? std::nullopt : std::optional(elements);
}

/// Operations an element of the result of an operation whose body cannot be
/// looked into: one where nothing is known of it.
double opaqueArithmeticOf(Operation &op) {
  StringRef name = op.getName().getStringRef();
  // Maximum, difference, exponential, sum, quotient.
  if (isa<linalg::SoftmaxOp>(op))
    return 5;
  // They move data.
  if (isa<linalg::PackOp, linalg::UnPackOp>(op))
    return 0;
  auto lhs = op.getNumOperands() > 1
                 ? dyn_cast<RankedTensorType>(op.getOperand(0).getType())
                 : RankedTensorType();
  if (!lhs || !lhs.hasStaticShape())
    return 1;
  if (name == "tosa.matmul" && lhs.getRank() == 3)
    return 2.0 * lhs.getDimSize(2);
  if (name == "stablehlo.dot_general")
    if (Attribute numbers = op.getAttr("dot_dimension_numbers"))
      if (std::optional<double> summed = contractedElements(lhs, numbers))
        return 2 * *summed;
  return 1;
}

double flopsOf(Operation &op) {
  double inside = 0;
  bool alternatives =
      isa<RegionBranchOpInterface>(op) && !isa<LoopLikeOpInterface>(op);
  for (Region &region : op.getRegions()) {
    double flops = 0;
    for (Block &block : region)
      for (Operation &inner : block)
        flops += flopsOf(inner);
    inside = alternatives ? std::max(inside, flops) : inside + flops;
  }
  if (op.getNumRegions() > 0)
    return inside == 0 ? 0 : inside * timesOf(&op);
  double elements = 0;
  for (Type type : op.getResultTypes())
    if (!type.isIndex())
      elements += elementsOf(type);
  StringRef dialect = op.getName().getDialectNamespace();
  if (dialect == "arith" || dialect == "math" || dialect == "complex")
    return elements * arithmeticOf(&op);
  // They move data, or say where it is.
  if (op.hasTrait<OpTrait::IsTerminator>() ||
      llvm::is_contained({"tensor", "memref", "bufferization", "builtin", "ub",
                          "index", "affine", "baechi", "func"},
                         dialect))
    return 0;
  return elements * opaqueArithmeticOf(op);
}

//===----------------------------------------------------------------------===//
// Memory traffic
//===----------------------------------------------------------------------===//

int64_t valueOf(AffineExpr expr, ArrayRef<int64_t> at) {
  if (auto dim = dyn_cast<AffineDimExpr>(expr))
    return at[dim.getPosition()];
  if (auto constant = dyn_cast<AffineConstantExpr>(expr))
    return constant.getValue();
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary) // a symbol: the same in every iteration
    return 0;
  int64_t left = valueOf(binary.getLHS(), at),
          right = valueOf(binary.getRHS(), at);
  switch (expr.getKind()) {
  case AffineExprKind::Add:
    return left + right;
  case AffineExprKind::Mul:
    return left * right;
  case AffineExprKind::Mod:
    return right > 0 ? llvm::mod(left, right) : 0;
  case AffineExprKind::FloorDiv:
    return right > 0 ? llvm::divideFloorSigned(left, right) : 0;
  default:
    return right > 0 ? llvm::divideCeilSigned(left, right) : 0;
  }
}

/// Different values that the results \p group of \p map take together.
double distinctValues(AffineMap map, ArrayRef<unsigned> group,
                      ArrayRef<int64_t> ranges, ArrayRef<int64_t> shape) {
  SmallVector<unsigned> dims;
  for (unsigned dim = 0; dim < map.getNumDims(); ++dim)
    if (llvm::any_of(group, [&](unsigned result) {
          return map.getResult(result).isFunctionOfDim(dim);
        }))
      dims.push_back(dim);
  double points = 1, bound = 1;
  for (unsigned dim : dims)
    points *= ranges[dim];
  for (unsigned result : group)
    bound *= shape[result];
  // A plain loop touches an element an iteration.
  if (group.size() == 1 && isa<AffineDimExpr>(map.getResult(group[0])))
    return points;
  if (points > mostPoints)
    return std::min(points, bound);
  llvm::DenseSet<int64_t> seen;
  SmallVector<int64_t> at(map.getNumDims(), 0);
  while (true) {
    int64_t linear = 0;
    for (unsigned result : group)
      linear = linear * shape[result] + valueOf(map.getResult(result), at);
    seen.insert(linear);
    size_t k = 0;
    while (k < dims.size() && ++at[dims[k]] == ranges[dims[k]])
      at[dims[k++]] = 0;
    if (k == dims.size())
      return seen.size();
  }
}

/// Elements of an operand of shape \p shape that a loop nest touches.
double touchedElements(AffineMap map, ArrayRef<int64_t> ranges,
                       ArrayRef<int64_t> shape) {
  if (llvm::any_of(ranges, [](int64_t range) { return range <= 0; }) ||
      ShapedType::isDynamicShape(shape))
    return 0;
  // Results that share a loop move together.
  llvm::IntEqClasses together(map.getNumResults());
  for (unsigned dim = 0; dim < map.getNumDims(); ++dim) {
    std::optional<unsigned> first;
    for (unsigned result = 0; result < map.getNumResults(); ++result)
      if (map.getResult(result).isFunctionOfDim(dim)) {
        if (first)
          together.join(*first, result);
        else
          first = result;
      }
  }
  together.compress();
  double touched = 1;
  for (unsigned of = 0; of < together.getNumClasses(); ++of) {
    SmallVector<unsigned> group;
    for (unsigned result = 0; result < map.getNumResults(); ++result)
      if (together[result] == of)
        group.push_back(result);
    touched *= distinctValues(map, group, ranges, shape);
  }
  return touched;
}

double touchedBytes(linalg::LinalgOp op, OpOperand &operand) {
  Type type = operand.get().getType();
  double whole = bytesOf(type);
  if (whole == 0)
    return 0;
  double touched =
      touchedElements(op.getMatchingIndexingMap(&operand),
                      op.getStaticLoopRanges(), op.getShape(&operand));
  return std::min(whole, touched * (whole / elementsOf(type)));
}

double bytesRead(Value tensor);

/// Bytes that one execution of the user reads.
double bytesReadBy(OpOperand &use) {
  Operation *user = use.getOwner();
  double whole = bytesOf(use.get().getType());
  if (auto structured = dyn_cast<linalg::LinalgOp>(user))
    return structured.payloadUsesValueFromOperand(&use)
               ? touchedBytes(structured, use)
               : 0;
  // These only write into their init.
  if (isa<linalg::SoftmaxOp, linalg::PackOp, linalg::UnPackOp>(user) &&
      cast<DestinationStyleOpInterface>(user).isDpsInit(&use))
    return 0;
  if (isa<tensor::ExtractSliceOp>(user))
    return std::min(whole, bytesOf(user->getResult(0).getType()));
  if (isa<tensor::ExtractOp>(user))
    return whole / elementsOf(use.get().getType());
  if (isa<tensor::DimOp>(user))
    return 0;
  if (isView(user) && user->getNumResults() == 1)
    return bytesRead(user->getResult(0));
  return whole;
}

/// Bytes that all users read, none twice as far as can be told.
double bytesRead(Value tensor) {
  double whole = bytesOf(tensor.getType()), read = 0;
  for (OpOperand &use : tensor.getUses()) {
    double times = 1;
    for (Operation *around = use.getOwner()->getParentOp();
         around != tensor.getParentRegion()->getParentOp();
         around = around->getParentOp())
      times *= timesOf(around);
    read += times * bytesReadBy(use);
    if (read >= whole)
      return whole;
  }
  return read;
}

double bytesWritten(Operation *op) {
  double bytes = 0;
  if (auto structured = dyn_cast<linalg::LinalgOp>(op)) {
    for (OpOperand &init : structured.getDpsInitsMutable())
      bytes += touchedBytes(structured, init);
    return bytes;
  }
  for (Type type : op->getResultTypes())
    bytes += bytesOf(type);
  return bytes;
}
/// Bytes that \p change and what it is made of read and write of the tensor.
double bytesChanged(OpOperand &change) {
  Operation *op = change.getOwner();
  if (auto insert = dyn_cast<tensor::InsertSliceOp>(op))
    return bytesOf(insert.getSourceType());
  auto loop = dyn_cast<scf::ForOp>(op);
  if (!loop) // an element
    return bytesOf(change.get().getType()) / elementsOf(change.get().getType());
  double bytes = 0;
  SmallVector<Value> versions{loop.getTiedLoopRegionIterArg(&change)};
  while (!versions.empty())
    for (OpOperand &use : versions.pop_back_val().getUses()) {
      auto results = use.getOwner()->getResults();
      auto next = llvm::find_if(results, [&](OpResult result) {
        return changedOperand(result) == &use;
      });
      if (next != results.end()) {
        bytes += bytesChanged(use);
        versions.push_back(*next);
      } else if (!isa<scf::YieldOp>(use.getOwner())) {
        bytes += bytesReadBy(use);
      }
    }
  return tripsOf(loop) * bytes;
}
} // namespace

Work baechi::workOfKernel(func::FuncOp kernel) {
  Work work;
  if (kernel.isDeclaration()) { // all that is known of a host call
    for (Type type : llvm::concat<const Type>(kernel.getArgumentTypes(),
                                              kernel.getResultTypes()))
      work.bytes += bytesOf(type);
    return work;
  }
  for (Operation &op : kernel.getBody().getOps())
    work.flops += flopsOf(op);
  llvm::SmallDenseSet<unsigned> changed;
  for (auto [result, type] : llvm::enumerate(kernel.getResultTypes())) {
    std::optional<ArgumentChange> change = inPlaceChangeOf(kernel, result);
    if (!change) {
      work.bytes += bytesOf(type);
      continue;
    }
    changed.insert(change->argument);
    double bytes = 0;
    for (OpOperand *by : change->by)
      bytes += bytesChanged(*by);
    work.bytes += std::min(bytes, 2 * bytesOf(type));
  }
  for (BlockArgument argument : kernel.getArguments())
    if (!changed.contains(argument.getArgNumber()))
      work.bytes += bytesRead(argument);
  return work;
}

Work baechi::workOf(Operation *op) { return workOf(op, kernelOf(op)); }

Work baechi::workOf(Operation *op, func::FuncOp kernel) {
  if (auto stated = dyn_cast<CostOpInterface>(op))
    if (std::optional<Work> work = stated.getWork())
      return *work;
  if (kernel && !kernel.isDeclaration())
    return workOfKernel(kernel);
  Work work;
  work.flops = flopsOf(*op);
  work.bytes = bytesWritten(op);
  for (OpOperand &operand : op->getOpOperands())
    work.bytes += bytesReadBy(operand);
  return work;
}
