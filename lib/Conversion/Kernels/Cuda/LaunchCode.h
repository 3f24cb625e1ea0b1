//===- LaunchCode.h - Writing the code of a launch -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_CONVERSION_KERNELS_CUDA_LAUNCHCODE_H
#define BAECHI_LIB_CONVERSION_KERNELS_CUDA_LAUNCHCODE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"

namespace baechi {

/// What runs the blocks and threads of a launch: the device, or loops on the
/// host, upwards or downwards.
enum class Executor { Device, Ascending, Descending };

/// Threads that run side by side in any case.
constexpr int64_t kWarp = 32;
/// Bytes of shared memory that every device gives a block.
constexpr int64_t kSharedOfBlock = 48 << 10;
/// Of buffers in shared memory, of arguments, and of what lies in the scratch.
constexpr int64_t kBufferAlignment = 64;

/// The bytes of a tensor or buffer; nothing where types do not tell.
std::optional<int64_t> bytesOf(mlir::ShapedType type);
/// The bytes of a buffer of static shape, up to where another may begin.
int64_t bytesOfBuffer(mlir::MemRefType type);

/// The code of one launch, which all its blocks run. A block runs sections one
/// after the other; within a section its threads run side by side, and what one
/// thread writes others must not touch before the next section. Everything
/// outside of sections is computed alike by all threads.
class LaunchCode {
public:
  /// Begins a launch at `builder`'s position, in a function on buffers. What is
  /// built next, up to `finish`, is its code. With `warps` above 1, blocks have
  /// kWarp threads, and the device runs so many of them as the warps of one
  /// block: each has its own buffers, and none waits for another.
  LaunchCode(mlir::OpBuilder &builder, mlir::Location loc, Executor executor,
             int64_t blocks, int64_t threads, int64_t warps = 1);
  void finish();

  mlir::OpBuilder &builder;
  mlir::Location loc;
  const int64_t blocks, threads, warps;
  mlir::Value block;

  /// Code that the threads of the block run side by side.
  void section(llvm::function_ref<void(mlir::Value thread)> body);
  /// The same without waiting for the other threads: for code that reads what
  /// its own thread has, and memory that no thread has written since the last
  /// section began, and writes its thread's own.
  void proceed(llvm::function_ref<void(mlir::Value thread)> body);
  /// Stands around code outside of sections that reads memory: what sections
  /// wrote is there, and later sections wait until all threads have read it.
  void readAlike(llvm::function_ref<void()> reads);
  void synchronize() { barrierIfPending(); }
  /// A loop that all threads run through together. The body gets and yields
  /// what it carries.
  llvm::SmallVector<mlir::Value>
  loop(mlir::Value from, mlir::Value to, mlir::Value step,
       mlir::ValueRange carried,
       llvm::function_ref<llvm::SmallVector<mlir::Value>(
           mlir::Value iv, mlir::ValueRange carried)>
           body);
  /// The same without carried values.
  void loop(mlir::Value from, mlir::Value to, mlir::Value step,
            llvm::function_ref<void(mlir::Value iv)> body);

  /// A buffer of the block's own, in shared memory as long as no more than
  /// `most` bytes of it are used, else in the scratch. Buffers that `release`
  /// gave back are used again.
  mlir::Value shared(mlir::MemRefType type, int64_t most = kSharedOfBlock);
  void release(mlir::Value shared);

  /// Values of the thread's own that outlive a section.
  struct Private {
    mlir::Value buffer;
  };
  Private privateValues(mlir::Type type, int64_t count);
  mlir::Value load(Private values, mlir::Value thread, int64_t at);
  void store(mlir::Value value, Private values, mlir::Value thread, int64_t at);
  /// Every thread combines its values, one of each of `values`, with those that
  /// the thread `distance` further in its warp had before; the last `distance`
  /// threads of a warp with their own. Registers change hands: no memory, no
  /// barrier.
  void combineInWarps(llvm::ArrayRef<Private> values, int64_t distance,
                      llvm::function_ref<llvm::SmallVector<mlir::Value>(
                          mlir::ValueRange mine, mlir::ValueRange others)>
                          combine);

  /// What `value` of the function is in the launch: buffers themselves; views
  /// and scalars are computed again.
  mlir::Value value(mlir::Value value);
  void map(mlir::Value from, mlir::Value to) { values.map(from, to); }
  /// Computes an operation of the function again, here.
  void clone(mlir::Operation &op);

  // Arithmetic on indices, which are not negative.
  mlir::Value index(int64_t value);
  mlir::Value add(mlir::Value a, mlir::Value b);
  mlir::Value mul(mlir::Value a, int64_t b);
  mlir::Value div(mlir::Value a, int64_t b);
  mlir::Value rem(mlir::Value a, int64_t b);
  mlir::Value less(mlir::Value a, mlir::Value b);
  mlir::Value minimum(mlir::Value a, mlir::Value b);
  /// The indices of row-major element `linear` of a box of such sizes.
  llvm::SmallVector<mlir::Value> delinearize(mlir::Value linear,
                                             llvm::ArrayRef<int64_t> sizes);
  /// Code for when `condition` holds.
  void when(mlir::Value condition, llvm::function_ref<void()> body);

private:
  void barrierIfPending();
  void run(llvm::function_ref<void(mlir::Value thread)> body);
  mlir::Value bufferOfFunction(mlir::MemRefType type);
  mlir::Value inScratch(mlir::MemRefType type, int64_t bytes);
  mlir::Value ordered(mlir::Value iv, int64_t count);
  mlir::Value shuffleDown(mlir::Value value, int64_t distance);

  Executor executor;
  mlir::func::FuncOp function;
  mlir::gpu::LaunchOp launch;
  /// The number of the block's own thread, and of its warp if it is one.
  mlir::Value thread, warp;
  mlir::Operation *outermost = nullptr;
  /// The last operation that stands for one of the function.
  mlir::Operation *lastComputed = nullptr;
  mlir::IRMapping values;
  llvm::SmallVector<mlir::Value> freeShared;
  int64_t usedShared = 0;
  bool pending = false;
};

} // namespace baechi

#endif // BAECHI_LIB_CONVERSION_KERNELS_CUDA_LAUNCHCODE_H
