//===- LeastLost.h - Classes that lose little -------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_TRANSFORMS_SPLIT_LEASTLOST_H
#define BAECHI_LIB_TRANSFORMS_SPLIT_LEASTLOST_H

#include "Estimate.h"
#include "SplitPlan.h"

namespace baechi::split {

/// Cuts, after what \p plan has, the classes first that lose the least of what
/// their pieces save: to copies, to what each piece packs again, to sums of
/// partial results. Where weights are larger than the batch these are features:
/// the columns of a weight and the rows of the next one, whose products alone
/// are summed up (Shoeybi et al., "Megatron-LM", arXiv 1909.08053, section 3),
/// while the batch, which saves the most alone, packs all weights for each
/// piece and sums up all their gradients. Nothing where no such plan saves more
/// than \p mostNs.
std::optional<SplitPlan> cutLeastLost(const SplitPlan &plan,
                                      const Estimate &estimate,
                                      const PlanOptions &options,
                                      double mostNs);

} // namespace baechi::split

#endif // BAECHI_LIB_TRANSFORMS_SPLIT_LEASTLOST_H
