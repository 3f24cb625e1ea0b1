//===- CudaKernelsTest.cpp - The blocks and threads of GPU code, on the host
//-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// No GPU is needed: the code of launches is run by loops over its blocks and
// threads, upwards and downwards, and compared with the kernels' host code.
// Code whose threads do not keep to their own data between barriers gives
// different results in one of the orders. What is not seen here is what only
// the device does: the translation to PTX (ptxas accepts it:
// test/Conversion/CudaKernels) and memory that is shared at the same time.
//
//===----------------------------------------------------------------------===//

#include "Baechi/Conversion/Kernels/Cuda/CudaKernels.h"
#include "../../lib/Costs/Measure/DataAccesses.h"
#include "../../lib/Costs/Measure/Operands.h"
#include "../Runtime/FakeCuda/PlainConvolution.h"
#include "Baechi/Conversion/HostJit/HostJit.h"
#include "Baechi/Conversion/Kernels/Host/HostKernels.h"
#include "Baechi/Dialect/Baechi.h"
#include "Baechi/Dialect/CudaBlocks.h"
#include "Baechi/Placement/Io/Files.h"
#include "Baechi/Transforms/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "gtest/gtest.h"
#include <cmath>

using namespace mlir;
using namespace baechi;
using fakecuda::convolvePlainly;
using fakecuda::multiplyPlainly;

namespace {
static_assert(std::is_same_v<decltype(&multiplyPlainly),
                             decltype(&baechi_cuda_multiply)>);
static_assert(std::is_same_v<decltype(&convolvePlainly),
                             decltype(&baechi_cuda_convolve)>);

/// The kernels of a module, compiled.
struct Code {
  using Symbol = std::string (*)(StringRef kernel);

  Code(ModuleOp kernels, function_ref<LogicalResult(ModuleOp)> lower,
       Symbol symbol)
      : module(kernels.clone()), symbol(symbol) {
    if (failed(lower(*module))) {
      ADD_FAILURE() << "the kernels do not lower";
      return;
    }
    HostJitOptions options;
    options.symbols["baechi_cuda_multiply"] =
        reinterpret_cast<void *>(&multiplyPlainly);
    options.symbols["baechi_cuda_convolve"] =
        reinterpret_cast<void *>(&convolvePlainly);
    auto created = HostJit::create(options);
    if (!created) {
      ADD_FAILURE() << llvm::toString(created.takeError());
      return;
    }
    jit = std::move(*created);
    if (auto error = jit->add(*module))
      ADD_FAILURE() << llvm::toString(std::move(error));
  }

  /// Runs a kernel; gives the operands, results included.
  Operands run(func::FuncOp kernel) {
    std::string name = symbol(kernel.getSymName());
    Operands operands(
        kernel, module->lookupSymbol(name)
                    ->getAttrOfType<IntegerAttr>(BaechiDialect::kKernelScratch)
                    .getInt());
    llvm::Expected<void *> address = jit->lookup(name);
    if (!address) {
      ADD_FAILURE() << llvm::toString(address.takeError());
      return operands;
    }
    call(*address, operands.set(0),
         kernel.getNumArguments() + kernel.getNumResults() + 1);
    return operands;
  }

private:
  /// A function of so many pointers.
  static void call(void *function, void **p, size_t count) {
    constexpr size_t kMost = 130;
    ASSERT_LE(count, kMost);
    void *all[kMost] = {};
    std::copy_n(p, count, all);
    // Those that it does not take lie on the stack, untouched.
    [&]<size_t... I>(std::index_sequence<I...>) {
      using Pointers = void (*)(decltype(static_cast<void *>(all[I]))...);
      reinterpret_cast<Pointers>(function)(all[I]...);
    }(std::make_index_sequence<kMost>());
  }

