//===- DeviceMap.cpp - A placement by names of modules ----------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The form that tools for whole modules take (Hugging Face Accelerate's
// `device_map`): names, or prefixes of names, to devices; the longest prefix
// that ends where a component of the name does counts.
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/PlacementProblem.h"
#include "Baechi/Target/Export.h"
#include "llvm/Support/JSON.h"
#include <map>

using namespace mlir;
using namespace baechi;

namespace {
/// Components that are told apart; what is deeper is one.
constexpr int deepest = 64;

/// The names below a prefix, by their next components.
struct Names {
  std::map<std::string, Names> below;
  StringRef device; ///< of the operator with this very name, if there is one

  void add(StringRef name, StringRef where, int depth = 0) {
    if (name.empty()) {
      device = where;
      return;
    }
    // A component keeps the separator before it.
    size_t end = depth < deepest ? name.find_first_of("/.", 1) : name.npos;
    below[name.take_front(end).str()].add(
        end == StringRef::npos ? "" : name.drop_front(end), where, depth + 1);
  }

  /// The device of all names here; empty when there are several.
  StringRef only() const {
    StringRef found = device;
    for (const auto &[component, names] : below) {
      StringRef there = names.only();
      if (there.empty() || (!found.empty() && there != found))
        return "";
      found = there;
    }
    return found;
  }

  void write(const std::string &prefix, llvm::json::OStream &json) const {
    if (StringRef all = only(); !all.empty()) {
      json.attribute(prefix, all);
      return;
    }
    if (!device.empty())
      json.attribute(prefix, device);
    for (const auto &[component, names] : below)
      names.write(prefix + component, json);
  }
};
} // namespace

LogicalResult baechi::exportDeviceMap(ModuleOp module, raw_ostream &os) {
  FailureOr<FunctionOpInterface> step = findStep(module);
  if (failed(step))
    return failure();
  SmallVector<Operation *> operators = operatorsOf(*step);
  Names all;
  for (auto [id, name] : llvm::enumerate(namesOf(*step))) {
    StringAttr device =
        stringAttrOf(*step, operators, id, BaechiDialect::kDevice);
    if (!device)
      return emitError(id < step->getNumArguments()
                           ? step->getArgument(id).getLoc()
                           : operators[id - step->getNumArguments()]->getLoc())
             << "'" << name << "' is on no device; run --baechi-place";
    all.add(name, device.getValue());
  }
  llvm::json::OStream json(os, 2);
  json.object([&] { all.write("", json); });
  os << '\n';
  return success();
}
