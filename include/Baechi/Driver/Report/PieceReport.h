//===- PieceReport.h - What was cut, and what that saves --------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_DRIVER_REPORT_PIECEREPORT_H
#define BAECHI_DRIVER_REPORT_PIECEREPORT_H

#include "Baechi/Transforms/SplitReport.h"
#include "llvm/Support/JSON.h"
#include <optional>

namespace baechi {

/// The step in pieces beside the whole one.
struct PieceReport {
  SplitReport cut;
  /// The step that runs is the one in pieces.
  bool isKept = false;
  /// The whole one was placed, too.
  bool isCompared = false;
  /// By the roofline alone: pieces were no shorter, so nothing was measured.
  bool isEstimated = false;
  /// As predicted; nothing: it does not fit the memories, or was not placed.
  std::optional<int64_t> piecesNs, wholeNs;
  /// The fastest of a few steps of each, which decided; nothing: the prediction
  /// did.
  std::optional<int64_t> triedPiecesNs, triedWholeNs;

  /// For a person.
  std::vector<std::string> lines() const;
  llvm::json::Object toJson() const;
};

} // namespace baechi

#endif // BAECHI_DRIVER_REPORT_PIECEREPORT_H
