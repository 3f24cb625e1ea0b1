//===- AnnotateCosts.cpp - Give every operator a cost -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/Profile.h"
#include "Baechi/Analysis/Program.h"
#include "Baechi/Analysis/Roofline.h"
#include "Baechi/Transforms/Passes.h"
#include "llvm/ADT/StringSet.h"

namespace baechi {
#define GEN_PASS_DEF_ANNOTATECOSTS
#include "Baechi/Transforms/Passes.h.inc"
} // namespace baechi

using namespace mlir;
using namespace baechi;

namespace {
struct AnnotateCosts : public baechi::impl::AnnotateCostsBase<AnnotateCosts> {
  using AnnotateCostsBase::AnnotateCostsBase;
  explicit AnnotateCosts(const Profile *rows) : rows(rows) {}

  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<func::FuncOp> step = findStep(module);
    if (failed(step) || failed(checkShapes(*step)) ||
        failed(readOptions(module)))
      return signalPassFailure();
    // The same kernel costs the same at every call.
    llvm::DenseMap<Operation *, CostAttr> known;
    for (Operation *op : operatorsOf(*step)) {
      func::FuncOp kernel = kernelOf(op);
      CostAttr cost = kernel ? known.lookup(kernel) : CostAttr();
      if (!cost) {
        cost = costOf(op, kernel);
        if (!cost)
          return signalPassFailure();
      }
      if (kernel)
        known[kernel] = cost;
      op->setAttr(BaechiDialect::kCost, cost);
    }
  }

private:
  LogicalResult readOptions(ModuleOp module) {
    rooflines = defaultRooflines();
    std::string error;
    if (!roofline.empty()) {
      auto given = parseRooflines(roofline, error);
      if (!given)
        return emitError(module.getLoc()) << error;
      rooflines = std::move(*given);
    }
    if (profile.empty())
      return success();
    llvm::Expected<Profile> read = readProfile(profile);
    if (!read)
      return emitError(module.getLoc()) << llvm::toString(read.takeError());
    fromFile = std::move(*read);
    rows = &fromFile;
    return success();
  }

  /// Null after an error.
  CostAttr costOf(Operation *op, func::FuncOp kernel) {
    Builder builder(&getContext());
    NamedAttrList times;
    auto stated = dyn_cast<CostOpInterface>(op);
    Work work = workOf(op);
    for (const Roofline &kind : rooflines) {
      if (stated && !stated.runsOn(kind.kind))
        continue;
      std::optional<int64_t> time =
          stated ? stated.getTimeNs(kind.kind) : std::nullopt;
      times.set(kind.kind,
                builder.getI64IntegerAttr(time ? *time : kind.timeNs(work)));
    }
    if (times.empty()) {
      InFlightDiagnostic error = op->emitOpError()
                                 << "runs on none of the described kinds of "
                                    "devices; describe its own with roofline=:";
      for (const Roofline &kind : rooflines)
        error << ' ' << kind.kind;
      return {};
    }
    int64_t scratch = stated ? stated.getScratchBytes() : 0;
    if (kernel) {
      if (auto bytes =
              kernel->getAttrOfType<IntegerAttr>(BaechiDialect::kKernelScratch))
        scratch = bytes.getInt();
      if (rows)
        setMeasured(kernel, times);
    }
    return CostAttr::getChecked([&] { return op->emitOpError(); },
                                &getContext(),
                                times.getDictionary(&getContext()), scratch);
  }

  /// Replaces estimates by measured times, of the implementation that the
  /// kernel names or else the fastest, which it is then made to name.
  void setMeasured(func::FuncOp kernel, NamedAttrList &times) {
    Builder builder(&getContext());
    std::string hash = kernelHash(kernel);
    auto chosen =
        kernel->getAttrOfType<StringAttr>(BaechiDialect::kImplementation);
    llvm::StringSet<> kinds;
    for (const ProfileRow &row : rows->rows)
      if (row.hash == hash && kinds.insert(row.kind).second) {
        const ProfileRow *best =
            chosen && row.kind == "host"
                ? rows->find(hash, row.kind, chosen.getValue())
                : rows->fastest(hash, row.kind);
        if (!best)
          continue;
        times.set(row.kind, builder.getI64IntegerAttr(best->medianNs));
        if (row.kind == "host")
          kernel->setAttr(BaechiDialect::kImplementation,
                          builder.getStringAttr(best->implementation));
      }
  }

  const Profile *rows = nullptr;
  Profile fromFile;
  SmallVector<Roofline> rooflines;
};
} // namespace

std::unique_ptr<Pass> baechi::createAnnotateCosts(const Profile *profile) {
  return std::make_unique<AnnotateCosts>(profile);
}
