//===- CudaKernels.cpp - Kernels to GPU code -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Conversion/Kernels/Cuda/CudaKernels.h"
#include "Baechi/Dialect/Baechi.h"
#include "Baechi/Dialect/CudaBlocks.h"
#include "Common/KernelCopies.h"
#include "Convolution.h"
#include "Internal.h"
#include "Mapping.h"
#include "Products.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace baechi;

namespace {
constexpr StringLiteral kTarget = "GPU code";

/// Writes the kernels of `kernels` that are products, as code on pointers, to
/// the module that it gives.
OwningOpRef<ModuleOp> takeProducts(ModuleOp kernels, Executor executor) {
  OwningOpRef<ModuleOp> products = ModuleOp::create(kernels.getLoc());
  OpBuilder builder = OpBuilder::atBlockEnd(products->getBody());
  for (auto kernel :
       llvm::make_early_inc_range(kernels.getOps<func::FuncOp>())) {
    if (auto product = matchLibraryProduct(kernel))
      callProduct(builder, kernel, *product, executor);
    else if (auto convolution = matchLibraryConvolution(kernel))
      callConvolution(builder, kernel, *convolution, executor);
    else if (auto product = matchStridedProduct(kernel))
      launchProduct(builder, kernel, *product, executor);
    else
      continue;
    kernel.erase();
  }
  return products;
}

/// Tables that lie beside the code: launches reach arguments alone.
LogicalResult refuseTables(ModuleOp copies) {
  return failure(copies
                     .walk([](memref::GetGlobalOp table) {
                       table.emitError("a kernel that reads a table of "
                                       "constants has no GPU code: give the "
                                       "table as an argument of the step");
                       return WalkResult::interrupt();
                     })
                     .wasInterrupted());
}

/// Kernels on tensors to functions that launch: on pointers (`products`) and on
/// buffers (what stays in `copies`).
FailureOr<OwningOpRef<ModuleOp>> mapAll(ModuleOp copies, Executor executor,
                                        KernelSignatures &signatures) {
  OwningOpRef<ModuleOp> products = takeProducts(copies, executor);
  if (failed(bufferizeKernels(copies, signatures)) ||
      (executor == Executor::Device && failed(refuseTables(copies))))
    return failure();
  for (auto kernel : copies.getOps<func::FuncOp>())
    if (failed(mapKernel(kernel, executor)))
      return failure();
  return products;
}

/// Kernels to functions on pointers and buffers whose last argument is the
/// scratch.
LogicalResult mapToDevice(ModuleOp copies) {
  SmallVector<StringAttr> wide;
  for (auto kernel : copies.getOps<func::FuncOp>())
    if (needsWideIndices(kernel))
      wide.push_back(kernel.getSymNameAttr());
  KernelSignatures signatures;
  auto products = mapAll(copies, Executor::Device, signatures);
  if (failed(products))
    return failure();
  for (auto kernel : copies.getOps<func::FuncOp>()) {
    markPointers(kernel, signatures.find(kernel.getSymNameAttr())->second);
    if (failed(placeInScratch(kernel)))
      return failure();
    flattenEmptyArguments(kernel);
  }
  append(**products, copies);
  for (StringAttr kernel : wide)
    copies.lookupSymbol(kernel)->setAttr(kWideIndices,
                                         UnitAttr::get(copies.getContext()));
  return success();
}

/// The launches know it by now, and callers need not.
void unmarkPointers(ModuleOp functions) {
  for (auto function : functions.getOps<func::FuncOp>())
    function.removeArgAttrsAttr();
}

/// Mapped kernels to host functions and a fat binary.
LogicalResult lowerToDevice(ModuleOp copies, const CudaOptions &options,
                            const CudaToolkit &toolkit) {
  SmallVector<OutlinedLaunch> launches;
  gpu::GPUModuleOp module = outlineLaunches(copies, launches);
  unmarkPointers(copies);
  std::string image;
  if (!launches.empty()) {
    FailureOr<std::string> compiled = compileImage(module, options, toolkit);
    if (failed(compiled))
      return failure();
    image = std::move(*compiled);
  }
  callLaunches(copies, launches, image);
  module.erase();
  return lowerToLLVM(copies);
}

/// What is on chip on the device lies on the stack here.
void placeOnStack(ModuleOp functions) {
  functions.walk([](memref::AllocOp alloc) {
    OpBuilder builder(alloc);
    Value buffer = memref::AllocaOp::create(
        builder, alloc.getLoc(), alloc.getType(), alloc.getAlignmentAttr());
    alloc.replaceAllUsesWith(buffer);
    alloc.erase();
  });
}

LogicalResult lowerToHost(ModuleOp copies, Executor executor) {
  KernelSignatures signatures;
  auto products = mapAll(copies, executor, signatures);
  if (failed(products) || failed(lowerToLoops(copies, signatures)))
    return failure();
  for (auto kernel : copies.getOps<func::FuncOp>()) {
    flattenEmptyArguments(kernel);
    markPointers(kernel, signatures.find(kernel.getSymNameAttr())->second);
  }
  placeOnStack(**products);
  append(**products, copies);
  return lowerToLLVM(copies);
}

void loadDialects(MLIRContext *context) {
  context
      ->loadDialect<arith::ArithDialect, gpu::GPUDialect, linalg::LinalgDialect,
                    LLVM::LLVMDialect, math::MathDialect, memref::MemRefDialect,
                    NVVM::NVVMDialect, scf::SCFDialect>();
}

int64_t scratchOf(ModuleOp lowered, StringRef name) {
  return lowered.lookupSymbol(name)
      ->getAttrOfType<IntegerAttr>(BaechiDialect::kKernelScratch)
      .getInt();
}

LogicalResult replaceKernels(ModuleOp module, ArrayRef<func::FuncOp> kernels,
                             ModuleOp lowered) {
  for (func::FuncOp kernel : kernels)
    kernel.erase();
  return moveSymbols(lowered, module, kTarget);
}
} // namespace

