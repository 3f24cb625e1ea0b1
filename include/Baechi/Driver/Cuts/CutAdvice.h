//===- CutAdvice.h - Cuts that would make a step fit ------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_DRIVER_CUTS_CUTADVICE_H
#define BAECHI_DRIVER_CUTS_CUTADVICE_H

#include "Baechi/Driver/Cuts/FittingCuts.h"

namespace baechi {

/// In how few micro-batches the step fits, more than \p above; null: in none.
std::unique_ptr<HostCompiler>
fewestMicroBatches(const ModelForms &forms, unsigned above, unsigned &pieces);

/// A cut that options ask for.
struct CutAdvice {
  SplitChoice way;
  bool fits = false;
  /// Where it does not: what needs most then, and in how many bytes the step
  /// fits the one device that computes; 0: that is not known.
  Neediest most;
  int64_t bytes = 0;
  /// Or the machine with a pool in which it fits; empty: the whole step may do
  /// so there, or that is not known.
  std::string machine;
};

/// Which cut makes the step fit; where none that is tried does, which leaves
/// the least to lack. Nullopt: none does. \p whole: the step cut as \p first
/// says.
std::optional<CutAdvice> adviseCut(const ModelForms &forms, HostCompiler &whole,
                                   const SplitChoice &first);
/// The latter of \p cuts, which were tried.
std::optional<CutAdvice> adviseLeanest(const ModelForms &forms,
                                       HostCompiler &whole,
                                       const FittingCuts &cuts,
                                       const SplitChoice &first);

/// The machine that is asked for with a pool beside its one host device, in
/// which \p step fits; nullopt: it has a pool, or none helps.
std::optional<std::string> advisePool(const ModelForms &forms,
                                      HostCompiler &step);

} // namespace baechi

#endif // BAECHI_DRIVER_CUTS_CUTADVICE_H
