//===- TensorWays.h - Operators with a share of their matrices --*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_TRANSFORMS_SPLIT_TENSORWAYS_H
#define BAECHI_LIB_TRANSFORMS_SPLIT_TENSORWAYS_H

#include "BatchRoles.h"

namespace baechi::split {

/// Parameters that are cut in \p count pieces, and what follows them: of each
/// matrix that no class has yet, in order, the last dimension that divides
/// (Shoeybi et al., "Megatron-LM", 2019: columns, then rows of what reads
/// them).
class TensorWays {
public:
  TensorWays(const BatchRoles &batch, int64_t count);

  /// How an operator is cut, where it computes parts of its results or
  /// summands of them; null where it stays whole, and for arguments.
  const OperationCut *cutOf(int32_t id) const;
  /// The dimension that an output is cut along, of a whole extent.
  std::optional<unsigned> dimOf(int32_t id, int32_t output) const;
  /// That in which the operator reads the output, if it reads all in pieces.
  std::optional<unsigned> dimReadBy(int32_t reader, int32_t from,
                                    int32_t output) const;

  const int64_t count;

private:
  std::optional<unsigned> dimIn(const Cut &cut, mlir::Value value) const;

  const BatchRoles &batch;
  SplitPlan plan;
};

} // namespace baechi::split

#endif // BAECHI_LIB_TRANSFORMS_SPLIT_TENSORWAYS_H
