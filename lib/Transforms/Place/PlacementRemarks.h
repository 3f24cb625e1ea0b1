//===- PlacementRemarks.h - Reasons of a placement as remarks -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_TRANSFORMS_PLACE_PLACEMENTREMARKS_H
#define BAECHI_LIB_TRANSFORMS_PLACE_PLACEMENTREMARKS_H

#include "Baechi/Analysis/PlacementProblem.h"
#include "mlir/IR/Remarks.h"

namespace baechi {

/// The options of a remark about one operator of a step.
mlir::remark::RemarkOpts remarkOn(llvm::StringRef remark,
                                  llvm::StringRef category,
                                  mlir::FunctionOpInterface step);

/// The location of a graph operator: of the argument or of the operation.
mlir::Location locationOf(const StepGraph &graph, int32_t id);

/// Where a remark engine listens: a remark "placed" for every operator with why
/// it is there; "moved" where improvement put it elsewhere than the placer;
/// "refused" with the devices that cannot take it, and why; "search" and
/// "grouping" for the step. Does nothing otherwise.
void remarkPlacement(const StepGraph &graph, const placement::Machine &machine,
                     const placement::PlaceOptions &options,
                     const placement::PlaceResult &result);

} // namespace baechi

#endif // BAECHI_LIB_TRANSFORMS_PLACE_PLACEMENTREMARKS_H
