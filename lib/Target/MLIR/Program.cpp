//===- Program.cpp - Manifests and predicted timelines ---*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Runtime/Program.h"
#include "Baechi/Conversion/Devices/Manifest.h"
#include "Baechi/Target/ChromeTrace.h"
#include "Baechi/Target/Export.h"

using namespace mlir;
using namespace baechi;

LogicalResult baechi::exportManifest(ModuleOp module, raw_ostream &os) {
  FailureOr<std::string> manifest = writeManifest(module, "baechi");
  if (failed(manifest))
    return failure();
  os << *manifest << '\n';
  return success();
}

LogicalResult baechi::exportTrace(ModuleOp module, raw_ostream &os) {
  FailureOr<std::string> manifest = writeManifest(module, "baechi");
  if (failed(manifest))
    return failure();
  runtime::Expected<runtime::Program> program =
      runtime::Program::parse(*manifest);
  if (!program)
    return emitError(module.getLoc()) << program.error().message();
  os << chromeTrace(*program, nullptr) << '\n';
  return success();
}
