//===- BufferReuse.h - Are tensors overwritten too early -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_TRANSFORMS_PARTITION_BUFFERREUSE_H
#define BAECHI_LIB_TRANSFORMS_PARTITION_BUFFERREUSE_H

#include "Baechi/Analysis/DeviceProgram.h"
#include "llvm/ADT/DenseMap.h"

namespace baechi {

/// What a diagnostic says of a send or recv.
struct MessageText {
  std::string text;                 ///< "queue 0 seq 3 ('x') from 'a' to 'b'"
  mlir::Operation *other = nullptr; ///< the other end
};

/// Checks the offsets of a device's program that memory was planned for, by
/// following who holds each byte: nothing writes over a tensor that is read
/// later, that a send reads until its await, or that a recv fills until its
/// await, and arguments hold their values, or their next ones, at the end.
/// Independent of how offsets were found.
llvm::LogicalResult verifyBufferReuse(
    DeviceProgram program,
    const llvm::DenseMap<mlir::Operation *, MessageText> &messages);

} // namespace baechi

#endif // BAECHI_LIB_TRANSFORMS_PARTITION_BUFFERREUSE_H
