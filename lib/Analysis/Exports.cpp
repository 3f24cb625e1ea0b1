//===- Exports.cpp - What exports to other compilers share ----------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/Exports.h"
#include "Baechi/Analysis/Program.h"

using namespace mlir;
using namespace baechi;

/// What an operator's regions say of devices would be lost.
static LogicalResult checkOneDevice(Operation *op, StringAttr device) {
  WalkResult result = op->walk([&](Operation *inner) {
    auto other = inner->getAttrOfType<StringAttr>(BaechiDialect::kDevice);
    if (!other || other == device)
      return WalkResult::advance();
    inner->emitOpError() << "is on '" << other.getValue()
                         << "' inside of an operator on '" << device.getValue()
                         << "'; exports keep an operator with regions on one "
                            "device";
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

static LogicalResult checkPlaced(FunctionOpInterface step,
                                 MachineAttr machine) {
  auto check = [&](Location loc, StringAttr device,
                   const Twine &what) -> LogicalResult {
    if (!device)
      return emitError(loc) << what << "is on no device; run --baechi-place";
    if (llvm::none_of(machine.getDevices(), [&](DeviceSpecAttr each) {
          return each.getName() == device.getValue();
        }))
      return emitError(loc) << what << "is on '" << device.getValue()
                            << "', which the machine does not have";
    return success();
  };
  for (BlockArgument argument : step.getArguments()) {
    unsigned number = argument.getArgNumber();
    if (failed(check(
            argument.getLoc(),
            step.getArgAttrOfType<StringAttr>(number, BaechiDialect::kDevice),
            "argument " + Twine(number) + " ")))
      return failure();
  }
  for (Operation *op : operatorsOf(step)) {
    auto device = op->getAttrOfType<StringAttr>(BaechiDialect::kDevice);
    if (failed(check(op->getLoc(), device,
                     "'" + op->getName().getStringRef() + "' ")) ||
        failed(checkOneDevice(op, device)))
      return failure();
  }
  return success();
}

FailureOr<PlacedStep> baechi::findPlacedStep(ModuleOp module) {
  FailureOr<func::FuncOp> step = findFuncStep(module);
  if (failed(step))
    return failure();
  auto machine = module->getAttrOfType<MachineAttr>(BaechiDialect::kMachine);
  if (!machine)
    return emitError(module.getLoc())
           << "no 'baechi.machine'; run --baechi-place";
  if (failed(checkPlaced(*step, machine)))
    return failure();
  return PlacedStep{*step, machine};
}

void baechi::removeOwnAttributes(ModuleOp module) {
  auto isOurs = [](NamedAttribute attr) {
    return attr.getName().getValue().starts_with("baechi.");
  };
  module->walk([&](Operation *op) {
    for (NamedAttribute attr : llvm::to_vector(op->getDiscardableAttrs()))
      if (isOurs(attr))
        op->removeDiscardableAttr(attr.getName());
    auto function = dyn_cast<FunctionOpInterface>(op);
    if (!function)
      return;
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      for (NamedAttribute attr : llvm::to_vector(function.getArgAttrs(i)))
        if (isOurs(attr))
          function.removeArgAttr(i, attr.getName());
    for (unsigned i = 0; i < function.getNumResults(); ++i)
      for (NamedAttribute attr : llvm::to_vector(function.getResultAttrs(i)))
        if (isOurs(attr))
          function.removeResultAttr(i, attr.getName());
  });
}
