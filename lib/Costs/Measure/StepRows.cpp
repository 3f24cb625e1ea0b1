//===- StepRows.cpp - Rows that other processes' steps fill ---------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Costs/Measure/StepRows.h"
#include "Baechi/Analysis/KernelHash.h"
#include "Baechi/Analysis/Program.h"
#include "Baechi/Costs/Measure/KernelCosts.h"
#include "Baechi/Costs/ProfileIndex.h"
#include "Baechi/Dialect/Baechi.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace baechi;

Profile baechi::stepRows(ModuleOp module, StringRef kind,
                         const Profile &profile) {
  Profile asked;
  asked.target = profile.target;
  asked.compiler = profile.compiler;
  const KernelCosts &costs = kernelCostsOf(kind);
  ProfileIndex index(profile);
  llvm::StringSet<> seen;
  for (auto kernel : module.getOps<func::FuncOp>()) {
    if (!kernel->hasAttr(BaechiDialect::kKernel) || isHostCall(kernel))
      continue;
    ProfileRow row = newRow(kernel, costs, costs.implementationOf(kernel));
    if (!seen.insert(row.hash).second)
      continue;
    if (const ProfileRow *known =
            index.find(row.hash, kind, row.implementation)) {
      std::string name = row.kernel;
      row = *known;
      row.kernel = std::move(name);
    } else {
      row.disturbed = true;
      if (auto scratch =
              kernel->getAttrOfType<IntegerAttr>(BaechiDialect::kKernelScratch))
        row.scratchBytes = scratch.getInt();
    }
    asked.rows.push_back(std::move(row));
  }
  return asked;
}

void baechi::takeStepRows(Profile &profile, const Profile &steps) {
  auto kernelOf = [](const ProfileRow &row) {
    return row.kind + "/" + row.hash;
  };
  llvm::StringMap<const ProfileRow *> taken;
  for (const ProfileRow &row : steps.rows)
    taken[kernelOf(row)] = &row;
  llvm::erase_if(profile.rows, [&](const ProfileRow &row) {
    const ProfileRow *chosen = taken.lookup(kernelOf(row));
    return chosen && chosen->implementation != row.implementation;
  });
  for (ProfileRow &row : profile.rows) {
    auto found = taken.find(kernelOf(row));
    if (found == taken.end())
      continue;
    const ProfileRow &given = *found->second;
    // As addRow: what was measured alone, and is of some worth, stays.
    ProfileRow before = std::exchange(row, given);
    if (!before.disturbed) {
      row.medianNs = before.medianNs;
      row.spreadNs = before.spreadNs;
      row.samples = before.samples;
      row.disturbed = false;
    }
    if (before.stepNs >= 0 && !before.stepDisturbed) {
      row.stepNs = before.stepNs;
      row.stepDisturbed = false;
    }
    taken.erase(found);
  }
  for (const ProfileRow &row : steps.rows)
    if (taken.contains(kernelOf(row)))
      profile.rows.push_back(row);
}
