//===- SpillFitter.h - Plans that keep tensors in a pool --------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_TRANSFORMS_FITMEMORY_SPILLFITTER_H
#define BAECHI_LIB_TRANSFORMS_FITMEMORY_SPILLFITTER_H

#include "Baechi/Analysis/Stashing.h"
#include "Baechi/Placement/Model/Pool.h"
#include "FitRemarks.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace baechi {

/// Proposes placements of a step on one device with a pool beside it. Whether
/// their plans fit, its user finds out.
class SpillFitter {
public:
  /// \p module, whose step has costs, outlives the fitter. Nullopt where no
  /// device can run the whole step and talk to \p pool.
  static std::optional<SpillFitter>
  create(mlir::ModuleOp module, const placement::Machine &target, int32_t pool);

  /// What the step as it is holds at least, as far as is known.
  int64_t peakBytes() const { return bases.front().peakBytes; }
  /// What no proposal goes under.
  placement::MemoryFloor floor() const { return least; }
  llvm::StringRef floorOperator() const {
    return graph.graph.ops[least.op].name;
  }
  mlir::Operation *operationOfFloor() const {
    return graph.operation(least.op);
  }
  const std::string &poolName() const { return target.devices[pool].name; }
  int64_t poolBytes() const { return target.devices[pool].memory; }
  const std::string &deviceName() const { return target.devices[device].name; }
  int64_t deviceBytes() const { return target.devices[device].memory; }
  /// Of all devices that compute.
  int64_t computingBytes() const { return placement::computingBytes(target); }

  /// Plans within ever fewer bytes, those with the shortest step first. The
  /// same whatever \p most is: those that hold more are left out. \p goesOn:
  /// told how much of the search is done; false: it ends.
  std::vector<placement::SpillPlan>
  proposals(int64_t most,
            llvm::function_ref<bool(size_t done, size_t total)> goesOn) const;
  /// What the plan holds that holds least of those; nullopt: there is none.
  std::optional<int64_t> leanestBytes() const;

  /// The module with its step rewritten and placed.
  mlir::OwningOpRef<mlir::ModuleOp>
  place(const placement::SpillPlan &plan) const;

  /// The module with its step rewritten and in the pool what \p plan says;
  /// devices and times of the rest are a placer's to choose.
  mlir::OwningOpRef<mlir::ModuleOp>
  rewrite(const placement::SpillPlan &plan) const;

  /// What \p plan lets wait.
  SpillFit describe(const placement::SpillPlan &plan) const;

private:
  /// Those that are tried, the largest first.
  llvm::SmallVector<int64_t> limits() const;

  SpillFitter(mlir::ModuleOp module, StepGraph graph,
              const placement::Machine &target, int32_t device, int32_t pool);

  mlir::ModuleOp module;
  StepGraph graph;
  placement::Machine target;
  int32_t device, pool;
  placement::SpillOptions options;
  std::vector<placement::RepeatedOrder> bases;
  placement::MemoryFloor least;
};

} // namespace baechi

#endif // BAECHI_LIB_TRANSFORMS_FITMEMORY_SPILLFITTER_H
