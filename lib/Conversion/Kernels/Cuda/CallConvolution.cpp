//===- CallConvolution.cpp - Convolutions by the runtime's library --------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Common/PointerCode.h"
#include "Convolution.h"
#include "LibraryCall.h"
#include "Mapping.h"
#include "Products.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace baechi;

namespace {
/// Writes a launch that moves filters between `loose`, where they lie so far
/// apart, and `dense`, where they lie as the library takes them.
void launchMove(OpBuilder &builder, const LibraryConvolution &convolution,
                Value loose, Value dense, Executor executor) {
  const baechi_cuda_convolution &to = convolution.description;
  size_t dims = 2 + to.spaces;
  // Neighbouring threads write neighbours.
  const int64_t *written =
      to.of_filters ? convolution.movedFrom->data() : to.filters.strides;
  SmallVector<size_t> order = llvm::to_vector(llvm::seq<size_t>(0, dims));
  llvm::stable_sort(
      order, [&](size_t a, size_t b) { return written[a] > written[b]; });
  SmallVector<int64_t> sizes;
  for (size_t dim : order)
    sizes.push_back(to.filters.sizes[dim]);

  Location loc = loose.getLoc();
  PointerCode emit(builder, loc, convolution.type);
  int64_t elements = convolution.filterElements();
  LaunchCode code(builder, loc, executor,
                  llvm::divideCeil(elements, kBlockThreads), kBlockThreads);
  code.section([&](Value thread) {
    Value number = code.add(code.mul(code.block, kBlockThreads), thread);
    code.when(code.less(number, code.index(elements)), [&] {
      Value far = code.index(0), near = code.index(0);
      for (auto [dim, at] :
           llvm::zip_equal(order, code.delinearize(number, sizes))) {
        far = code.add(far, code.mul(at, (*convolution.movedFrom)[dim]));
        near = code.add(near, code.mul(at, to.filters.strides[dim]));
      }
      Value from = to.of_filters ? emit.at(dense, near) : emit.at(loose, far);
      Value into = to.of_filters ? emit.at(loose, far) : emit.at(dense, near);
      LLVM::StoreOp::create(
          builder, loc,
          LLVM::LoadOp::create(builder, loc, convolution.type, from), into);
    });
  });
  code.finish();
}
} // namespace

void baechi::callConvolution(OpBuilder &builder, func::FuncOp kernel,
                             const LibraryConvolution &convolution,
                             Executor executor) {
  const baechi_cuda_convolution &to = convolution.description;
  OpBuilder::InsertionGuard guard(builder);
  Location loc = kernel.getLoc();
  int64_t workspaceBytes = scratchFor(to.workspace_bytes);
  int64_t movedAt = llvm::alignTo(workspaceBytes, kPointerAlignment);
  int64_t moved = convolution.movedFrom
                      ? convolution.filterElements() *
                            (convolution.type.getIntOrFloatBitWidth() / 8)
                      : 0;
  func::FuncOp function = createProductFunction(
      builder, kernel, moved > 0 ? movedAt + moved : workspaceBytes);
  PointerCode emit(builder, loc, convolution.type);
  PointerCode bytes(builder, loc, builder.getI8Type());
  Value scratch = function.getArguments().back();
  Value workspace =
      to.workspace_bytes > 0 ? alignWorkspace(builder, loc, scratch) : scratch;
  const ProductFactors &at = convolution.operands;
  Value images = emit.at(function.getArgument(at.argumentA), at.offsetA);
  Value other = emit.at(function.getArgument(at.argumentB), at.offsetB);
  Value result = function.getArgument(kernel.getNumArguments());
  Value computed = result;
  if (moved > 0) {
    Value dense = bytes.at(scratch, movedAt);
    if (to.of_filters) {
      computed = dense;
    } else {
      launchMove(builder, convolution, other, dense, executor);
      other = dense;
    }
  }
  LLVM::LLVMFuncOp convolve =
      declareLibraryCall(builder, function, "baechi_cuda_convolve",
                         /*pointers=*/5, /*numbers=*/0);
  LLVM::CallOp::create(
      builder, loc, convolve,
      ValueRange{constantWords(builder, function, "__convolution", to), images,
                 other, computed, workspace});
  if (computed != result)
    launchMove(builder, convolution, result, computed, executor);
  func::ReturnOp::create(builder, loc);
}
