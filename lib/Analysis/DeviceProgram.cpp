//===- DeviceProgram.cpp - A partitioned program's devices -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/DeviceProgram.h"
#include "Baechi/Analysis/Program.h"

using namespace mlir;
using namespace baechi;

FailureOr<SmallVector<DeviceProgram>> baechi::devicePrograms(ModuleOp module) {
  auto machine = module->getAttrOfType<MachineAttr>(BaechiDialect::kMachine);
  if (!machine)
    return emitError(module.getLoc())
           << "no 'baechi.machine'; run --baechi-place and "
              "--baechi-partition";
  SmallVector<DeviceProgram> programs;
  for (DeviceSpecAttr spec : machine.getDevices()) {
    DeviceProgram program;
    program.spec = spec;
    program.name = spec.getName();
    for (auto inner : module.getOps<ModuleOp>()) {
      auto device = inner->getAttrOfType<StringAttr>(BaechiDialect::kDevice);
      if (!device || device != program.name)
        continue;
      if (program.module)
        return emitError(inner.getLoc())
               << "a second module for device '" << program.name << "'";
      program.module = inner;
    }
    if (!program.module)
      return emitError(module.getLoc())
             << "no module for device '" << program.name
             << "'; run --baechi-partition";
    FailureOr<func::FuncOp> step = findFuncStep(program.module);
    if (failed(step))
      return failure();
    program.step = *step;
    programs.push_back(program);
  }
  for (auto inner : module.getOps<ModuleOp>())
    if (auto device = inner->getAttrOfType<StringAttr>(BaechiDialect::kDevice))
      if (llvm::none_of(programs, [&](const DeviceProgram &program) {
            return program.module == inner;
          }))
        return emitError(inner.getLoc())
               << "the machine has no device '" << device.getValue() << "'";
  return programs;
}
