//===- LoweredKernels.h - Kernels' host code, each made once ----*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_CONVERSION_KERNELS_HOST_LOWEREDKERNELS_H
#define BAECHI_CONVERSION_KERNELS_HOST_LOWEREDKERNELS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Pass/Pass.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"
#include <atomic>
#include <mutex>

namespace baechi {

/// Lowers kernels to host code, and keeps how far it got: who wants a kernel's
/// scratch, who measures it and who compiles it go on from there. Kernels of
/// one text and implementation are lowered once, whatever their names are and
/// in whichever modules of the context they stand. The context outlives it.
///
/// Any number of threads may use one; they take turns.
class LoweredKernels {
public:
  /// Says that the kernel of that hash (`kernelHash`) needs so many bytes in
  /// that implementation: it is not lowered to find out.
  void noteScratch(llvm::StringRef hash, llvm::StringRef implementation,
                   int64_t bytes);

  /// Writes `baechi.kernel_scratch` on every kernel of `module`: the bytes that
  /// its host code needs while it runs. The kernels stay on tensors.
  mlir::LogicalResult annotateScratch(mlir::ModuleOp module);

  /// Replaces every kernel of `module` by its host code, as lowerKernels()
  /// (HostKernels.h) does.
  mlir::LogicalResult lower(mlir::ModuleOp module);

  /// Kernels that went through the first step of lowering, to known buffers,
  /// and through the second, to code.
  size_t bufferized() const { return numBufferized; }
  size_t finished() const { return numFinished; }

  /// Forgets all kernels, whose code is in memory by now, say.
  void clear();

private:
  /// One kernel in one implementation.
  struct Entry {
    /// Its code, in one of `code`; null as long as only its scratch is known.
    mlir::Operation *function = nullptr;
    std::optional<int64_t> scratch;
    /// The names of the kernel's attributes, where they are on the code, too.
    std::optional<llvm::SmallVector<mlir::StringAttr>> attributes;
    bool isFinished = false;
  };
  using Kernels = llvm::ArrayRef<mlir::func::FuncOp>;

  Entry &entryOf(mlir::func::FuncOp kernel) { return *found.at(kernel); }
  /// Makes entryOf() know the kernels.
  void find(Kernels kernels);
  /// The kernels whose entry is as asked, each entry's first one.
  llvm::SmallVector<mlir::func::FuncOp>
  firstOf(Kernels kernels, llvm::function_ref<bool(const Entry &)> isAsked);
  /// Lowers the kernels' copies to known buffers.
  mlir::LogicalResult bufferize(Kernels kernels, mlir::Location location);
  /// Lowers what that made of them to code.
  mlir::LogicalResult finish(Kernels kernels, mlir::Location location);
  /// Copies of their code as far as it got, with what it refers to.
  mlir::OwningOpRef<mlir::ModuleOp> copyCode(Kernels kernels,
                                             mlir::Location location);

  std::mutex turn;
  llvm::StringMap<Entry> entries;
  /// Of the kernels that are being asked for.
  llvm::DenseMap<mlir::func::FuncOp, Entry *> found;
  llvm::SmallVector<mlir::OwningOpRef<mlir::ModuleOp>> code;
  std::atomic<size_t> numBufferized = 0, numFinished = 0;
};

/// --baechi-kernel-scratch and --baechi-lower-kernels that go on from what
/// \p lowered has, and add to it.
std::unique_ptr<mlir::Pass>
createKernelScratch(std::shared_ptr<LoweredKernels> lowered);
std::unique_ptr<mlir::Pass>
createLowerKernels(std::shared_ptr<LoweredKernels> lowered);

} // namespace baechi

#endif // BAECHI_CONVERSION_KERNELS_HOST_LOWEREDKERNELS_H
