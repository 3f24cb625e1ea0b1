//===- StepInterface.cpp - The step's tensors on the devices -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StepInterface.h"
#include "Baechi/Dialect/Carried.h"

using namespace mlir;
using namespace baechi;

namespace {
/// Checks the arguments, or the results.
class InterfaceChecker {
public:
  InterfaceChecker(func::FuncOp whole, ArrayRef<DeviceProgram> programs,
                   bool results)
      : whole(whole), programs(programs), results(results),
        what(results ? "result" : "argument"),
        types(results ? whole.getResultTypes() : whole.getArgumentTypes()),
        holders(types.size()) {}

  LogicalResult run() {
    for (const DeviceProgram &program : programs) {
      func::FuncOp step = program.step;
      unsigned count = results ? step.getNumResults() : step.getNumArguments();
      for (unsigned index = 0; index < count; ++index)
        if (failed(check(program, index)))
          return failure();
    }
    for (auto [position, holder] : llvm::enumerate(holders))
      if (!holder)
        return missing(position);
    return success();
  }

private:
  LogicalResult check(const DeviceProgram &program, unsigned index) {
    func::FuncOp step = program.step;
    auto attr = results ? step.getResultAttrOfType<IntegerAttr>(
                              index, BaechiDialect::kResult)
                        : step.getArgAttrOfType<IntegerAttr>(
                              index, BaechiDialect::kArgument);
    Location loc = results ? step.getLoc() : step.getArgument(index).getLoc();
    auto error = [&]() {
      return emitError(loc)
             << what << " " << index << " on '" << program.name << "' ";
    };
    if (!attr) {
      InFlightDiagnostic diag = error() << "is no " << what
                                        << " of the whole step: it has no "
                                        << "'baechi." << what << "'";
      noteWhole(diag);
      return failure();
    }
    uint64_t position = attr.getInt();
    if (position >= types.size()) {
      InFlightDiagnostic diag =
          error() << "stands for " << what << " " << position
                  << " of the whole step, which has " << types.size();
      noteWhole(diag);
      return failure();
    }
    bool isMirror = !results && step.getArgAttr(index, kMirror);
    if (const DeviceProgram *holder = holders[position]; holder && !isMirror) {
      InFlightDiagnostic diag = error()
                                << "stands for " << what << " " << position
                                << " of the whole step, which '" << holder->name
                                << "' has already";
      noteStep(diag, *holder);
      return failure();
    }
    if (!isMirror)
      holders[position] = &program;
    Type type =
        results ? step.getResultTypes()[index] : step.getArgumentTypes()[index];
    if (type != types[position]) {
      InFlightDiagnostic diag =
          error() << "is a " << type << ", " << what << " " << position
                  << " of the whole step is a " << types[position];
      noteWhole(diag);
      return failure();
    }
    StringAttr device = declaredDevice(position);
    if (!device || device.getValue() == program.name || isMirror)
      return success();
    InFlightDiagnostic diag = error()
                              << "stands for " << what << " " << position
                              << ", which the whole step declares on '"
                              << device.getValue() << "'";
    noteWhole(diag);
    return failure();
  }

  LogicalResult missing(unsigned position) {
    StringAttr device = declaredDevice(position);
    InFlightDiagnostic diag = emitError(whole.getLoc())
                              << what << " " << position
                              << " of the whole step is on no device";
    for (const DeviceProgram &program : programs)
      if (device && device.getValue() == program.name)
        noteStep(diag, program);
    return failure();
  }

  StringAttr declaredDevice(unsigned position) {
    return results ? whole.getResultAttrOfType<StringAttr>(
                         position, BaechiDialect::kDevice)
                   : whole.getArgAttrOfType<StringAttr>(position,
                                                        BaechiDialect::kDevice);
  }

  void noteWhole(InFlightDiagnostic &diag) {
    diag.attachNote(whole.getLoc()) << "the whole step is declared here";
  }

  static void noteStep(InFlightDiagnostic &diag, DeviceProgram program) {
    diag.attachNote(program.step.getLoc())
        << "the step of '" << program.name << "'";
  }

  func::FuncOp whole;
  ArrayRef<DeviceProgram> programs;
  bool results;
  StringRef what;
  ArrayRef<Type> types;
  SmallVector<const DeviceProgram *> holders; ///< by position
};
} // namespace

LogicalResult baechi::verifyStepInterface(func::FuncOp whole,
                                          ArrayRef<DeviceProgram> programs) {
  return success(succeeded(InterfaceChecker(whole, programs, false).run()) &&
                 succeeded(InterfaceChecker(whole, programs, true).run()));
}
