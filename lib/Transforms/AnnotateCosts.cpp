//===- AnnotateCosts.cpp - Give every operator a cost -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/InPlace.h"
#include "Baechi/Analysis/KernelHash.h"
#include "Baechi/Analysis/Program.h"
#include "Baechi/Costs/ProfileIndex.h"
#include "Baechi/Costs/Roofline.h"
#include "Baechi/Transforms/Passes.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/iterator.h"
#include "llvm/Support/FormatVariadic.h"

namespace baechi {
#define GEN_PASS_DEF_ANNOTATECOSTS
#include "Baechi/Transforms/Passes.h.inc"
} // namespace baechi

using namespace mlir;
using namespace baechi;

namespace {
/// How many kernels a warning lists.
constexpr size_t listed = 8;

struct AnnotateCosts : public baechi::impl::AnnotateCostsBase<AnnotateCosts> {
  using AnnotateCostsBase::AnnotateCostsBase;
  explicit AnnotateCosts(const Profile *rows) : rows(rows) { replace = true; }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<FunctionOpInterface> step = findStep(module);
    if (failed(step) || failed(checkPlaceable(*step)) ||
        failed(readOptions(module)))
      return signalPassFailure();
    if (rows)
      index.emplace(*rows);
    SmallVector<Operation *> operators = operatorsOf(*step);
    // The same kernel costs the same at every call.
    SymbolTableCollection symbols;
    llvm::MapVector<func::FuncOp, std::string> hashes;
    for (Operation *op : operators)
      if (func::FuncOp kernel = kernelOf(op, symbols);
          rows && kernel && !hashes.contains(kernel))
        hashes[kernel] = kernelHash(kernel);
    fitRooflines(hashes);
    SmallVector<InPlaceUpdate> updates = inPlaceUpdates(*step);
    llvm::DenseMap<std::pair<Operation *, int64_t>, CostAttr> known;
    SmallVector<Operation *> annotated;
    for (Operation *op : operators) {
      if (!replace && op->hasAttr(BaechiDialect::kCost))
        continue;
      annotated.push_back(op);
      func::FuncOp kernel = kernelOf(op, symbols);
      // A kernel's time is without copies of what it changes in place.
      std::pair call(kernel.getOperation(), bytesCopied(op, updates, symbols));
      CostAttr cost = kernel ? known.lookup(call) : CostAttr();
      if (!cost) {
        cost = costOf(op, kernel, call.second,
                      kernel && rows ? hashes[kernel] : "");
        if (!cost)
          return signalPassFailure();
      }
      if (kernel)
        known[call] = cost;
      op->setAttr(BaechiDialect::kCost, cost);
    }
    sayEstimated(*step, annotated);
    // Who gives times expects them in the program.
    if (size_t kept = operators.size() - annotated.size();
        kept > 0 && !(profile.empty() && roofline.empty()))
      emitWarning(step->getLoc())
          << kept << " of " << operators.size()
          << " operators keep the costs that they had; replace=true computes "
             "them again";
  }

private:
  LogicalResult readOptions(ModuleOp module) {
    rooflines = defaultRooflines();
    fits.clear();
    described.clear();
    std::string error;
    if (!roofline.empty()) {
      auto given = parseRooflines(roofline, error);
      if (!given)
        return emitError(module.getLoc()) << error;
      rooflines = std::move(*given);
      for (const Roofline &kind : rooflines)
        described.insert(kind.kind);
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

  /// Replaces assumed peaks by those that the profile's rows show.
  void fitRooflines(const llvm::MapVector<func::FuncOp, std::string> &hashes) {
    if (!rows)
      return;
    llvm::StringMap<Work> workOfHash;
    llvm::StringMap<func::FuncOp> kernelOfHash;
    for (auto &[kernel, hash] : hashes) {
      workOfHash[hash] = workOfKernel(kernel);
      kernelOfHash[hash] = kernel;
    }
    llvm::MapVector<StringRef, SmallVector<RooflineSample>> samples;
    llvm::StringSet<> seen;
    for (const ProfileRow &row : rows->rows) {
      if (!seen.insert(row.kind + "/" + row.hash).second)
        continue;
      auto work = workOfHash.find(row.hash);
      const ProfileRow *best =
          rowFor(kernelOfHash.lookup(row.hash), row.hash, row.kind);
      if (!best)
        continue;
      RooflineSample sample;
      sample.ns = best->costNs();
      if (work != workOfHash.end())
        sample.work = work->second;
      else if (row.flops >= 0 && row.bytes >= 0)
        sample.work = {double(row.flops), double(row.bytes)};
      else
        continue;
      samples[row.kind].push_back(sample);
    }
    for (auto &[kind, measured] : samples) {
      if (described.contains(kind))
        continue;
      auto assumed = llvm::find_if(
          rooflines, [&](const Roofline &each) { return each.kind == kind; });
      auto fit = fitRoofline(measured, assumed != rooflines.end()
                                           ? *assumed
                                           : Roofline{kind.str(), 50e9, 10e9});
      if (!fit)
        continue;
      if (assumed != rooflines.end())
        *assumed = fit->roofline;
      else
        rooflines.push_back(fit->roofline);
      fits.push_back({*fit, measured.size()});
    }
  }

  /// Null after an error. \p copied: bytes that the kernel copies.
  CostAttr costOf(Operation *op, func::FuncOp kernel, int64_t copied,
                  StringRef hash) {
    Builder builder(&getContext());
    NamedAttrList times;
    llvm::SetVector<StringRef> estimated;
    auto stated = dyn_cast<CostOpInterface>(op);
    Work work = workOf(op, kernel);
    DictionaryAttr call =
        kernel ? kernel->getAttrOfType<DictionaryAttr>(BaechiDialect::kHostCall)
               : DictionaryAttr();
    if (call) // runs nowhere else, and takes what it says
      return CostAttr::get(&getContext(),
                           builder.getDictionaryAttr(builder.getNamedAttr(
                               "host", call.getAs<IntegerAttr>("ns"))),
                           /*scratch=*/0, ArrayAttr());
    for (const Roofline &kind : rooflines) {
      if (stated && !stated.runsOn(kind.kind))
        continue;
      std::optional<int64_t> time =
          stated ? stated.getTimeNs(kind.kind) : std::nullopt;
      times.set(kind.kind,
                builder.getI64IntegerAttr(time ? *time : kind.timeNs(work)));
      if (!time)
        estimated.insert(kind.kind);
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
      llvm::StringSet<> inSteps;
      if (rows)
        setMeasured(kernel, hash, times, estimated, inSteps);
      if (copied > 0)
        addCopies(times, copied, inSteps);
      if (auto bytes =
              kernel->getAttrOfType<IntegerAttr>(BaechiDialect::kKernelScratch))
        scratch = bytes.getInt();
    }
    // A kind that no row is of was never to be measured.
    estimated.remove_if(
        [&](StringRef kind) { return !rows || !index->hasKind(kind); });
    return CostAttr::getChecked(
        [&] { return op->emitOpError(); }, &getContext(),
        times.getDictionary(&getContext()), scratch,
        estimated.empty() ? ArrayAttr()
                          : builder.getStrArrayAttr(estimated.getArrayRef()));
  }

  /// Adds what reading and writing so many bytes takes, but for kinds whose
  /// times were measured in steps, which have copied what had to be.
  void addCopies(NamedAttrList &times, int64_t bytes,
                 const llvm::StringSet<> &inSteps) {
    Builder builder(&getContext());
    for (const Roofline &kind : rooflines)
      if (auto time = dyn_cast_or_null<IntegerAttr>(times.get(kind.kind));
          time && !inSteps.contains(kind.kind))
        times.set(kind.kind,
                  builder.getI64IntegerAttr(time.getInt() - kind.launchNs +
                                            kind.timeNs({0, 2.0 * bytes})));
  }

  /// The row of the implementation that `kernel` (which may be null) names, or
  /// else the fastest; null when there is none.
  const ProfileRow *rowFor(func::FuncOp kernel, StringRef hash,
                           StringRef kind) {
    if (kernel && kind == "host")
      if (auto chosen =
              kernel->getAttrOfType<StringAttr>(BaechiDialect::kImplementation))
        return index->find(hash, kind, chosen.getValue());
    if (kernel && kind == "cuda") {
      if (auto how = kernel->getAttrOfType<CudaProductAttr>(
              BaechiDialect::kCudaProduct))
        return index->find(hash, kind, how.getImplementation());
      if (auto how = kernel->getAttrOfType<CudaConvolutionAttr>(
              BaechiDialect::kCudaConvolution))
        return rowFor(how, hash);
      // By cuDNN only where the kernel says so.
      if (const ProfileRow *generated = index->find(hash, kind, "generated"))
        return generated;
    }
    return index->fastest(hash, kind);
  }

  /// The row of a convolution on GPUs: the library's where that is faster, as
  /// measured alone, or always asked for.
  const ProfileRow *rowFor(CudaConvolutionAttr how, StringRef hash) {
    const ProfileRow *library =
        index->find(hash, "cuda", how.getLibraryImplementation());
    const ProfileRow *generated = index->find(hash, "cuda", "generated");
    bool canBe = library && !library->algorithm.empty() &&
                 library->scratchBytes <= how.getWorkspace();
    if (how.getAlways())
      return library;
    return canBe && generated && library->medianNs < generated->medianNs
               ? library
               : generated;
  }

  /// Replaces estimates by measured times; the kernel is made to name what they
  /// are of, with its scratch. \p inSteps gets the kinds whose times are of
  /// steps of the model.
  void setMeasured(func::FuncOp kernel, StringRef hash, NamedAttrList &times,
                   llvm::SetVector<StringRef> &estimated,
                   llvm::StringSet<> &inSteps) {
    Builder builder(&getContext());
    llvm::StringSet<> kinds;
    for (const ProfileRow &row : llvm::make_pointee_range(index->rowsOf(hash)))
      if (kinds.insert(row.kind).second) {
        const ProfileRow *best = rowFor(kernel, hash, row.kind);
        if (!best)
          continue;
        times.set(row.kind, builder.getI64IntegerAttr(best->costNs()));
        estimated.remove(row.kind);
        if (best->stepNs >= 0)
          inSteps.insert(row.kind);
        if (row.kind == "cuda")
          setAlgorithm(kernel, *best);
        if (row.kind != "host")
          continue;
        kernel->setAttr(BaechiDialect::kImplementation,
                        builder.getStringAttr(best->implementation));
        // What it says was for another implementation.
        if (kernel->hasAttr(BaechiDialect::kKernelScratch))
          kernel->setAttr(BaechiDialect::kKernelScratch,
                          builder.getI64IntegerAttr(best->scratchBytes));
      }
  }

  /// Lets GPUs compute a product or a convolution as `row` did, if they may use
  /// the memory.
  void setAlgorithm(func::FuncOp kernel, const ProfileRow &row) {
    auto words = row.algorithm.empty()
                     ? DenseI64ArrayAttr()
                     : DenseI64ArrayAttr::get(&getContext(), row.algorithm);
    if (auto how = kernel->getAttrOfType<CudaConvolutionAttr>(
            BaechiDialect::kCudaConvolution)) {
      bool fits = words && row.scratchBytes <= how.getWorkspace();
      kernel->setAttr(BaechiDialect::kCudaConvolution,
                      CudaConvolutionAttr::get(
                          &getContext(), how.getMath(),
                          fits ? row.scratchBytes : how.getWorkspace(),
                          how.getAlways(), fits ? words : DenseI64ArrayAttr()));
      return;
    }
    auto how =
        kernel->getAttrOfType<CudaProductAttr>(BaechiDialect::kCudaProduct);
    if (how && words && row.scratchBytes <= how.getWorkspace())
      kernel->setAttr(BaechiDialect::kCudaProduct,
                      CudaProductAttr::get(&getContext(), how.getMath(),
                                           row.scratchBytes, words));
  }

  /// Says, for each kind that the profile is of, which operators it lacks.
  void sayEstimated(FunctionOpInterface step, ArrayRef<Operation *> operators) {
    SymbolTableCollection symbols;
    for (const Roofline &kind : rooflines) {
      llvm::SetVector<StringRef> names;
      int64_t count = 0;
      for (Operation *op : operators) {
        auto cost = op->getAttrOfType<CostAttr>(BaechiDialect::kCost);
        if (!cost.getEstimated() ||
            !llvm::is_contained(cost.getEstimated(),
                                StringAttr::get(&getContext(), kind.kind)))
          continue;
        ++count;
        func::FuncOp kernel = kernelOf(op, symbols);
        names.insert(kernel ? kernel.getName() : op->getName().getStringRef());
      }
      if (count == 0)
        continue;
      InFlightDiagnostic warning =
          emitWarning(step.getLoc())
          << "the profile has no row on '" << kind.kind << "' for " << count
          << " of " << operators.size() << " operators, estimated by ";
      auto fit = llvm::find_if(fits, [&](auto &each) {
        return each.first.roofline.kind == kind.kind;
      });
      if (fit == fits.end())
        warning << (described.contains(kind.kind) ? "the described"
                                                  : "an assumed")
                << " roofline";
      else
        warning << llvm::formatv(
                       "a roofline fitted to {0} rows ({1:f1} GFLOP/s, {2:f1} "
                       "GB/s, {3} ns; median error {4:f0} %)",
                       fit->second, kind.flopsPerSecond / 1e9,
                       kind.bytesPerSecond / 1e9, kind.launchNs,
                       fit->first.medianError * 100)
                       .str();
      warning << ": ";
      llvm::interleaveComma(names.getArrayRef().take_front(listed), warning);
      if (names.size() > listed)
        warning << ", ...";
    }
  }

  const Profile *rows = nullptr;
  Profile fromFile;
  std::optional<ProfileIndex> index; ///< of the rows, if there are any
  SmallVector<Roofline> rooflines;
  llvm::StringSet<> described; ///< kinds that the user gave peaks for
  SmallVector<std::pair<RooflineFit, size_t>> fits; ///< with numbers of rows
};
} // namespace

std::unique_ptr<Pass> baechi::createAnnotateCosts(const Profile *profile) {
  return std::make_unique<AnnotateCosts>(profile);
}
