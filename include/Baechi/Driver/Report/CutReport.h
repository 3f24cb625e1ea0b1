//===- CutReport.h - What is cut so that a step fits ------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_DRIVER_REPORT_CUTREPORT_H
#define BAECHI_DRIVER_REPORT_CUTREPORT_H

#include "llvm/Support/JSON.h"
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace baechi {

/// How a cut is asked for.
struct CutRequest {
  unsigned microBatches = 0;      ///< 0: the batch is whole
  std::vector<std::string> rules; ///< NAME=DIM:PIECES

  /// The options, on the command line and in Python.
  std::string text() const;
};

/// Why a step that does not fit the memories was cut into pieces, and how.
struct CutReport {
  /// Why results have the bits of the whole step, or may not.
  enum class Bits {
    Proven,   ///< all sums are added up in the whole's order
    Compared, ///< both were computed and compared
    Exact,    ///< each sum has one order (`splits=exact`)
    Rounded,  ///< sums may be in another order (`splits=any`)
  };

  std::string neediest; ///< the operator of the whole step
  int64_t needs = 0;    ///< by itself
  std::string device;   ///< the largest that computes
  int64_t memory = 0;
  CutRequest request;
  Bits bits = Bits::Compared;
  std::string unproven; ///< why they are compared
  /// The step fits otherwise, too: whole, or in pieces that were asked for.
  /// What both are predicted to take.
  struct Instead {
    int64_t otherwiseNs = 0, piecesNs = 0;
    bool isWhole = true;
  };
  std::optional<Instead> instead;

  std::vector<std::string> lines() const;
  llvm::json::Object toJson() const;
};

} // namespace baechi

#endif // BAECHI_DRIVER_REPORT_CUTREPORT_H
