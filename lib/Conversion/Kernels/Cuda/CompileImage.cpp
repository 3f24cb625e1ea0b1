//===- CompileImage.cpp - GPU modules to fat binaries -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Io/Environment.h"
#include "Baechi/Placement/Io/TemporaryFolder.h"
#include "Internal.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace baechi;

namespace {
/// The version of PTX: the lowest that has what is generated.
constexpr StringLiteral kPtxFeature = "+ptx80";

/// Lowers the module to the LLVM and NVVM dialects.
LogicalResult lowerToNvvm(gpu::GPUModuleOp module, unsigned indexBits) {
  if (failed(expandIntegerPowers(module)))
    return failure();
  // Products and sums may be contracted; all else is exact.
  auto flags = arith::FastMathFlagsAttr::get(module.getContext(),
                                             arith::FastMathFlags::contract);
  module.walk([&](arith::ArithFastMathInterface op) {
    if (isa<arith::AddFOp, arith::SubFOp, arith::MulFOp>(*op))
      op->setAttr(op.getFastMathAttrName(), flags);
  });
  PassManager passes(module.getContext(), gpu::GPUModuleOp::getOperationName());
  passes.addPass(memref::createExpandStridedMetadataPass());
  passes.addPass(createLowerAffinePass());
  passes.addPass(createCanonicalizerPass());
  passes.addPass(createCSEPass());
  passes.addPass(arith::createArithExpandOpsPass());
  passes.addPass(createSCFToControlFlowPass());
  ConvertGpuOpsToNVVMOpsOptions options;
  options.indexBitwidth = indexBits;
  options.useBarePtrCallConv = true;
  passes.addPass(createConvertGpuOpsToNVVMOps(options));
  passes.addPass(createReconcileUnrealizedCastsPass());
  passes.addPass(createCanonicalizerPass());
  if (failed(passes.run(module)))
    return failure();
  WalkResult foreign = module.walk([&](Operation *op) {
    if (op == module ||
        isa_and_nonnull<LLVM::LLVMDialect, NVVM::NVVMDialect>(op->getDialect()))
      return WalkResult::advance();
    op->emitOpError("has no GPU code");
    return WalkResult::interrupt();
  });
  return failure(foreign.wasInterrupted());
}

/// Whether a kernel's indices need 64 bits: its function says so, or the code
/// that was written for it has larger numbers.
bool isWide(gpu::GPUFuncOp kernel) {
  constexpr int64_t kMost = int64_t(1) << 30;
  auto isLarge = [](Type type) {
    auto buffer = dyn_cast<MemRefType>(type);
    return buffer && buffer.getNumElements() > kMost;
  };
  return kernel->hasAttr(kWideIndices) ||
         llvm::any_of(kernel.getArgumentTypes(), isLarge) ||
         kernel
             .walk([&](Operation *op) {
               auto constant = dyn_cast<arith::ConstantIndexOp>(op);
               return (constant && constant.value() > kMost) ||
                              llvm::any_of(op->getResultTypes(), isLarge)
                          ? WalkResult::interrupt()
                          : WalkResult::advance();
             })
             .wasInterrupted();
}

/// Lowers kernels with indices of 32 bits where that is enough: divisions take
/// half the time. One width is for a whole module, so the others take a way of
/// their own and come back.
LogicalResult lowerKernels(gpu::GPUModuleOp module) {
  OpBuilder builder(module);
  auto wide = gpu::GPUModuleOp::create(builder, module.getLoc(),
                                       (module.getName() + "_wide").str());
  for (auto kernel :
       llvm::make_early_inc_range(module.getOps<gpu::GPUFuncOp>()))
    if (isWide(kernel)) {
      kernel->removeAttr(kWideIndices);
      kernel->moveBefore(wide.getBody(), wide.getBody()->end());
    }
  LogicalResult lowered = success(succeeded(lowerToNvvm(module, 32)) &&
                                  succeeded(lowerToNvvm(wide, 64)));
  SymbolTable names(module);
  for (Operation &op : llvm::make_early_inc_range(*wide.getBody()))
    // Both may declare the same functions of libdevice.
    if (auto symbol = dyn_cast<SymbolOpInterface>(op);
        !symbol || !symbol.isDeclaration() || !names.lookup(symbol.getName()))
      op.moveBefore(module.getBody(), module.getBody()->end());
  wide.erase();
  return lowered;
}

FailureOr<std::string> makePtx(gpu::GPUModuleOp module, StringRef chip,
                               const CudaToolkit &toolkit) {
  auto target =
      NVVM::NVVMTargetAttr::get(module.getContext(), /*optLevel=*/3,
                                "nvptx64-nvidia-cuda", chip, kPtxFeature);
  auto compiler = cast<gpu::TargetAttrInterface>(Attribute(target));
  gpu::TargetOptions options(toolkit.root, {}, {}, {},
                             gpu::CompilationTarget::Assembly);
  auto text = compiler.serializeToObject(module, options);
  if (!text)
    return failure();
  std::string ptx(text->begin(), text->end());
  while (!ptx.empty() && ptx.back() == '\0')
    ptx.pop_back();
  // What libdevice lacks would only fail when the image is loaded.
  size_t missing = ptx.find(".extern .func");
  if (missing != std::string::npos) {
    StringRef line = StringRef(ptx).substr(missing).split(';').first;
    return module.emitError("GPU code calls a function that libdevice lacks: ")
           << line.trim();
  }
  return ptx;
}

LogicalResult writeFile(StringRef path, StringRef text, Location loc) {
  std::error_code error;
  llvm::raw_fd_ostream file(path, error);
  if (!error) {
    file << text;
    file.close();
    error = file.error();
  }
  if (error)
    return emitError(loc) << "cannot write '" << path
                          << "': " << error.message();
  return success();
}

std::string readFile(StringRef path) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  return buffer ? (*buffer)->getBuffer().str() : std::string();
}

