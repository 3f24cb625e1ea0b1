//===- Replicas.h - Attributes of replicated steps --------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_DIALECT_REPLICAS_H
#define BAECHI_DIALECT_REPLICAS_H

#include "llvm/ADT/StringRef.h"

namespace baechi {

/// On the step: how many replicas it has (--baechi-replicate).
inline constexpr llvm::StringLiteral kReplicas = "baechi.replicas";
/// On an argument that has a part for each replica: the batch. Where replicas
/// are numbered along several axes, for each dimension the parts along it, each
/// the replicas that have it, as bits.
inline constexpr llvm::StringLiteral kBatched = "baechi.batched";
/// On a kernel's call: the replica that it computes for.
inline constexpr llvm::StringLiteral kReplica = "baechi.replica";
/// On a tensor.extract_slice: a tensor of its own, which is sent without the
/// rest, and never a view.
inline constexpr llvm::StringLiteral kCopied = "baechi.copied";

} // namespace baechi

#endif // BAECHI_DIALECT_REPLICAS_H
