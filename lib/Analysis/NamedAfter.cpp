//===- NamedAfter.cpp - Names of what operators become --------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/NamedAfter.h"
#include "Baechi/Analysis/Program.h"

using namespace mlir;

Location baechi::namedAfter(Operation *op, const Twine &suffix) {
  std::string name = nameOf(op);
  if (name.empty())
    return op->getLoc();
  return NameLoc::get(StringAttr::get(op->getContext(), name + suffix),
                      op->getLoc());
}
