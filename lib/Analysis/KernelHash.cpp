//===- KernelHash.cpp - What tells kernels apart ----------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/KernelHash.h"
#include "Baechi/Dialect/Parts.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SHA256.h"

using namespace mlir;
using namespace baechi;

std::string baechi::kernelHash(func::FuncOp kernel) {
  OwningOpRef<func::FuncOp> copy = kernel.clone();
  copy->setName("kernel");
  for (NamedAttribute attr : llvm::to_vector((*copy)->getDiscardableAttrs()))
    (*copy)->removeDiscardableAttr(attr.getName());
  // Follows from the body.
  for (unsigned result = 0; result < copy->getNumResults(); ++result)
    copy->removeResultAttr(result,
                           StringAttr::get(kernel.getContext(), kParts));
  std::string text;
  llvm::raw_string_ostream os(text);
  copy->print(os, OpPrintingFlags().useLocalScope());
  auto digest = llvm::SHA256::hash(llvm::arrayRefFromStringRef(text));
  return llvm::toHex(ArrayRef(digest).take_front(16), /*LowerCase=*/true);
}