/// Operators take no less than their kernels.
static void raiseScratchOfCosts(ModuleOp module) {
  SymbolTable symbols(module);
  module.walk([&](func::CallOp call) {
    auto cost = call->getAttrOfType<CostAttr>(BaechiDialect::kCost);
    auto kernel = symbols.lookup<func::FuncOp>(call.getCallee());
    auto scratch =
        kernel
            ? kernel->getAttrOfType<IntegerAttr>(BaechiDialect::kKernelScratch)
            : IntegerAttr();
    if (cost && scratch && scratch.getInt() > cost.getScratch())
      call->setAttr(BaechiDialect::kCost,
                    CostAttr::get(cost.getContext(), cost.getTimeNs(),
                                  scratch.getInt(), cost.getEstimated()));
  });
}

/// Tiles of a product, as small as cuBLASLt's for small ones.
static int64_t tilesOf(int64_t rows, int64_t columns, int64_t batch) {
  constexpr int64_t side = 32;
  return batch * llvm::divideCeil(rows, side) * llvm::divideCeil(columns, side);
}

/// Of a call of a library; 0 for other kernels.
static int64_t blocksOfLibrary(func::FuncOp kernel) {
  if (auto product = matchLibraryProduct(kernel))
    return tilesOf(product->plan.m, product->plan.n, product->batch.size);
  auto convolution = matchLibraryConvolution(kernel);
  if (!convolution)
    return 0;
  const baechi_cuda_convolution &how = convolution->description;
  const baechi_cuda_space_tensor &made =
      how.of_filters ? how.filters : how.results;
  int64_t rows = made.sizes[0];
  for (int64_t space = 0; space < how.spaces; ++space)
    rows *= made.sizes[2 + space];
  return tilesOf(rows, made.sizes[1], /*batch=*/1);
}

static int64_t blocksOfLaunches(Operation *function) {
  int64_t most = 0;
  function->walk([&](gpu::LaunchOp launch) {
    most =
        std::max(most, getConstantIntValue(launch.getGridSizeX()).value_or(0));
  });
  return most;
}

