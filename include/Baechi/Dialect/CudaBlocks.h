//===- CudaBlocks.h - Attributes of kernels on GPUs -------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_DIALECT_CUDABLOCKS_H
#define BAECHI_DIALECT_CUDABLOCKS_H

#include "llvm/ADT/StringRef.h"

namespace baechi {

/// An i64 of a kernel: the blocks of its largest launch on a GPU, so how much
/// of one it fills (Baechi/Analysis/GpuRun.h).
inline constexpr llvm::StringLiteral kCudaBlocks = "baechi.cuda_blocks";

/// An i64 of a kernel: its launches and calls of libraries on a GPU, which are
/// nodes of a step's graphs.
inline constexpr llvm::StringLiteral kCudaCommands = "baechi.cuda_commands";

/// A unit attribute of a kernel whose operations need nothing of each other,
/// also where results lie in arguments as `baechi.may_alias` lets them: its
/// work is one launch.
inline constexpr llvm::StringLiteral kCudaTogether = "baechi.cuda_together";

} // namespace baechi

#endif // BAECHI_DIALECT_CUDABLOCKS_H
