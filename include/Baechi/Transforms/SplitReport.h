//===- SplitReport.h - What --baechi-split has cut --------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_TRANSFORMS_SPLITREPORT_H
#define BAECHI_TRANSFORMS_SPLITREPORT_H

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace baechi {

struct SplitReport {
  /// One class of dimensions that is cut.
  struct Class {
    std::string along;          ///< "dimension 0 of x, y"
    std::vector<int64_t> sizes; ///< elements a piece
    int64_t operations = 0;
    int64_t reductions = 0; ///< of them those that make partial results
    int64_t meetings = 0;   ///< where pieces that follow each other wait
    std::string why;
    /// Estimated for it alone, by the default roofline, as if its pieces ran at
    /// once: what they save, and what is copied, summed up and sent for them.
    int64_t savedNs = 0, copiedNs = 0, sentNs = 0;
  };
  std::vector<Class> classes;
  /// Which operations are in which pieces: that of equal cuts of one step is
  /// equal.
  std::string cuts;
  /// Operations that stayed whole on a cut's way, counted by the reason.
  std::map<std::string, int64_t> whole;
  /// Stored in pieces, and what these arguments have in all.
  int64_t arguments = 0, argumentBytes = 0, results = 0;
  /// Arguments that are read in pieces and stored whole, counted by the reason.
  std::map<std::string, int64_t> wholeArguments;
  /// Estimated for all operations of the step, as for its classes.
  int64_t totalNs = 0;
  /// Pieces follow each other, as micro-batches.
  bool isChained = false;
  /// The class that saves the most, alone, was cut first: no other plan was
  /// estimated to save more.
  bool isLargestFirst = true;
};

} // namespace baechi

#endif // BAECHI_TRANSFORMS_SPLITREPORT_H
