//===- VerifyPlaced.cpp - Check a placed program -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/MachineAttr.h"
#include "Baechi/Analysis/PlacementProblem.h"
#include "Baechi/Placement/Model/Pool.h"
#include "Baechi/Transforms/Passes.h"
#include "llvm/ADT/StringMap.h"

namespace baechi {
#define GEN_PASS_DEF_VERIFYPLACED
#include "Baechi/Transforms/Passes.h.inc"
} // namespace baechi

using namespace mlir;
using namespace baechi;

namespace {
struct VerifyPlaced : public baechi::impl::VerifyPlacedBase<VerifyPlaced> {
  void runOnOperation() override {
    std::optional<placement::Machine> machine = machineOf(getOperation(), "");
    FailureOr<FunctionOpInterface> step = findStep(getOperation());
    if (!machine || failed(step))
      return signalPassFailure();
    llvm::StringMap<StringRef> kinds;
    for (const placement::Device &device : machine->devices)
      kinds[device.name] = device.kind;

    SmallVector<Operation *> operators = operatorsOf(*step);
    SmallVector<int32_t> groups = requiredGroups(*step, operators);
    SmallVector<std::string> names = namesOf(*step);
    llvm::DenseMap<int32_t, int32_t> firstOf;
    int32_t arguments = step->getNumArguments();
    bool valid = true;
    auto attrOf = [&](int32_t id, StringRef name) {
      return stringAttrOf(*step, operators, id, name);
    };
    auto error = [&](int32_t id) -> InFlightDiagnostic {
      valid = false;
      Location loc = id < arguments ? step->getArgument(id).getLoc()
                                    : operators[id - arguments]->getLoc();
      return emitError(loc) << "'" << names[id] << "' ";
    };
    for (int32_t id = 0, n = groups.size(); id < n; ++id) {
      StringAttr device = attrOf(id, BaechiDialect::kDevice);
      if (!device) {
        error(id) << "is on no device; run --baechi-place";
        continue;
      }
      auto kind = kinds.find(device.getValue());
      if (kind == kinds.end()) {
        error(id) << "is on '" << device.getValue()
                  << "', which the machine does not have";
        continue;
      }
      if (StringAttr pin = attrOf(id, BaechiDialect::kPin))
        if (pin != device)
          error(id) << "is pinned to '" << pin.getValue() << "' but placed on '"
                    << device.getValue() << "'";
      if (id >= arguments) {
        auto cost = operators[id - arguments]->getAttrOfType<CostAttr>(
            BaechiDialect::kCost);
        if (cost && !cost.getTimeNs().contains(kind->second) &&
            (!cost.getTimeNs().contains("") ||
             placement::isPoolKind(kind->second)))
          error(id) << "cannot run on '" << device.getValue()
                    << "': no time for kind '" << kind->second << "'";
      }
      if (groups[id] < 0)
        continue;
      int32_t first = firstOf.try_emplace(groups[id], id).first->second;
      if (attrOf(first, BaechiDialect::kDevice) != device)
        error(id) << "is on '" << device.getValue() << "', but '"
                  << names[first] << "' of its group is elsewhere";
    }
    if (!valid)
      signalPassFailure();
  }
};
} // namespace
