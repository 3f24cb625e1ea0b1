//===- KernelCosts.cpp - What measures kernels, by the device's kind -*- C++
//-*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Costs/Measure/KernelCosts.h"
#include "Baechi/Costs/Roofline.h"
#include <cmath>

using namespace mlir;
using namespace baechi;

const KernelCosts *baechi::kernelCostsOf(StringRef kind) {
  for (const KernelCosts *costs : {&hostCosts(), &cudaCosts()})
    if (costs->kind() == kind)
      return costs;
  return nullptr;
}

ProfileRow baechi::newRow(func::FuncOp kernel, const KernelCosts &costs,
                          StringRef implementation) {
  ProfileRow row;
  row.kernel = kernel.getSymName().str();
  row.hash = kernelHash(kernel);
  row.implementation = implementation.str();
  row.kind = costs.kind().str();
  Work work = workOfKernel(kernel);
  row.flops = std::llround(work.flops);
  row.bytes = std::llround(work.bytes);
  return row;
}