LogicalResult runTool(const placement::TemporaryFolder &folder,
                      ArrayRef<std::string> command, Location loc) {
  std::string log = folder.file("log");
  std::optional<StringRef> redirects[] = {std::nullopt, StringRef(log),
                                          StringRef(log)};
  SmallVector<StringRef> arguments(command.begin(), command.end());
  std::vector<std::string_view> given = placement::environment();
  SmallVector<StringRef> environment(given.begin(), given.end());
  std::string message;
  int status = llvm::sys::ExecuteAndWait(
      command.front(), arguments, environment, redirects, 0, 0, &message);
  if (status == 0)
    return success();
  StringRef name = StringRef(command.front()).rsplit('/').second;
  std::string said = readFile(log);
  return emitError(loc) << name << " failed: " << message
                        << StringRef(said).trim();
}

bool isChip(StringRef chip) {
  StringRef number = chip;
  return number.consume_front("sm_") && number.size() >= 2 &&
         llvm::all_of(number.take_front(2), llvm::isDigit) &&
         llvm::all_of(number, llvm::isAlnum);
}
} // namespace

FailureOr<std::string> baechi::compileImage(gpu::GPUModuleOp module,
                                            const CudaOptions &options,
                                            const CudaToolkit &toolkit) {
  Location loc = module.getLoc();
  for (const std::string &chip : options.chips)
    if (!isChip(chip))
      return emitError(loc) << "'" << chip
                            << "' is no GPU chip; chips are named sm_80, sm_90 "
                               "and so on";
  if (failed(lowerKernels(module)))
    return failure();
  FailureOr<std::string> ptx = makePtx(module, options.chips.front(), toolkit);
  if (failed(ptx))
    return failure();

  placement::TemporaryFolder folder("baechi-cuda");
  if (!folder.error().empty())
    return emitError(loc) << folder.error();
  std::string source = folder.file("kernels.ptx");
  if (failed(writeFile(source, *ptx, loc)))
    return failure();
  std::string image = folder.file("kernels.fatbin");
  std::vector<std::string> bundle{toolkit.fatbinary, "-64",
                                  "--create=" + image};
  for (const std::string &chip : options.chips) {
    std::string object = folder.file(chip + ".cubin");
    if (failed(runTool(folder,
                       {toolkit.ptxas, "-O3", "--gpu-name=" + chip,
                        "--output-file=" + object, source},
                       loc)))
      return failure();
    bundle.push_back("--image3=kind=elf,sm=" + chip.substr(3) +
                     ",file=" + object);
  }
  bundle.push_back("--image3=kind=ptx,sm=" + options.chips.front().substr(3) +
                   ",file=" + source);
  if (failed(runTool(folder, bundle, loc)))
    return failure();
  return readFile(image);
}
