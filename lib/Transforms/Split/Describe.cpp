//===- Describe.cpp - A plan of cuts as a report --------------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Describe.h"
#include "Baechi/Analysis/Program.h"
#include "llvm/ADT/SmallSet.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace baechi;
using namespace baechi::split;

static std::string argumentName(func::FuncOp step, unsigned number) {
  if (auto name =
          step.getArgAttrOfType<StringAttr>(number, BaechiDialect::kName))
    return name.str();
  return "argument " + std::to_string(number);
}

std::string split::describePlace(func::FuncOp step, const Cut &cut) {
  constexpr size_t kShown = 3;
  std::optional<unsigned> dim;
  SmallVector<std::string> names;
  for (BlockArgument argument : step.getArguments()) {
    auto at = cut.values.find(argument);
    if (at == cut.values.end() || (dim && *dim != at->second.dim))
      continue;
    dim = at->second.dim;
    names.push_back(argumentName(step, argument.getArgNumber()));
  }
  if (!dim) {
    for (const auto &[op, how] : cut.operations)
      if (op->getNumResults() > 0)
        if (auto at = cut.values.find(op->getResult(0));
            at != cut.values.end()) {
          std::string name = nameOf(op);
          return "dimension " + std::to_string(at->second.dim) + " of " +
                 (name.empty() ? op->getName().getStringRef().str() : name);
        }
    return "a dimension that is summed up";
  }
  std::string text = "dimension " + std::to_string(*dim) + " of ";
  for (size_t at = 0; at < std::min(kShown, names.size()); ++at)
    text += (at ? ", " : "") + names[at];
  if (names.size() > kShown)
    text += " and " + std::to_string(names.size() - kShown) + " more";
  return text;
}

/// Numbers of the operations of each cut, and where their results are cut.
static std::string cutsOf(func::FuncOp step, const SplitPlan &plan) {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::DenseMap<Operation *, size_t> numbers;
  for (Operation &op : step.front())
    numbers[&op] = numbers.size();
  for (const Cut &cut : plan.cuts) {
    os << (cut.chained ? "chained" : "cut");
    for (int64_t size : cut.sizes)
      os << " " << size;
    for (const auto &[op, how] : cut.operations) {
      os << "\n" << numbers.lookup(op) << " " << int(how.kind);
      for (const auto &positions : {how.operands, how.results})
        for (const std::optional<CutPosition> &at : positions)
          if (at)
            os << " " << at->dim << "/" << at->outer << "/" << at->inner;
          else
            os << " whole";
    }
    os << "\n";
  }
  return text;
}

SplitReport split::describe(func::FuncOp step, const SplitPlan &plan) {
  SplitReport report;
  report.cuts = cutsOf(step, plan);
  report.totalNs = std::llround(plan.totalNs);
  report.isLargestFirst = plan.isLargestFirst;
  // An operation may stay whole on several cuts' ways, for one reason.
  DenseMap<Operation *, llvm::SmallSet<std::string, 2>> told;
  for (const Cut &cut : plan.cuts) {
    if (cut.operations.empty())
      continue;
    SplitReport::Class found;
    found.along = describePlace(step, cut);
    SmallVector<int64_t> sizes = cut.sizesAt({.inner = cut.unit});
    found.sizes.assign(sizes.begin(), sizes.end());
    found.operations = cut.operations.size();
    found.reductions = llvm::count_if(cut.operations, [](const auto &entry) {
      return entry.second.kind == OperationCut::Kind::Reduction;
    });
    found.meetings = cut.meetings.size();
    found.why = cut.why;
    found.savedNs = std::llround(cut.worth.savedNs);
    found.copiedNs = std::llround(cut.worth.copiedNs);
    found.sentNs = std::llround(cut.worth.sentNs);
    report.isChained |= cut.chained;
    report.classes.push_back(std::move(found));
    for (const Whole &whole : cut.whole)
      if (!plan.cutOf.contains(whole.op) && !plan.isPaddedInParts(whole.op) &&
          told[whole.op].insert(whole.why).second)
        ++report.whole[whole.why];
  }
  return report;
}

void split::describeStorage(const Storage &storage, SplitReport &report) {
  report.arguments = storage.arguments;
  report.argumentBytes = storage.bytes;
  report.results = storage.results;
  for (const Storage::Whole &whole : storage.whole)
    ++report.wholeArguments[whole.why];
}