static int64_t commandsOf(Operation *function) {
  int64_t commands = 0;
  function->walk([&](Operation *op) {
    auto call = dyn_cast<CallOpInterface>(op);
    auto callee = call ? dyn_cast<SymbolRefAttr>(call.getCallableForCallee())
                       : SymbolRefAttr();
    commands += isa<gpu::LaunchOp>(op) ||
                (callee && callee.getLeafReference().strref().starts_with(
                               "baechi_cuda_"));
  });
  return commands;
}

FailureOr<CudaNeeds> baechi::cudaNeedsOf(ModuleOp module) {
  loadDialects(module.getContext());
  SmallVector<func::FuncOp> kernels = kernelsOf(module);
  auto mapped = runOnCopies(kernels, module.getLoc(), kTarget, mapToDevice);
  if (failed(mapped))
    return failure();
  CudaNeeds needs;
  for (func::FuncOp kernel : kernels) {
    StringRef name = kernel.getSymName();
    Operation *function = (*mapped)->lookupSymbol(name);
    needs[name] = {
        scratchOf(**mapped, name),
        std::max(blocksOfLibrary(kernel), blocksOfLaunches(function)),
        commandsOf(function)};
  }
  return needs;
}

void baechi::annotateCudaNeeds(ModuleOp module, const CudaNeeds &needs) {
  Builder builder(module.getContext());
  for (func::FuncOp kernel : kernelsOf(module)) {
    const CudaNeed &need = needs.at(kernel.getSymName());
    int64_t scratch = need.scratchBytes;
    if (auto known =
            kernel->getAttrOfType<IntegerAttr>(BaechiDialect::kKernelScratch))
      scratch = std::max(scratch, known.getInt());
    kernel->setAttr(BaechiDialect::kKernelScratch,
                    builder.getI64IntegerAttr(scratch));
    if (need.blocks > 0)
      kernel->setAttr(kCudaBlocks, builder.getI64IntegerAttr(need.blocks));
    kernel->setAttr(kCudaCommands, builder.getI64IntegerAttr(need.commands));
  }
  raiseScratchOfCosts(module);
}

LogicalResult baechi::lowerKernelsToCuda(ModuleOp module,
                                         const CudaOptions &options) {
  loadDialects(module.getContext());
  FailureOr<CudaToolkit> toolkit =
      CudaToolkit::find(options.toolkit, module.getLoc());
  if (failed(toolkit))
    return failure();
  SmallVector<func::FuncOp> kernels = kernelsOf(module);
  auto lowered = runOnCopies(kernels, module.getLoc(), kTarget, mapToDevice);
  if (failed(lowered) || failed(lowerToDevice(**lowered, options, *toolkit)))
    return failure();
  for (func::FuncOp kernel : kernels)
    if (failed(checkPlannedScratch(kernel,
                                   scratchOf(**lowered, kernel.getSymName()),
                                   "baechi-cuda-scratch")))
      return failure();
  for (auto function : (*lowered)->getOps<LLVM::LLVMFuncOp>())
    if (!function.isExternal())
      function.setSymName((function.getSymName() + kCudaKernelSuffix).str());
  if (options.keepKernels)
    kernels.clear();
  return replaceKernels(module, kernels, **lowered);
}

LogicalResult baechi::mapKernelsToCuda(ModuleOp module) {
  loadDialects(module.getContext());
  SmallVector<func::FuncOp> kernels = kernelsOf(module);
  auto mapped = runOnCopies(kernels, module.getLoc(), kTarget, mapToDevice);
  if (failed(mapped))
    return failure();
  unmarkPointers(**mapped);
  return replaceKernels(module, kernels, **mapped);
}

LogicalResult baechi::emulateCudaKernels(ModuleOp module, bool descending) {
  loadDialects(module.getContext());
  SmallVector<func::FuncOp> kernels = kernelsOf(module);
  Executor executor = descending ? Executor::Descending : Executor::Ascending;
  auto lowered =
      runOnCopies(kernels, module.getLoc(), kTarget, [&](ModuleOp copies) {
        return lowerToHost(copies, executor);
      });
  if (failed(lowered))
    return failure();
  return replaceKernels(module, kernels, **lowered);
}
