//===- LoweredKernelsTest.cpp - Kernels of one text are lowered once ------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Conversion/Kernels/Host/LoweredKernels.h"
#include "Baechi/Analysis/KernelHash.h"
#include "KernelRunner.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/ThreadPool.h"

using namespace baechi;
using namespace baechi::test;
using namespace mlir;

namespace {
/// Adds a constant: `values` to three numbers.
std::string addKernel(llvm::StringRef name, llvm::StringRef values,
                      llvm::StringRef attributes = "") {
  return ("func.func private @" + name +
          "(%x: tensor<3xf32>) -> tensor<3xf32> attributes {baechi.kernel" +
          attributes + R"(} {
  %c = arith.constant dense<)" +
          values + R"(> : tensor<3xf32>
  %e = tensor.empty() : tensor<3xf32>
  %r = linalg.add ins(%x, %c : tensor<3xf32>, tensor<3xf32>) outs(%e : tensor<3xf32>) -> tensor<3xf32>
  return %r : tensor<3xf32>
}
)")
      .str();
}

std::string product(llvm::StringRef name, llvm::StringRef implementation) {
  return ("func.func private @" + name +
          "(%a: tensor<2x3xf32>, %b: tensor<3x2xf32>) -> tensor<2x2xf32> "
          "attributes {baechi.kernel, baechi.implementation = \"" +
          implementation + R"("} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x2xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x2xf32>) -> tensor<2x2xf32>
  %r = linalg.matmul ins(%a, %b : tensor<2x3xf32>, tensor<3x2xf32>) outs(%f : tensor<2x2xf32>) -> tensor<2x2xf32>
  return %r : tensor<2x2xf32>
}
)")
      .str();
}

class LoweredKernelsTest : public testing::Test {
protected:
  LoweredKernelsTest() {
    DialectRegistry registry;
    registerKernelDialects(registry);
    context.appendDialectRegistry(registry);
  }

  OwningOpRef<ModuleOp> parse(const std::string &text) {
    auto module = parseSourceString<ModuleOp>(text, &context);
    EXPECT_TRUE(module);
    return module;
  }

  /// What the code of `name`, one of addKernel(), adds to zeros.
  std::vector<float> added(ModuleOp lowered, llvm::StringRef name) {
    auto jit = llvm::cantFail(HostJit::create());
    llvm::cantFail(jit->add(lowered));
    Array<float> x(3, 0), y(3, 0);
    Array<char> scratch(64);
    reinterpret_cast<void (*)(void *, void *, void *)>(llvm::cantFail(
        jit->lookup(hostSymbol(name))))(x.data(), y.data(), scratch.data());
    return {y.begin(), y.end()};
  }

  MLIRContext context;
  LoweredKernels kernels;
};

TEST_F(LoweredKernelsTest, OneTextIsLoweredOnceUnderAnyName) {
  auto first = parse(addKernel("a", "[1.0, 2.0, 3.0]") +
                     addKernel("b", "[1.0, 2.0, 3.0]") +
                     addKernel("c", "[4.0, 5.0, 6.0]"));
  auto second = parse(addKernel("c", "[1.0, 2.0, 3.0]"));
  ASSERT_TRUE(succeeded(kernels.annotateScratch(*first)));
  EXPECT_EQ(kernels.bufferized(), 2u);
  EXPECT_EQ(kernels.finished(), 0u);
  for (auto kernel : first->getOps<func::FuncOp>())
    EXPECT_TRUE(kernel->hasAttr(BaechiDialect::kKernelScratch));

  ASSERT_TRUE(succeeded(kernels.lower(*first)));
  ASSERT_TRUE(succeeded(kernels.lower(*second)));
  EXPECT_EQ(kernels.bufferized(), 2u);
  EXPECT_EQ(kernels.finished(), 2u);
  EXPECT_EQ(added(*first, "a"), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(added(*first, "b"), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(added(*first, "c"), (std::vector<float>{4, 5, 6}));
  EXPECT_EQ(added(*second, "c"), (std::vector<float>{1, 2, 3}));
}

TEST_F(LoweredKernelsTest, ManyAreLoweredOnSeveralThreads) {
  llvm::DefaultThreadPool pool(llvm::hardware_concurrency(3));
  MLIRContext threaded(MLIRContext::Threading::DISABLED);
  DialectRegistry registry;
  registerKernelDialects(registry);
  threaded.appendDialectRegistry(registry);
  threaded.setThreadPool(pool);
  constexpr int count = 20;
  std::string text;
  for (int number = 0; number < count; ++number)
    text += addKernel("k" + std::to_string(number),
                      llvm::formatv("[{0}.0, 1.0, {0}.5]", number).str());
  auto module = parseSourceString<ModuleOp>(text, &threaded);
  ASSERT_TRUE(module);
  ASSERT_TRUE(succeeded(kernels.lower(*module)));
  EXPECT_EQ(kernels.bufferized(), size_t(count));
  EXPECT_EQ(kernels.finished(), size_t(count));
  // Each group brought constants of the same names.
  for (int number : {0, 1, 7, 19})
    EXPECT_EQ(added(*module, "k" + std::to_string(number)),
              (std::vector<float>{float(number), 1, float(number) + 0.5f}));
  kernels.clear();
}

TEST_F(LoweredKernelsTest, ErrorsAreThoseOfOneThread) {
  std::string text;
  for (int number = 0; number < 20; ++number)
    text += addKernel("k" + std::to_string(number),
                      llvm::formatv("[{0}.0, 1.0, 2.0]", number).str());
  text += R"(
func.func private @wrong(%x: tensor<?xf32>) -> tensor<?xf32> attributes {baechi.kernel} {
  return %x : tensor<?xf32>
}
)";
  std::string told[2];
  for (std::string &words : told) {
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      words += diagnostic.str() + "\n";
      return success();
    });
    auto module = parse(text);
    EXPECT_TRUE(failed(LoweredKernels().lower(*module)));
    context.disableMultithreading();
  }
  EXPECT_EQ(told[0], told[1]);
  EXPECT_NE(told[0].find("kernel 'wrong' cannot be lowered to host code"),
            std::string::npos);
}

