//===- LibraryProduct.cpp - Which products the library computes -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Common/KernelCopies.h"
#include "Convolution.h"
#include "Products.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace baechi;

/// Launches of a library cost microseconds: more calls than this are worse than
/// generated tiles.
static constexpr int64_t kMostCalls = 8;

CudaProductAttr baechi::defaultHow(const GemmPlan &plan, int64_t batch,
                                   const CudaProductOptions &options,
                                   MLIRContext *context) {
  int64_t factors = plan.m * plan.k + plan.k * plan.n;
  int64_t bytes =
      batch * (factors * (plan.factorType.getIntOrFloatBitWidth() / 8) +
               plan.m * plan.n * (plan.resultType.getIntOrFloatBitWidth() / 8));
  // Short types are not shortened.
  bool single = plan.factorType.isF32();
  return CudaProductAttr::get(context, single ? options.math : "fp32",
                              std::min(options.workspaceBytes, bytes), {});
}

/// Whether one call adds `bias` to what it computes: to rows that are as long
/// as the bias, and begin where it does.
static bool addsBias(const LibraryProduct &product, const GemmPlan &plan,
                     const BiasedKernel &bias) {
  return plan.operands.startsFromZero() && plan.operands.factors.size() == 1 &&
         product.others.empty() && bias.elements == plan.n &&
         plan.ldc % plan.n == 0 &&
         (product.batch.size == 1 || product.batch.c % plan.n == 0);
}

std::optional<LibraryProduct> baechi::matchLibraryProduct(func::FuncOp kernel) {
  std::optional<BiasedKernel> biased = splitBias(kernel);
  std::optional<GemmPlan> plan =
      planGemm(biased ? *biased->kernel : kernel, ProductTypes::Short);
  // Sums of products are convolutions' windows: small products, for tiles.
  if (!plan || !plan->sums.empty())
    return std::nullopt;
  LibraryProduct product;
  product.others = plan->outer;
  if (!product.others.empty()) {
    auto *largest = llvm::max_element(
        product.others, [](auto &a, auto &b) { return a.size < b.size; });
    product.batch = *largest;
    product.others.erase(largest);
    // Of a loop that runs backwards: the runtime takes batches for what lies
    // behind their first matrix.
    if (product.batch.a < 0 || product.batch.b < 0)
      return std::nullopt;
  }
  int64_t calls = plan->operands.factors.size();
  for (const ProductLoop &loop : product.others)
    calls *= loop.size;
  if (calls > kMostCalls || (biased && !addsBias(product, *plan, *biased)))
    return std::nullopt;
  if (biased)
    product.bias = biased->argument;
  product.how =
      kernel->getAttrOfType<CudaProductAttr>(BaechiDialect::kCudaProduct);
  if (!product.how)
    product.how =
        defaultHow(*plan, product.batch.size, {}, kernel.getContext());
  product.plan = std::move(*plan);
  return product;
}

std::string baechi::wrongCudaMath(StringRef math) {
  ArrayRef<StringRef> known = CudaProductAttr::knownMath();
  if (llvm::is_contained(known, math))
    return "";
  return ("unknown math '" + math +
          "' of GPUs; known: " + llvm::join(known, ", "))
      .str();
}

void baechi::chooseCudaProducts(ModuleOp module,
                                const CudaProductOptions &options) {
  if (options.biases)
    joinBiases(module);
  if (options.updates)
    joinUpdates(module);
  for (func::FuncOp kernel : kernelsOf(module)) {
    kernel->removeAttr(BaechiDialect::kCudaProduct);
    kernel->removeAttr(BaechiDialect::kCudaConvolution);
    if (auto product = matchLibraryProduct(kernel)) {
      kernel->setAttr(BaechiDialect::kCudaProduct,
                      defaultHow(product->plan, product->batch.size, options,
                                 module.getContext()));
      continue;
    }
    if (options.convolutions == "generated")
      continue;
    if (auto convolution = matchConvolution(kernel))
      kernel->setAttr(BaechiDialect::kCudaConvolution,
                      defaultHow(*convolution, options, module.getContext()));
  }
}
