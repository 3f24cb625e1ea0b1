//===- KernelChoices.cpp - The code that kernels stay with ------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Costs/Measure/KernelChoices.h"
#include "Baechi/Analysis/KernelHash.h"
#include "Baechi/Analysis/Program.h"
#include "Baechi/Conversion/Kernels/Host/HostKernels.h"
#include "Baechi/Costs/ProfileIndex.h"
#include "Baechi/Dialect/Baechi.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SHA256.h"
#include <set>

using namespace mlir;
using namespace baechi;

using D = BaechiDialect;

KernelChoices::KernelChoices(ModuleOp module) {
  if (!module)
    return;
  std::set<std::string> hashes;
  for (auto function : module.getOps<func::FuncOp>()) {
    if (!function->hasAttr(D::kKernel) || isHostCall(function) ||
        function->hasAttr(D::kImplementation) ||
        hostImplementations(function).size() < 2)
      continue;
    Kernel &kernel = kernels.emplace_back();
    kernel = {function, kernelHash(function),
              function->getAttr(D::kKernelScratch)};
    hashes.insert(kernel.hash);
  }
  std::string all = llvm::join(hashes, "\n");
  auto digest = llvm::SHA256::hash(llvm::arrayRefFromStringRef(all));
  name = llvm::toHex(ArrayRef(digest).take_front(16), /*LowerCase=*/true);
}

ProgramChoice KernelChoices::chosen() const {
  ProgramChoice choice{name, {}};
  for (Kernel kernel : kernels)
    choice.implementations[kernel.hash] =
        askedImplementation(kernel.function).str();
  return choice;
}

static bool isThere(func::FuncOp kernel, StringRef implementation) {
  return llvm::is_contained(hostImplementations(kernel), implementation);
}

bool KernelChoices::canHave(const ProgramChoice &choice) const {
  return llvm::all_of(kernels, [&](const Kernel &kernel) {
    auto found = choice.implementations.find(kernel.hash);
    return found != choice.implementations.end() &&
           isThere(kernel.function, found->second);
  });
}

void KernelChoices::apply(const ProgramChoice &choice, const Profile &profile) {
  ProfileIndex index(profile);
  for (Kernel &kernel : kernels) {
    func::FuncOp function = kernel.function;
    // As it was at first: the scratch is that of the code by default.
    function->removeAttr(D::kImplementation);
    if (kernel.scratch)
      function->setAttr(D::kKernelScratch, kernel.scratch);
    auto found = choice.implementations.find(kernel.hash);
    if (found == choice.implementations.end())
      continue;
    const std::string &wanted = found->second;
    if (isThere(function, wanted) && (index.find(kernel.hash, "host", wanted) ||
                                      wanted == askedImplementation(function)))
      function->setAttr(D::kImplementation,
                        StringAttr::get(function.getContext(), wanted));
  }
}
