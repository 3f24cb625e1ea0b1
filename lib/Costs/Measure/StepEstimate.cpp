//===- StepEstimate.cpp - What a step's kernels may take ------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Costs/Measure/StepEstimate.h"
#include "Baechi/Analysis/KernelHash.h"
#include "Baechi/Costs/Roofline.h"
#include "Baechi/Dialect/Baechi.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>

using namespace mlir;
using namespace baechi;

namespace {
using FastestRows = llvm::StringMap<const ProfileRow *>;

/// By their kernels' hashes.
FastestRows fastestRows(StringRef kind, const Profile &profile) {
  FastestRows rows;
  for (const ProfileRow &row : profile.rows) {
    if (row.kind != kind || row.disturbed)
      continue;
    const ProfileRow *&best = rows[row.hash];
    if (!best || row.medianNs < best->medianNs)
      best = &row;
  }
  return rows;
}

Roofline rooflineOf(StringRef kind, const FastestRows &rows) {
  SmallVector<Roofline> assumed = defaultRooflines();
  Roofline roofline = *llvm::find_if(
      assumed, [&](const Roofline &each) { return each.kind == kind; });
  // In an order that hash tables do not decide.
  SmallVector<const ProfileRow *> sorted;
  for (const auto &entry : rows)
    if (entry.second->flops >= 0 && entry.second->bytes >= 0)
      sorted.push_back(entry.second);
  llvm::sort(sorted, [](const ProfileRow *a, const ProfileRow *b) {
    return a->hash < b->hash;
  });
  SmallVector<RooflineSample> samples;
  for (const ProfileRow *row : sorted)
    samples.push_back(
        {{double(row->flops), double(row->bytes)}, double(row->costNs())});
  if (auto fit = fitRoofline(samples, roofline))
    return fit->roofline;
  return roofline;
}
} // namespace

StepEstimate::StepEstimate(ModuleOp module, StringRef kind,
                           const Profile &profile) {
  FastestRows rows = fastestRows(kind, profile);
  Roofline roofline = rooflineOf(kind, rows);
  llvm::StringMap<size_t> calls;
  module.walk([&](func::CallOp call) { ++calls[call.getCallee()]; });
  for (auto kernel : module.getOps<func::FuncOp>()) {
    if (!kernel->hasAttr(BaechiDialect::kKernel))
      continue;
    std::string hash = kernelHash(kernel);
    Use &use = uses[hash];
    use.calls += calls.lookup(kernel.getSymName());
    auto row = rows.find(hash);
    use.ns = std::max<double>(1, row != rows.end()
                                     ? row->second->costNs()
                                     : roofline.timeNs(workOfKernel(kernel)));
  }
  for (const auto &entry : uses)
    total += entry.second.ns * double(entry.second.calls);
}
