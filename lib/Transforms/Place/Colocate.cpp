//===- Colocate.cpp - Group what must be on one device -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/PlacementProblem.h"
#include "Baechi/Transforms/Passes.h"
#include "PlacementRemarks.h"

namespace baechi {
#define GEN_PASS_DEF_COLOCATE
#include "Baechi/Transforms/Passes.h.inc"
} // namespace baechi

using namespace mlir;
using namespace baechi;

namespace {
struct Colocate : public baechi::impl::ColocateBase<Colocate> {
  void runOnOperation() override {
    FailureOr<FunctionOpInterface> step = findStep(getOperation());
    if (failed(step))
      return signalPassFailure();
    SmallVector<Operation *> operators = operatorsOf(*step);
    SmallVector<int32_t> groups = requiredGroups(*step, operators);
    SmallVector<std::string> names = namesOf(*step);

    int32_t arguments = step->getNumArguments();
    llvm::DenseMap<int32_t, std::string> called =
        groupNames(*step, operators, groups, names);
    llvm::DenseMap<int32_t, std::string> reasons;
    if (getContext().getRemarkEngine())
      reasons = updateReasons(*step, operators, names);
    for (int32_t id = 0, n = groups.size(); id < n; ++id) {
      if (groups[id] < 0)
        continue;
      auto name = StringAttr::get(&getContext(), called[groups[id]]);
      if (auto remark = remark::passed(
              id < arguments ? step->getArgument(id).getLoc()
                             : operators[id - arguments]->getLoc(),
              remarkOn("grouped", "baechi-colocate", *step))) {
        auto reason = reasons.find(id);
        remark << remark::metric("Operator", names[id])
               << remark::metric("Group", name.str())
               << remark::metric("Reason",
                                 reason == reasons.end()
                                     ? std::string("the program's own group")
                                     : reason->second);
      }
      if (id < arguments)
        step->setArgAttr(id, BaechiDialect::kGroup, name);
      else
        operators[id - arguments]->setAttr(BaechiDialect::kGroup, name);
    }
  }

private:
  /// Why each graph operator is in a group: an update, else the program says.
  static llvm::DenseMap<int32_t, std::string>
  updateReasons(FunctionOpInterface step, ArrayRef<Operation *> operators,
                ArrayRef<std::string> names) {
    int32_t arguments = step.getNumArguments();
    llvm::DenseMap<Operation *, int32_t> idOf;
    for (auto [position, op] : llvm::enumerate(operators))
      idOf[op] = arguments + position;
    llvm::DenseMap<int32_t, std::string> reasons;
    Operation *terminator = step.getFunctionBody().front().getTerminator();
    for (int32_t argument = 0; argument < arguments; ++argument) {
      auto by = step.getArgAttrOfType<IntegerAttr>(argument,
                                                   BaechiDialect::kUpdatedBy);
      if (!by)
        continue;
      auto found = idOf.find(
          rootOf(terminator->getOperand(by.getInt())).getDefiningOp());
      if (found == idOf.end())
        continue;
      reasons[argument] =
          "its next value is computed by '" + names[found->second] + "'";
      reasons.try_emplace(found->second, "it computes the next value of '" +
                                             names[argument] + "'");
    }
    return reasons;
  }
};
} // namespace
