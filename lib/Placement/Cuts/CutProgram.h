//===- CutProgram.h - The choice of ways as a pairwise program --*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_CUTS_CUTPROGRAM_H
#define BAECHI_LIB_PLACEMENT_CUTS_CUTPROGRAM_H

#include "Cuts/TransferTimes.h"

namespace baechi::placement::cuts {

/// What a proposal weighs.
struct Weights {
  double transfers = 1; ///< of transfers' times: less where they overlap
  int32_t pieces = 0;   ///< no more than so many; 0: any number
  /// Of the memories of all devices, how much there is; 0: no limit.
  double memory = 0;
  /// No piece takes longer where the operator has shorter ones; 0: any time.
  int64_t longest = 0;
};

/// The most pieces first, by the machine's own number of devices, and then by
/// fewer; with all, half and none of the transfers' times; then memories. With
/// pieces of shares of \p load where the largest load is the objective.
std::vector<Weights> allWeights(const Machine &machine, Objective objective,
                                int64_t load);

/// Sums of times stand for the step: right along a chain, too much where
/// branches overlap. Piece p is taken to be on device p modulo their number,
/// and what is whole on the first.
class CutProgram {
public:
  CutProgram(const Problem &problem, const Alternatives &alternatives,
             Objective objective);

  /// The best ways that were found; nullopt: none, or none within the memory.
  std::optional<Ways> propose(const Weights &weights) const;

private:
  struct Option {
    int32_t way = -1;
    int32_t pieces = 1;
    int64_t timeNs = 0;
    int64_t longestNs = 0; ///< of a device
    int64_t held = 0;      ///< bytes of outputs, of all pieces
    int64_t resident = 0;
  };
  struct Link {
    int32_t from = 0, to = 0;
    std::vector<int64_t> ns; ///< row-major over the options of both
  };

  Option optionOf(int32_t op, int32_t way) const;
  TransferTimes::Maker makerOf(const Edge &edge, const Option &option) const;
  TransferTimes::Reader readerOf(const Edge &edge, const Option &option) const;
  void addLinks();
  void addLifetimes();

  const Problem &problem;
  const Alternatives &alternatives;
  Objective objective;
  std::vector<int32_t> devices; ///< that compute
  std::vector<std::vector<Option>> options;
  std::vector<Link> links;
  std::vector<std::pair<int64_t, int64_t>> alive;
  int64_t memory = 0;
};

} // namespace baechi::placement::cuts

#endif // BAECHI_LIB_PLACEMENT_CUTS_CUTPROGRAM_H