  OwningOpRef<ModuleOp> module;
  Symbol symbol;
  std::unique_ptr<HostJit> jit;
};

std::string sameName(StringRef kernel) { return kernel.str(); }

bool near(float a, float b) {
  if (std::isnan(a) || std::isnan(b))
    return std::isnan(a) == std::isnan(b);
  return a == b || std::abs(a - b) <= 2e-4f * std::max(1.0f, std::abs(b));
}

void compare(func::FuncOp kernel, Operands &expected, Operands &actual,
             StringRef order) {
  for (auto [number, type] : llvm::enumerate(kernel.getResultTypes())) {
    auto tensor = cast<RankedTensorType>(type);
    size_t position = kernel.getNumArguments() + number;
    const char *want = static_cast<char *>(expected.set(0)[position]);
    const char *have = static_cast<char *>(actual.set(0)[position]);
    int64_t bytes = llvm::divideCeil(tensor.getElementTypeBitWidth(), 8);
    for (int64_t i = 0; i < tensor.getNumElements(); ++i) {
      bool same =
          tensor.getElementType().isF32()
              ? near(reinterpret_cast<const float *>(have)[i],
                     reinterpret_cast<const float *>(want)[i])
              : std::memcmp(have + i * bytes, want + i * bytes, bytes) == 0;
      ASSERT_TRUE(same) << kernel.getSymName().str() << ", " << order.str()
                        << ": result " << number << " differs at " << i << ": "
                        << (tensor.getElementType().isF32()
                                ? reinterpret_cast<const float *>(have)[i]
                                : have[i * bytes])
                        << " for "
                        << (tensor.getElementType().isF32()
                                ? reinterpret_cast<const float *>(want)[i]
                                : want[i * bytes]);
    }
  }
}

/// Compares the kernels of a module; says how many.
int compareKernels(ModuleOp module) {
  SmallVector<func::FuncOp> kernels;
  for (auto function : module.getOps<func::FuncOp>())
    // Invented operands would lead others out of their tensors.
    if (function->hasAttr(BaechiDialect::kKernel) &&
        !findDataAccesses(function).computed)
      kernels.push_back(function);
  OwningOpRef<ModuleOp> alone = ModuleOp::create(module.getLoc());
  OpBuilder builder = OpBuilder::atBlockBegin(alone->getBody());
  for (func::FuncOp kernel : kernels)
    builder.clone(*kernel);

  Code host(*alone, lowerKernels,
            [](StringRef kernel) { return hostSymbol(kernel); });
  auto emulate = [](bool descending) {
    return [descending](ModuleOp copy) {
      return emulateCudaKernels(copy, descending);
    };
  };
  Code ascending(*alone, emulate(false), sameName);
  Code descending(*alone, emulate(true), sameName);
  if (::testing::Test::HasFailure())
    return 0;
  for (func::FuncOp kernel : kernels) {
    Operands expected = host.run(kernel);
    Operands up = ascending.run(kernel), down = descending.run(kernel);
    compare(kernel, expected, up, "ascending");
    compare(kernel, expected, down, "descending");
  }
  return kernels.size();
}

class CudaKernels : public ::testing::TestWithParam<const char *> {
protected:
  /// A model with its kernels; null where the test has failed.
  OwningOpRef<ModuleOp> formed(StringRef model) {
    std::string text,
        path = (BAECHI_SOURCE_DIR "/test/fixtures/" + model + ".mlir").str();
    std::string error = placement::readTextFile(path, text);
    if (!error.empty())
      error = placement::readTextFile(path + ".xz", text);
    EXPECT_EQ(error, "");
    OwningOpRef<ModuleOp> module = parse(text);
    PassManager passes(context.get());
    passes.addPass(createFormKernels());
    if (module && succeeded(passes.run(*module)))
      return module;
    ADD_FAILURE() << "the kernels of " << model.str() << " are not formed";
    return nullptr;
  }
  CudaKernels() {
    DialectRegistry registry;
    registerCudaKernelDialects(registry);
    context = std::make_unique<MLIRContext>(registry);
  }
  OwningOpRef<ModuleOp> parse(StringRef text) {
    return parseSourceString<ModuleOp>(text, context.get());
  }
  std::unique_ptr<MLIRContext> context;
};
} // namespace

/// The kernels of a model's training step.
TEST_P(CudaKernels, ModelsAsOnTheHost) {
  OwningOpRef<ModuleOp> module = formed(GetParam());
  ASSERT_TRUE(module);
  EXPECT_GT(compareKernels(*module), 10);
}
INSTANTIATE_TEST_SUITE_P(Fixtures, CudaKernels,
                         ::testing::Values("transformer_tiny", "convnet_tiny",
                                           "lstm_tiny", "moe_tiny", "gnmt_tiny",
                                           "resnet_tiny", "inception_tiny",
                                           "mlp_tiny"));

/// What the library is asked for, and what is moved before and after that.
TEST_F(CudaKernels, ConvolutionsByTheLibraryAsOnTheHost) {
  for (auto [model, least] : {std::pair("convnet_tiny", 4),
                              {"resnet_tiny", 6},
                              {"inception_tiny", 20}}) {
    OwningOpRef<ModuleOp> module = formed(model);
    ASSERT_TRUE(module);
    CudaProductOptions options;
    options.convolutions = "cudnn";
    chooseCudaProducts(*module, options);
    int convolutions = 0;
    for (auto kernel :
         llvm::make_early_inc_range(module->getOps<func::FuncOp>()))
      if (kernel->hasAttr(BaechiDialect::kCudaConvolution))
        ++convolutions;
      else
        kernel->removeAttr(BaechiDialect::kKernel);
    EXPECT_GE(convolutions, least) << model;
    EXPECT_EQ(compareKernels(*module), convolutions) << model;
  }
}

/// Small updates that are one launch.
TEST_F(CudaKernels, JoinedUpdatesAsOnTheHost) {
  for (const char *model : {"mlp_tiny", "transformer_tiny", "resnet_tiny"}) {
    OwningOpRef<ModuleOp> module = formed(model);
    ASSERT_TRUE(module);
    CudaProductOptions options;
    options.updates = true;
    chooseCudaProducts(*module, options);
    int joined = 0;
    for (auto kernel : module->getOps<func::FuncOp>())
      if (kernel->hasAttr(kCudaTogether))
        ++joined;
      else
        kernel->removeAttr(BaechiDialect::kKernel);
    EXPECT_GE(joined, 1) << model;
    EXPECT_EQ(compareKernels(*module), joined) << model;
  }
}

/// One kernel of each kind, those of the lit test.
TEST_F(CudaKernels, OneOfEachKindAsOnTheHost) {
  std::string text;
  ASSERT_EQ(placement::readTextFile(BAECHI_SOURCE_DIR
                                    "/test/Conversion/CudaKernels/kernels.mlir",
                                    text),
            "");
  OwningOpRef<ModuleOp> module = parse(text);
  ASSERT_TRUE(module);
  EXPECT_GT(compareKernels(*module), 15);
}
