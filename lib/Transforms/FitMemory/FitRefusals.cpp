//===- FitRefusals.cpp - Why no rewrite of a step fits --------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FitRefusals.h"
#include "Baechi/Analysis/Program.h"
#include "Baechi/Placement/Model/Pool.h"
#include "Baechi/Placement/Model/Text.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace baechi;
using placement::bytesText;
using placement::bytesTextUp;

void UnfitPlans::add(ArrayRef<ArenaReport> arenas, const SpillFitter &fitter) {
  for (const ArenaReport &arena : arenas) {
    if (arena.device == fitter.poolName() && arena.bytes > arena.limit)
      fullestPool = arena;
    if (arena.device == fitter.deviceName() &&
        (leanestDevice == 0 || arena.bytes < leanestDevice))
      leanestDevice = arena.bytes;
  }
}

Diagnostic *baechi::findError(std::vector<Diagnostic> &said) {
  auto error = llvm::find_if(said, [](const Diagnostic &diagnostic) {
    return diagnostic.getSeverity() == DiagnosticSeverity::Error;
  });
  return error == said.end() ? nullptr : &*error;
}

static constexpr StringRef kCutIt = "; cut into pieces (--split) it would need "
                                    "less";
static constexpr StringRef kWriteItOut =
    "; it has a loop, as a sort has, or a branch, and runs as one kernel with "
    "all that this reads and leaves, so that nothing of it can wait: a loop of "
    "the program needs less written out (--unroll=always), a sort with "
    "fewer elements, all else cut into pieces (--split)";

/// Whether fusion has made \p loop (FormKernels/RowLoops.cpp): turns compute a
/// row each of new results, and know nothing of each other.
static bool isOverRows(LoopLikeOpInterface loop) {
  auto rows = dyn_cast<scf::ForOp>(loop.getOperation());
  if (!rows)
    return false;
  auto isRow = [](OffsetSizeAndStrideOpInterface slice) {
    return llvm::all_of(slice.getOffsets(), [](Value offset) {
      auto index = dyn_cast<BlockArgument>(offset);
      auto of = index ? dyn_cast<scf::ForOp>(index.getOwner()->getParentOp())
                      : nullptr;
      return of && of.getInductionVar() == index;
    });
  };
  return llvm::all_of(
      llvm::zip_equal(rows.getInits(), rows.getRegionIterArgs()),
      [&](auto pair) {
        auto [init, rest] = pair;
        // Those within others, which are looked at, too, go on with theirs.
        auto outer = dyn_cast<BlockArgument>(init);
        bool isNew = outer
                         ? isa<scf::ForOp>(outer.getOwner()->getParentOp())
                         : bool(init.template getDefiningOp<tensor::EmptyOp>());
        return isNew && llvm::all_of(rest.getUsers(), [&](Operation *user) {
                 auto slice = dyn_cast<OffsetSizeAndStrideOpInterface>(user);
                 return slice ? isRow(slice) : isa<scf::ForOp>(user);
               });
      });
}

/// What would make the operator that needs most need less.
static StringRef mendOf(Operation *op) {
  func::FuncOp kernel = op ? kernelOf(op) : nullptr;
  auto isOfProgram = [](Operation *within) {
    auto loop = dyn_cast<LoopLikeOpInterface>(within);
    bool isLoop = loop && within->getNumResults() > 1 && !isOverRows(loop);
    return isLoop || isa<scf::IfOp, scf::IndexSwitchOp>(within)
               ? WalkResult::interrupt()
               : WalkResult::advance();
  };
  return kernel && kernel.walk(isOfProgram).wasInterrupted() ? kWriteItOut
                                                             : kCutIt;
}

void baechi::refuseToRecompute(const MemoryFitter &fitter,
                               const placement::Machine &machine,
                               std::optional<int64_t> leanest,
                               Diagnostic &error) {
  int64_t memory = placement::computingBytes(machine);
  placement::MemoryFloor floor = fitter.floor();
  error << "\n"
        << "computing values again does not help: ";
  if (leanest)
    error << "the leanest rewrite that was found needs "
          << bytesTextUp(*leanest, 2);
  else
    error << "no rewrite was found";
  error << ", '" << fitter.nameOf(floor.op) << "' by itself needs "
        << bytesTextUp(floor.bytes, 2) << ", of them "
        << bytesText(fitter.residentBytes(), 2) << " of arguments";
  bool argumentsFit = fitter.residentBytes() <= memory;
  if (placement::numComputing(machine) > 1) {
    int64_t largest = 0;
    for (const placement::Device &device : machine.devices)
      if (!placement::isPool(device))
        largest = std::max(largest, device.memory);
    // A pool is of no use to it.
    if (placement::MemoryFloor alone = fitter.floorAlone();
        alone.bytes > largest) {
      error << "; ";
      if (alone.op == floor.op)
        error << bytesTextUp(alone.bytes, 2)
              << " of that must be on one device";
      else
        error << "'" << fitter.nameOf(alone.op) << "' needs "
              << bytesTextUp(alone.bytes, 2) << " on one device";
      error << ", the largest has " << bytesText(largest, 2)
            << mendOf(fitter.operationOf(alone.op));
      return;
    }
  }
  if (floor.bytes > memory && argumentsFit)
    error << mendOf(fitter.operationOf(floor.op));
  // With a pool, what lacks there is told.
  else if (placement::poolsOf(machine).empty())
    error << "; it takes more memory, or a pool beside it (+pool:SIZE in the "
             "machine), where "
          << (argumentsFit ? "tensors wait" : "arguments may live");
}

static std::string floorText(const SpillFitter &fitter) {
  return "'" + fitter.floorOperator().str() + "' by itself needs " +
         bytesTextUp(fitter.floor().bytes, 2) +
         " of operands, results and scratch";
}

void baechi::refuseWithPool(const SpillFitter &fitter, const UnfitPlans &unfit,
                            std::vector<Diagnostic> &said) {
  Diagnostic *error = findError(said);
  if (!error)
    return;
  std::string without = error->str();
  Diagnostic refusal(error->getLocation(), DiagnosticSeverity::Error);
  refusal << "the step does not fit '" << fitter.deviceName() << "', which has "
          << bytesText(fitter.deviceBytes(), 2) << ", with '"
          << fitter.poolName() << "' beside it: ";
  if (unfit.fullestPool.bytes > 0) {
    refusal << "'" << fitter.poolName() << "' has "
            << bytesText(unfit.fullestPool.limit, 2)
            << ", what would wait there is "
            << bytesTextUp(unfit.fullestPool.bytes, 2);
  } else if (fitter.floor().bytes > fitter.deviceBytes()) {
    refusal << floorText(fitter) << mendOf(fitter.operationOfFloor());
  } else {
    int64_t leanest = unfit.leanestDevice ? unfit.leanestDevice
                                          : fitter.leanestBytes().value_or(0);
    if (leanest > 0)
      refusal << "the leanest plan that was found needs "
              << bytesTextUp(leanest, 2) << " there, ";
    else
      refusal << "no plan was found, ";
    refusal << floorText(fitter) << mendOf(fitter.operationOfFloor());
  }
  refusal.attachNote() << "without '" << fitter.poolName()
                       << "': " << StringRef(without).split('\n').first;
  for (const Diagnostic &note : error->getNotes())
    refusal.attachNote(note.getLocation()) << note.str();
  *error = std::move(refusal);
}
