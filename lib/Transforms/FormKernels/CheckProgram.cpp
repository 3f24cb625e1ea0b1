//===- CheckProgram.cpp - What can become kernels -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/Program.h"
#include "Baechi/Dialect/Baechi.h"
#include "Baechi/Dialect/Replicas.h"
#include "OperatorKinds.h"
#include "Phases.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace baechi;
using namespace baechi::formkernels;

FailureOr<func::FuncOp> formkernels::findStep(ModuleOp module) {
  SmallVector<func::FuncOp> candidates;
  for (auto function : module.getOps<func::FuncOp>())
    if (function.isPublic())
      candidates.push_back(function);
  if (failed(checkNotPartitioned(module)))
    return failure();
  if (candidates.empty()) {
    InFlightDiagnostic diagnostic =
        module.emitError("the module has no public function; the function "
                         "to compile must be its only public one");
    for (auto function : module.getOps<func::FuncOp>())
      if (!function.isDeclaration())
        diagnostic.attachNote(function.getLoc())
            << "@" << function.getName() << " is private";
    return diagnostic;
  }
  if (candidates.size() > 1) {
    InFlightDiagnostic diagnostic = module.emitError(
        "the module has several public functions; make all but one private:");
    for (func::FuncOp candidate : candidates)
      diagnostic << " @" << candidate.getName();
    for (func::FuncOp candidate : candidates)
      diagnostic.attachNote(candidate.getLoc()) << "this one is public";
    return diagnostic;
  }
  func::FuncOp step = candidates.front();
  if (!step.getBody().hasOneBlock())
    return step.emitError("the step has several blocks; control flow must be "
                          "structured (scf.if, scf.while)");
  return step;
}

/// What to do about an unknown size. \p op: what has it; null for the step.
static StringRef mendOfSize(Operation *op) {
  return op && op->getParentOfType<scf::ForOp>()
             ? "in a loop: where its last turn takes what is left of a tensor, "
               "peel that off ('mlir-opt --scf-for-loop-peeling "
               "--canonicalize'), or take pieces whose size divides the tensor"
             : "import the model with fixed sizes";
}

/// Why code cannot be generated for tensors of this type, which \p op has (the
/// step: null); empty if it can.
static std::string whyUnsupported(Type type, Operation *op = nullptr) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (isa<BaseMemRefType, UnrankedTensorType>(type)) {
    os << "has type '" << type << "'; tensors of static shape are supported";
    return text;
  }
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor)
    return text;
  Type element = tensor.getElementType();
  if (!tensor.hasStaticShape())
    os << "has the dynamic shape '" << type << "'; " << mendOfSize(op);
  else if (tensor.getEncoding())
    os << "has type '" << type << "', whose encoding is not supported";
  else if (!isa<Float16Type, BFloat16Type, Float32Type, Float64Type>(element) &&
           !element.isSignlessInteger(1) && !element.isSignlessInteger(8) &&
           !element.isSignlessInteger(16) && !element.isSignlessInteger(32) &&
           !element.isSignlessInteger(64))
    os << "has type '" << type << "', whose elements are not supported; "
       << "supported are f16, bf16, f32, f64, i1, i8, i16, i32 and i64";
  return text;
}

static LogicalResult checkTypes(Operation *op) {
  for (Value operand : op->getOperands())
    if (std::string why = whyUnsupported(operand.getType(), op); !why.empty())
      return op->emitOpError("an operand ") << why;
  for (Type type : op->getResultTypes())
    if (std::string why = whyUnsupported(type, op); !why.empty())
      return op->emitOpError("a result ") << why;
  return success();
}

/// Lowering loses reductions over empty loops, which leave their start values.
static LogicalResult checkReduction(Operation *op) {
  auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
  if (!linalgOp || linalgOp.getNumReductionLoops() == 0)
    return success();
  for (Value operand : op->getOperands())
    if (auto type = dyn_cast<RankedTensorType>(operand.getType()))
      if (llvm::is_contained(type.getShape(), 0))
        return op->emitOpError("reduces with an operand of type ")
               << type
               << "; reductions of tensors without elements are not "
                  "supported";
  return success();
}

