//===- Checkpoints.cpp - What a program asks to compute again -------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A program with checkpoints computes more than one without, and holds less.
// Where the memories are large enough they are undone; where they are not, the
// program as it is written, and with the fewest checkpoints that make it fit,
// compete with the plans for the one without them, in which tensors wait or are
// computed again by price.
//
//===----------------------------------------------------------------------===//

#include "Baechi/Driver/Compilation/Compilation.h"
#include "Baechi/Driver/Input/Errors.h"
#include "Baechi/Driver/Report/CheckpointReport.h"
#include "Baechi/Placement/Model/Text.h"
#include "Baechi/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace baechi;

llvm::Error Compilation::undoCheckpoints() {
  if (!hasCheckpoints(forms.model()))
    return llvm::Error::success();
  OwningOpRef<ModuleOp> undone = forms.model().clone();
  UndoneCheckpoints found;
  PassManager passes(undone->getContext());
  passes.addPass(createInlineStep());
  passes.addPass(createUndoCheckpoints(&found));
  if (failed(passes.run(*undone)))
    return diagnosed();
  if (found.operators() == 0)
    return llvm::Error::success();
  checkpoints = std::move(found);
  asWritten = forms.setModel(std::move(undone));
  return llvm::Error::success();
}

std::unique_ptr<HostCompiler>
Compilation::formWithCheckpoints(const SplitChoice &choice,
                                 ArrayRef<unsigned> regions, bool &fits) {
  std::unique_ptr<HostCompiler> found;
  (void)forms.quietly([&] {
    OwningOpRef<ModuleOp> model = asWritten->clone();
    if (regions.size() < checkpoints->regions.size()) {
      PassManager passes(model->getContext());
      passes.addPass(createInlineStep());
      passes.addPass(createUndoCheckpoints(nullptr, regions));
      if (failed(passes.run(*model)))
        return failure();
    }
    FailureOr<std::unique_ptr<HostCompiler>> formed =
        forms.formOf(*model, choice);
    if (failed(formed))
      return failure();
    found = std::move(*formed);
    fits = forms.fits(*found);
    return success();
  });
  return found;
}

void Compilation::addAsWritten(const SplitChoice &choice) {
  if (!asWritten || !forms.isMemoryTight(*compilers.front()))
    return;
  Phase phase(listener, "fitting the memories");
  if (forms.fits(*compilers.front()))
    return;
  // Those first that let go of most bytes for the time that they take.
  std::vector<UndoneCheckpoints::Region> regions = checkpoints->regions;
  llvm::stable_sort(regions, [](const auto &a, const auto &b) {
    return double(a.bytes) * double(b.ns) > double(b.bytes) * double(a.ns);
  });
  std::vector<unsigned> numbers;
  for (const UndoneCheckpoints::Region &region : regions)
    numbers.push_back(region.number);
  auto add = [&](std::unique_ptr<HostCompiler> compiler, size_t count) {
    withCheckpoints.push_back(
        {compilers.size(), {numbers.begin(), numbers.begin() + count}});
    compilers.push_back(std::move(compiler));
  };
  bool fits = false;
  std::unique_ptr<HostCompiler> all =
      formWithCheckpoints(choice, numbers, fits);
  if (!all)
    return;
  add(std::move(all), numbers.size());
  // The fewest that fit, as far as more of them need less.
  size_t from = 1, to = numbers.size();
  std::unique_ptr<HostCompiler> fewest;
  while (fits && from < to && !listener.isStopped()) {
    size_t middle = (from + to) / 2;
    bool fitsToo = false;
    std::unique_ptr<HostCompiler> some = formWithCheckpoints(
        choice, ArrayRef(numbers).take_front(middle), fitsToo);
    if (some && fitsToo) {
      fewest = std::move(some);
      to = middle;
    } else {
      from = middle + 1;
    }
  }
  if (fewest)
    add(std::move(fewest), to);
}

void Compilation::reportCheckpoints(size_t &best,
                                    std::vector<Candidate> &candidates) {
  if (!checkpoints)
    return;
  auto chosen =
      llvm::find_if(withCheckpoints, [&](const KeptCheckpoints &each) {
        return each.compiler == best;
      });
  compiled.manifest["checkpoints"] = toJson(
      *checkpoints, chosen == withCheckpoints.end() ? std::vector<unsigned>()
                                                    : chosen->regions);
  if (withCheckpoints.empty())
    return;
  // One of them is the whole step that all that follows is about.
  use(*compilers[best]);
  if (chosen != withCheckpoints.end()) {
    std::swap(compilers.front(), compilers[best]);
    std::swap(candidates.front(), candidates[best]);
    best = 0;
  }
  for (const KeptCheckpoints &each : llvm::reverse(withCheckpoints)) {
    compilers.erase(compilers.begin() + each.compiler);
    candidates.erase(candidates.begin() + each.compiler);
    best -= best > each.compiler;
  }
  withCheckpoints.clear();
}

llvm::json::Object baechi::toJson(const UndoneCheckpoints &checkpoints,
                                  llvm::ArrayRef<unsigned> keptRegions) {
  int64_t kept = 0, again = 0;
  llvm::json::Array numbers;
  for (const UndoneCheckpoints::Region &region : checkpoints.regions)
    if (llvm::is_contained(keptRegions, region.number)) {
      kept += region.operators;
      again += region.bytes;
      numbers.push_back(region.number);
    }
  int64_t all = checkpoints.operators(), bytes = checkpoints.bytes();
  std::string line = llvm::formatv("jax.checkpoint: {0} {1}: kept {2}", all,
                                   all == 1 ? "operator" : "operators", kept);
  llvm::raw_string_ostream os(line);
  if (kept > 0)
    os << " (" << placement::bytesText(again, 2)
       << " of results before fusion are computed again)";
  os << ", undone " << all - kept;
  if (kept < all)
    os << " (" << placement::bytesText(bytes - again, 2)
       << " of results before fusion need not be computed again)";
  if (kept > 0 && kept < all)
    os << "; of " << checkpoints.regions.size() << " regions " << numbers.size()
       << (numbers.size() == 1 ? " is" : " are") << " kept";
  return llvm::json::Object{{"operators", all},
                            {"kept", kept},
                            {"undone", all - kept},
                            {"bytes", bytes},
                            {"kept_regions", std::move(numbers)},
                            {"text", llvm::json::Array{line}}};
}
