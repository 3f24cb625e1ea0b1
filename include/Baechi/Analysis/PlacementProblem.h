//===- PlacementProblem.h - A step as a placement problem -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_ANALYSIS_PLACEMENTPROBLEM_H
#define BAECHI_ANALYSIS_PLACEMENTPROBLEM_H

#include "Baechi/Analysis/Program.h"
#include "Baechi/Placement/Session/Place.h"

namespace baechi {

/// A step and the graph of it. Operator i of the graph is argument i of the
/// step for i < number of arguments, else operators[i - arguments].
///
/// - An argument is an operator without time that holds its tensor for good.
/// - A tensor is charged its size rounded up to kAlignment.
/// - An argument and the operator that computes its next value are one group;
///   the next value holds no memory of its own where it is computed in place,
///   and control edges make the argument's other readers run before.
/// - Constants belong to whoever reads them and move nowhere.
struct StepGraph {
  mlir::FunctionOpInterface step;
  llvm::SmallVector<mlir::Operation *> operators;
  placement::Graph graph;

  mlir::Operation *operation(int32_t id) const {
    int32_t arguments = mlir::FunctionOpInterface(step).getNumArguments();
    return id < arguments ? nullptr : operators[id - arguments];
  }
};

/// Builds the graph; emits an error for an operator without a cost or with a
/// type whose size is unknown. Groups and pins are the IR's.
mlir::FailureOr<StepGraph> buildStepGraph(mlir::FunctionOpInterface step);
/// That of a module's step, if it has one.
mlir::FailureOr<StepGraph> buildStepGraph(mlir::ModuleOp module);

/// The groups that the program itself asks for: for every graph operator the
/// representative of its group (union-find of `baechi.group` names and of
/// arguments with their updaters), -1 when it is in none.
llvm::SmallVector<int32_t>
requiredGroups(mlir::FunctionOpInterface step,
               llvm::ArrayRef<mlir::Operation *> operators);

/// A name for every group of \p groups, by its number (-1: none): the first
/// `baechi.group` that a member has, else the name of its first member, made
/// unlike the name of any other group.
llvm::DenseMap<int32_t, std::string>
groupNames(mlir::FunctionOpInterface step,
           llvm::ArrayRef<mlir::Operation *> operators,
           llvm::ArrayRef<int32_t> groups, llvm::ArrayRef<std::string> names);

/// Writes devices, starts, transfers and the certificate on the step.
void writePlacement(const StepGraph &graph, const placement::Machine &machine,
                    llvm::StringRef placer,
                    const placement::PlaceResult &result);

/// What writePlacement wrote, with arguments at 0 and the makespan that follows
/// from the planned times. Emits an error for what is on no device of
/// \p machine, has no start, or takes unknown time there.
mlir::FailureOr<placement::Placement>
readPlacement(const StepGraph &graph, const placement::Machine &machine);

/// Reads a string attribute of graph operator \p id: of the argument or of the
/// operation that it stands for.
mlir::StringAttr stringAttrOf(mlir::FunctionOpInterface step,
                              llvm::ArrayRef<mlir::Operation *> operators,
                              int32_t id, llvm::StringRef name);

/// Reads a string attribute of a graph operator: of the argument or operation.
mlir::StringAttr stringAttrOf(const StepGraph &graph, int32_t id,
                              llvm::StringRef name);

} // namespace baechi

#endif // BAECHI_ANALYSIS_PLACEMENTPROBLEM_H