LogicalResult formkernels::checkAsWritten(func::FuncOp step) {
  for (Operation &op : step.front().without_terminator())
    for (NamedAttribute attr : op.getDiscardableAttrs())
      if (isa_and_nonnull<BaechiDialect>(attr.getNameDialect()) &&
          attr.getName() != BaechiDialect::kPartials &&
          attr.getName() != kCopied)
        return op.emitOpError("carries '")
               << attr.getName().getValue()
               << "', which does not survive fusion; set it on the calls of "
                  "kernels, after --baechi-form-kernels";
  return checkNotLostByFolds(step->getParentOfType<ModuleOp>());
}

/// Whether \p function calls itself, by others or at once.
static bool isRecursive(func::FuncOp function) {
  llvm::SetVector<Operation *> called;
  auto collect = [&](Operation *from) {
    from->walk([&](func::CallOp call) {
      if (Operation *callee =
              SymbolTable::lookupNearestSymbolFrom(call, call.getCalleeAttr()))
        called.insert(callee);
    });
  };
  collect(function);
  for (size_t i = 0; i < called.size() && !called.contains(function); ++i)
    collect(called[i]);
  return called.contains(function);
}

/// Of a call that inlining has left.
static LogicalResult refuseCall(Operation *op) {
  auto call = dyn_cast<func::CallOp>(op);
  auto callee = call ? SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
                           call, call.getCalleeAttr())
                     : nullptr;
  if (callee && callee.isDeclaration())
    return op->emitOpError("calls @")
           << callee.getName()
           << ", which has no body: define it in this module";
  if (callee && isRecursive(callee))
    return op->emitOpError("calls @")
           << callee.getName()
           << ", which calls itself: write a loop (scf.while) instead";
  return op->emitOpError("calls another function; inline it first (--inline)");
}

/// What an operation of tensors that no kernel can have is written as instead;
/// empty: kernels have it.
static StringRef writtenAs(Operation *op) {
  if (isa<tensor::GatherOp>(op))
    return "a linalg.generic with tensor.extract";
  if (isa<tensor::ScatterOp>(op))
    return "an scf.for with tensor.insert or tensor.insert_slice";
  if (isa<tensor::BitcastOp>(op))
    return "a linalg.generic with arith.bitcast";
  return "";
}

LogicalResult formkernels::checkOperations(func::FuncOp step) {
  for (BlockArgument argument : step.getArguments()) {
    std::string why = whyUnsupported(argument.getType());
    if (why.empty() && !isa<TensorType>(argument.getType()))
      why = "is no tensor; a scalar is a tensor without dimensions";
    if (!why.empty())
      return step.emitError("argument ")
             << argument.getArgNumber() << " " << why;
  }
  for (auto [index, type] : llvm::enumerate(step.getResultTypes()))
    if (!isa<TensorType>(type))
      return step.emitError("result ")
             << index
             << " is no tensor; a scalar is a tensor without dimensions";

  for (Operation &op : step.front().without_terminator()) {
    WalkResult walked = op.walk([&](Operation *inner) -> WalkResult {
      if (hostCallOf(inner)) {
        if (inner != &op)
          return inner->emitOpError("is a host call in a loop or a branch; "
                                    "host calls are the step's own");
        if (!llvm::all_of(inner->getOperandTypes(),
                          llvm::IsaPred<TensorType>) ||
            !llvm::all_of(inner->getResultTypes(), llvm::IsaPred<TensorType>))
          return inner->emitOpError("is a host call with a scalar; make it a "
                                    "tensor without dimensions");
        return checkTypes(inner);
      }
      if (isa<CallOpInterface>(inner))
        return refuseCall(inner);
      if (StringRef instead = writtenAs(inner); !instead.empty())
        return inner->emitOpError(
                   "cannot become part of a kernel; write it as ")
               << instead;
      if (!isa_and_nonnull<linalg::LinalgDialect, tensor::TensorDialect,
                           arith::ArithDialect, math::MathDialect,
                           scf::SCFDialect>(inner->getDialect()))
        return inner->emitOpError(
            "cannot become part of a kernel; kernels hold operations of the "
            "linalg, tensor, arith, math and scf dialects");
      if (failed(checkTypes(inner)))
        return failure();
      return checkReduction(inner);
    });
    if (walked.wasInterrupted())
      return failure();
    if (!hostCallOf(&op) && !isMemoryEffectFree(&op))
      return op.emitOpError("has side effects and cannot become a kernel");
    if (isOperator(&op))
      for (Value result : op.getResults())
        if (!isa<TensorType>(result.getType()) && !result.use_empty())
          return op.emitOpError("leaves a scalar of type ")
                 << result.getType()
                 << " to other operations; make it a tensor without "
                    "dimensions";
  }
  return success();
}
