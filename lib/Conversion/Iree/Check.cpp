//===- Check.cpp - What IREE can take -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Check.h"
#include "Baechi/Analysis/Program.h"
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
  Checker(func::FuncOp step, MachineAttr machine) : step(step) {
    for (DeviceSpecAttr device : machine.getDevices())
      devices.insert(device.getName());
  }

  LogicalResult run() {
    for (BlockArgument argument : step.getArguments()) {
      std::string name =
          "argument " + std::to_string(argument.getArgNumber()) + " ";
      auto device = step.getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                                      BaechiDialect::kDevice);
      if (failed(checkDevice(argument.getLoc(), device, name)) ||
          failed(checkType(argument.getLoc(), argument.getType(), name)))
        return failure();
    }
    for (Operation *op : operatorsOf(step))
      if (failed(
              checkDevice(op->getLoc(),
                          op->getAttrOfType<StringAttr>(BaechiDialect::kDevice),
                          "'" + op->getName().getStringRef() + "' ")) ||
          failed(checkOneDevice(op)))
        return failure();
    Operation *terminator = step.getBody().front().getTerminator();
    for (auto [index, type] : llvm::enumerate(terminator->getOperandTypes()))
      if (failed(checkType(terminator->getLoc(), type,
                           "result " + Twine(index) + " ")))
        return failure();
    return checkFunction(step);
  }

private:
  LogicalResult checkDevice(Location loc, StringAttr device,
                            const Twine &what) {
    if (!device)
      return emitError(loc) << what << "is on no device; run --baechi-place";
    if (!devices.contains(device.getValue()))
      return emitError(loc) << what << "is on '" << device.getValue()
                            << "', which the machine does not have";
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

  /// What an operator's regions say of devices would be lost.
  LogicalResult checkOneDevice(Operation *op) {
    auto device = op->getAttrOfType<StringAttr>(BaechiDialect::kDevice);
    WalkResult result = op->walk([&](Operation *inner) {
      auto other = inner->getAttrOfType<StringAttr>(BaechiDialect::kDevice);
      if (!other || other == device)
        return WalkResult::advance();
      inner->emitOpError() << "is on '" << other.getValue()
                           << "' inside of an operator on '"
                           << device.getValue()
                           << "'; IREE's export keeps an operator with "
                           << "regions on one device";
      return WalkResult::interrupt();
    });
    return failure(result.wasInterrupted());
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
  llvm::StringSet<> devices, checked;
};
} // namespace

LogicalResult baechi::checkForIree(func::FuncOp step, MachineAttr machine) {
  return Checker(step, machine).run();
}
