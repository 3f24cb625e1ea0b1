//===- CheckpointReport.h - What became of a program's checkpoints -*- C++ -*-//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_DRIVER_REPORT_CHECKPOINTREPORT_H
#define BAECHI_DRIVER_REPORT_CHECKPOINTREPORT_H

#include "Baechi/Transforms/Checkpoints/Passes.h"
#include "llvm/Support/JSON.h"

namespace baechi {

/// \p checkpoints: what the program computes twice; \p keptRegions: of these it
/// still does. With a line for persons.
llvm::json::Object toJson(const UndoneCheckpoints &checkpoints,
                          llvm::ArrayRef<unsigned> keptRegions);

} // namespace baechi

#endif // BAECHI_DRIVER_REPORT_CHECKPOINTREPORT_H
