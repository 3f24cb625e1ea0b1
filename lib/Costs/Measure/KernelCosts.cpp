//===- KernelCosts.cpp - What measures kernels, by the device's kind -*- C++
//-*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Costs/Measure/KernelCosts.h"
#include "Baechi/Analysis/KernelHash.h"
#include "Baechi/Costs/Roofline.h"
#include <cmath>

using namespace mlir;
using namespace baechi;

ArrayRef<const KernelCosts *> baechi::kernelCosts() {
  static const KernelCosts *const all[] = {&hostCosts(), &cudaCosts()};
  return all;
}

const KernelCosts &baechi::kernelCostsOf(StringRef kind) {
  for (const KernelCosts *costs : kernelCosts())
    if (costs->kind() == kind)
      return *costs;
  llvm_unreachable("a device of another kind is refused before");
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

void baechi::addRow(Profile &profile, ProfileRow row) {
  auto *there = const_cast<ProfileRow *>(
      profile.find(row.hash, row.kind, row.implementation));
  if (!there) {
    profile.rows.push_back(std::move(row));
    return;
  }
  row.stepNs = there->stepNs;
  row.stepDisturbed = there->stepDisturbed;
  *there = std::move(row);
}
