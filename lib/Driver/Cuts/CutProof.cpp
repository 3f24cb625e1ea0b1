//===- CutProof.cpp - Whether pieces have the whole's bits, by their code -===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Generated code rounds after each operation, whatever it is fused with, so
/// pieces whose sums are added up in the order of the whole's have its bits
/// (Analysis/SumOrders.h). What libraries do by the size of a product, nobody
/// says.
///
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/SumOrders.h"
#include "Baechi/Conversion/Kernels/Host/HostKernels.h"
#include "Baechi/Dialect/Baechi.h"
#include "Baechi/Driver/Compilation/Compilation.h"
#include "Baechi/Pipelines/Pipelines.h"
#include "Cuttables.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace baechi;

std::optional<SumOrders> Compilation::sumOrders(const SplitChoice &choice) {
  OwningOpRef<ModuleOp> trial = uncut->clone();
  SumOrders sums;
  PassManager forming(trial->getContext());
  // What is taken is formed again.
  forming.enableVerifier(false);
  populateOutlining(forming, /*products=*/nullptr, choice, &sums);
  if (failed(forming.run(*trial)))
    return std::nullopt;
  return sums;
}

/// The first kernel of \p module that a library computes; empty: none is.
static StringRef libraryKernel(ModuleOp module) {
  for (auto kernel : module.getOps<func::FuncOp>())
    if (kernel->hasAttr(BaechiDialect::kKernel) && !kernel.isExternal() &&
        askedImplementation(kernel) != kGenerated)
      return kernel.getSymName();
  return "";
}

std::string Compilation::whyNotProven(const SplitChoice &way) {
  if (StringRef name = libraryKernel(compilers.front()->module());
      !name.empty())
    return "a library computes '" + name.str() + "'";
  if (!wholeSums && !(wholeSums = sumOrders(firstChoice)))
    return "the whole step cannot be formed again";
  std::optional<SumOrders> pieces = sumOrders(way);
  return pieces ? whyBitsMayDiffer(*wholeSums, *pieces)
                : "the pieces cannot be formed again";
}

void baechi::useGeneratedCode(ModuleOp module) {
  auto generated = StringAttr::get(module.getContext(), kGenerated);
  for (auto kernel : module.getOps<func::FuncOp>())
    if (kernel->hasAttr(BaechiDialect::kKernel) &&
        hostImplementations(kernel).size() > 1)
      kernel->setAttr(BaechiDialect::kImplementation, generated);
}
