//===- Lowering.h - Steps of lowering kernels for any device -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_CONVERSION_KERNELS_COMMON_LOWERING_H
#define BAECHI_LIB_CONVERSION_KERNELS_COMMON_LOWERING_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/MapVector.h"

namespace baechi {

/// What of a kernel's interface the lowering still needs after the function's
/// type has changed.
struct KernelSignature {
  unsigned numArguments = 0;
  /// For each result the arguments whose buffers it may be written into.
  llvm::SmallVector<llvm::SmallVector<unsigned>> mayAlias;

  bool isMayAlias(unsigned argument, unsigned result) const {
    return llvm::is_contained(mayAlias[result], argument);
  }
};
using KernelSignatures = llvm::MapVector<mlir::StringAttr, KernelSignature>;

/// Turns every scf.index_switch into nested scf.if. Upstream's bufferization
/// does not see that the result of a switch may be a buffer that a branch
/// yields, and writes into it: into an argument, say, that a later operation
/// reads.
void nestSwitches(mlir::ModuleOp kernels);

/// Gives operations in loops that write a part of a tensor from outside a copy
/// of it. Upstream's elimination of empty tensors has what is inserted computed
/// in the tensor itself, and its bufferization does not see that the next
/// iteration reads that.
void copyCapturedDestinations(mlir::func::FuncOp kernel);
/// Long chains of insertions of a kernel's arguments become copies into a
/// buffer (InsertChains.cpp).
void copyInsertChains(mlir::func::FuncOp kernel);

/// Takes kernels on tensors to functions on memrefs, the arguments and then the
/// results. Their own buffers are allocations that may be hoisted.
mlir::LogicalResult bufferizeKernels(mlir::ModuleOp kernels,
                                     KernelSignatures &signatures);

/// Makes the buffers that loops carry from iteration to iteration distinct from
/// those that the iterations compute in, so that every allocation of `kernel`
/// may be hoisted out of its loops.
void separateCarriedBuffers(mlir::func::FuncOp kernel);

/// Makes linalg.generic of the kernel's named contractions.
void generalizeContractions(mlir::RewriterBase &rewriter,
                            mlir::func::FuncOp kernel);

/// Gives every result a buffer of its own; two that are equal may share one.
void separateResults(mlir::func::FuncOp kernel);

/// Redirects results through a buffer of their own where writing them into the
/// buffer of an argument that they may alias would not be safe.
void protectAliases(mlir::func::FuncOp kernel,
                    const KernelSignature &signature);

/// True when `op` reads the argument and writes the result element by element:
/// its loops are parallel even when both are one buffer.
bool isElementwiseInPlace(mlir::linalg::LinalgOp op, mlir::Value argument,
                          mlir::Value result);

/// Moves every allocation of `kernel` to the stack (small ones) or into a new
/// last argument, the scratch, whose size `baechi.kernel_scratch` says.
mlir::LogicalResult placeAllocations(mlir::func::FuncOp kernel);

/// Lowers bufferized kernels to loops that LLVM vectorizes, and places their
/// allocations.
mlir::LogicalResult lowerToLoops(mlir::ModuleOp kernels,
                                 const KernelSignatures &signatures);

/// Makes arguments without elements tensors of rank 1: a row of none, as in
/// 3x0, has a stride of 0, which no pointer stands for.
void flattenEmptyArguments(mlir::func::FuncOp kernel);

/// Says which of the kernel's pointers overlap no other, and their alignment.
void markPointers(mlir::func::FuncOp kernel, const KernelSignature &signature);

/// Lowers kernels of loops to the LLVM dialect.
mlir::LogicalResult lowerToLLVM(mlir::ModuleOp kernels);

} // namespace baechi

#endif // BAECHI_LIB_CONVERSION_KERNELS_COMMON_LOWERING_H
