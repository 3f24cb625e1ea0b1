//===- LoopReport.h - Which loops were written out --------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_DRIVER_REPORT_LOOPREPORT_H
#define BAECHI_DRIVER_REPORT_LOOPREPORT_H

#include "Baechi/Pipelines/CompileOptions.h"
#include "Baechi/Transforms/Unroll/Passes.h"
#include "llvm/Support/JSON.h"
#include <optional>

namespace baechi {

/// What became of the loops of a step, and why.
struct LoopReport {
  UnrolledLoops loops;
  UnrollChoice choice;
  /// The step with its loops written out is the one that is compiled.
  bool isKept = false;
  /// As a placement that is given names their turns.
  bool isPlaced = false;
  /// Where predictions decide; nothing: it does not fit.
  std::optional<int64_t> unrolledNs, wholeNs;
  /// Where both ran.
  std::optional<int64_t> triedUnrolledNs, triedWholeNs;

  std::vector<std::string> lines() const;
  llvm::json::Object toJson() const;
};

} // namespace baechi

#endif // BAECHI_DRIVER_REPORT_LOOPREPORT_H
