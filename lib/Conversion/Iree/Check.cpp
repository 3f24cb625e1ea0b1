//===- Check.cpp - What IREE can take -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Check.h"
#include "Baechi/Analysis/Program.h"
#include "Baechi/Dialect/Baechi.h"
#include "Baechi/Dialect/Pieces.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace baechi;

namespace {
/// The dialects of programs that iree-compile 3.12 takes.
constexpr StringLiteral kDialects[] = {
    "affine",         "arith", "builtin", "chlo",  "complex",   "func",
    "linalg",         "math",  "scf",     "shape", "tensor",    "stablehlo",
    "tosa",           "ub",    "util",    "flow",  "tm_tensor", "torch",
    "iree_linalg_ext"};

class Checker {
public:
  explicit Checker(func::FuncOp step) : step(step) {}

  LogicalResult run() {
    for (BlockArgument argument : step.getArguments())
      if (failed(checkType(argument.getLoc(), argument.getType(),
                           "argument " +
                               std::to_string(argument.getArgNumber()) + " ")))
        return failure();
    Operation *terminator = step.getBody().front().getTerminator();
    for (auto [index, type] : llvm::enumerate(terminator->getOperandTypes()))
      if (failed(checkType(terminator->getLoc(), type,
                           "result " + Twine(index) + " ")))
        return failure();
    if (failed(checkWhole()))
      return failure();
    return checkFunction(step);
  }

private:
  /// Who calls the module has whole arrays.
  LogicalResult checkWhole() {
    auto check = [&](Attribute attribute, Location loc,
                     const Twine &what) -> LogicalResult {
      auto piece = dyn_cast_or_null<PieceAttr>(attribute);
      if (!piece)
        return success();
      return emitError(loc)
             << what << " is a piece of '" << piece.getOf()
             << "', which callers of IREE's module would have to cut and put "
                "together; cut with --baechi-split=stored=false";
    };
    for (BlockArgument argument : step.getArguments())
      if (failed(check(step.getArgAttr(argument.getArgNumber(), kPiece),
                       argument.getLoc(),
                       "argument " + Twine(argument.getArgNumber()))))
        return failure();
    for (unsigned number : llvm::seq(step.getNumResults()))
      if (failed(check(step.getResultAttr(number, kPiece), step.getLoc(),
                       "result " + Twine(number))))
        return failure();
    return success();
  }

  /// IREE's calls pass tensors of static shape; it has no buffers of `index`.
  LogicalResult checkType(Location loc, Type type, const Twine &what) {
    if (!tensorBytes(type, false) || !isa<RankedTensorType>(type) ||
        !getElementTypeOrSelf(type).isIntOrFloat())
      return emitError(loc)
             << what << "has type " << type
             << ", which crosses no call of IREE; it takes tensors of static "
                "shape of integers or floats (use i64 for index)";
    return success();
  }

  LogicalResult checkFunction(func::FuncOp function) {
    SmallVector<func::FuncOp> callees;
    WalkResult result = function.walk([&](Operation *op) {
      if (!llvm::is_contained(kDialects, op->getName().getDialectNamespace())) {
        op->emitOpError() << "is unknown to IREE; lower it to linalg on "
                             "tensors before --baechi-export-iree";
        return WalkResult::interrupt();
      }
      if (function->hasAttr(BaechiDialect::kKernel) &&
          isa<LoopLikeOpInterface>(op)) {
        op->emitOpError() << "is a loop in a kernel, which IREE would run as a "
                             "dispatch an iteration; form the kernels with "
                             "--baechi-form-kernels=row-loops=false";
        return WalkResult::interrupt();
      }
      auto call = dyn_cast<func::CallOp>(op);
      if (!call)
        return WalkResult::advance();
      auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
          call, call.getCalleeAttr());
      if (!callee || callee.isDeclaration()) {
        call.emitOpError() << "calls @" << call.getCallee()
                           << ", which has no body for IREE to compile";
        return WalkResult::interrupt();
      }
      if (checked.insert(callee.getName()).second)
        callees.push_back(callee);
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      return failure();
    for (func::FuncOp callee : callees)
      if (failed(checkFunction(callee)))
        return failure();
    return success();
  }

  func::FuncOp step;
  llvm::StringSet<> checked;
};
} // namespace

LogicalResult baechi::checkForIree(func::FuncOp step) {
  return Checker(step).run();
}