TEST_F(LoweredKernelsTest, ConstantsOfKernelsLoweredApartStayApart) {
  auto one = parse(addKernel("one", "[1.0, 2.0, 3.0]"));
  auto other = parse(addKernel("other", "[4.0, 5.0, 6.0]"));
  ASSERT_TRUE(succeeded(kernels.annotateScratch(*one)));
  ASSERT_TRUE(succeeded(kernels.annotateScratch(*other)));
  // Each brought a constant of the same name.
  auto both = parse(addKernel("x", "[1.0, 2.0, 3.0]") +
                    addKernel("y", "[4.0, 5.0, 6.0]") +
                    addKernel("z", "[7.0, 8.0, 9.0]"));
  ASSERT_TRUE(succeeded(kernels.lower(*both)));
  EXPECT_EQ(kernels.bufferized(), 3u);
  EXPECT_EQ(added(*both, "x"), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(added(*both, "y"), (std::vector<float>{4, 5, 6}));
  EXPECT_EQ(added(*both, "z"), (std::vector<float>{7, 8, 9}));
}

TEST_F(LoweredKernelsTest, ImplementationsAreLoweredApart) {
  auto module = parse(product("p", "generated") + product("q", "openblas") +
                      product("r", "openblas"));
  ASSERT_TRUE(succeeded(kernels.lower(*module)));
  EXPECT_EQ(kernels.finished(), 2u);
  auto calls = [&](llvm::StringRef name) {
    bool found = false;
    module->lookupSymbol(hostSymbol(name))->walk([&](LLVM::CallOp call) {
      found |= call.getCallee() == "cblas_sgemm";
    });
    return found;
  };
  EXPECT_FALSE(calls("p"));
  EXPECT_TRUE(calls("q"));
  EXPECT_TRUE(calls("r"));
}

TEST_F(LoweredKernelsTest, CodeHasTheAttributesOfWhoAsks) {
  auto first = parse(addKernel("a", "[1.0, 2.0, 3.0]", ", mine"));
  auto second = parse(addKernel("a", "[1.0, 2.0, 3.0]",
                                ", baechi.implementation = \"generated\""));
  ASSERT_TRUE(succeeded(kernels.lower(*first)));
  ASSERT_TRUE(succeeded(kernels.lower(*second)));
  EXPECT_EQ(kernels.finished(), 1u);
  auto attributesOf = [](ModuleOp module) {
    return module.lookupSymbol(hostSymbol("a"))->getDiscardableAttrDictionary();
  };
  auto alone = parse(addKernel("a", "[1.0, 2.0, 3.0]",
                               ", baechi.implementation = \"generated\""));
  ASSERT_TRUE(succeeded(lowerKernels(*alone)));
  EXPECT_EQ(attributesOf(*second), attributesOf(*alone));
  EXPECT_TRUE(attributesOf(*first).contains("mine"));
}

TEST_F(LoweredKernelsTest, KnownScratchNeedsNoLowering) {
  auto module = parse(addKernel("a", "[1.0, 2.0, 3.0]"));
  auto kernel = *module->getOps<func::FuncOp>().begin();
  kernels.noteScratch(kernelHash(kernel), "generated", 192);
  ASSERT_TRUE(succeeded(kernels.annotateScratch(*module)));
  EXPECT_EQ(kernels.bufferized(), 0u);
  EXPECT_EQ(kernel->getAttrOfType<IntegerAttr>(BaechiDialect::kKernelScratch)
                .getInt(),
            192);
  // The code says what it needs itself.
  ASSERT_TRUE(succeeded(kernels.lower(*module)));
  EXPECT_EQ(module->lookupSymbol(hostSymbol("a"))
                ->getAttrOfType<IntegerAttr>(BaechiDialect::kKernelScratch)
                .getInt(),
            0);
}

TEST_F(LoweredKernelsTest, AFailureNamesTheKernelEachTime) {
  std::string errors;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    errors += diagnostic.str() + "\n";
    return success();
  });
  auto module = parse(addKernel("good", "[1.0, 2.0, 3.0]") +
                      "func.func private @bad(%x: tensor<?xf32>) -> "
                      "tensor<?xf32> attributes {baechi.kernel} {\n"
                      "  return %x : tensor<?xf32>\n}\n");
  for (int time = 0; time < 2; ++time) {
    errors.clear();
    EXPECT_TRUE(failed(kernels.annotateScratch(*module)));
    EXPECT_NE(errors.find("kernel 'bad' cannot be lowered to host code"),
              std::string::npos)
        << errors;
  }
  EXPECT_EQ(kernels.bufferized(), 0u);
}
} // namespace
