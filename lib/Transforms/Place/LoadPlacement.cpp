//===- LoadPlacement.cpp - Pin operators where a file had them --*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/MachineAttr.h"
#include "Baechi/Analysis/PlacementProblem.h"
#include "Baechi/Placement/Io/Files.h"
#include "Baechi/Transforms/Passes.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"

namespace baechi {
#define GEN_PASS_DEF_LOADPLACEMENT
#include "Baechi/Transforms/Passes.h.inc"
} // namespace baechi

using namespace mlir;
using namespace baechi;

namespace {
/// How many names a message lists.
constexpr size_t listed = 5;

/// "3 operators (a, b, c)"; with more than `listed` the first of them.
std::string list(ArrayRef<StringRef> names) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << names.size() << (names.size() == 1 ? " operator (" : " operators (");
  llvm::interleaveComma(names.take_front(listed), os);
  os << (names.size() > listed ? ", ...)" : ")");
  return text;
}

/// What namesOf counted on: "exp" for "exp#2", and "arg" for "arg2". Where
/// there are more or fewer of one base, the same number is another operator.
StringRef baseOf(StringRef name) {
  StringRef base = name.rtrim("0123456789");
  if (base.size() == name.size())
    return name;
  if (base == "arg")
    return base;
  return base.consume_back("#") ? base : name;
}

/// How many operators of one base the file and the program have.
struct Count {
  int64_t inFile = 0, inProgram = 0;
  bool differs() const { return inFile && inProgram && inFile != inProgram; }
};

struct LoadPlacement : public baechi::impl::LoadPlacementBase<LoadPlacement> {
  using LoadPlacementBase::LoadPlacementBase;

  FunctionOpInterface step;
  SmallVector<Operation *> operators;
  std::vector<placement::NamedDevice> placed;
  llvm::MapVector<StringRef, Count> counts;

  Location locationOf(int32_t id) {
    int32_t arguments = step.getNumArguments();
    return id < arguments ? step.getArgument(id).getLoc()
                          : operators[id - arguments]->getLoc();
  }

  LogicalResult readFile() {
    if (file.empty())
      return emitError(step.getLoc())
             << "needs file=, a placement file; --baechi-to-placement of "
                "baechi-translate writes one";
    std::string error = placement::readPlacementByName(file, placed);
    return error.empty() ? success() : emitError(step.getLoc()) << error;
  }

  /// A machine that lost a device is said here, with the file's name.
  LogicalResult checkDevices() {
    std::optional<placement::Machine> target =
        machineOf(getOperation(), machine);
    if (!target)
      return failure();
    llvm::StringMap<bool> known;
    for (const placement::Device &device : target->devices)
      known[device.name] = true;
    for (const placement::NamedDevice &each : placed)
      if (!known.contains(each.device))
        return emitError(step.getLoc())
               << file << " puts '" << each.name << "' on '" << each.device
               << "', which the machine does not have";
    return success();
  }

  LogicalResult pin(int32_t id, StringRef name, StringRef device) {
    auto attribute = StringAttr::get(&getContext(), device);
    StringAttr there = stringAttrOf(step, operators, id, BaechiDialect::kPin);
    if (there && there != attribute)
      return emitError(locationOf(id))
             << file << " puts '" << name << "' on '" << device
             << "', but it is pinned to '" << there.getValue()
             << "'; take one of the two away";
    int32_t arguments = step.getNumArguments();
    if (id < arguments)
      step.setArgAttr(id, BaechiDialect::kPin, attribute);
    else
      operators[id - arguments]->setAttr(BaechiDialect::kPin, attribute);
    return success();
  }

  /// Says what file and program do not have in common.
  LogicalResult report(ArrayRef<StringRef> gone, ArrayRef<StringRef> fresh) {
    auto differing = llvm::make_filter_range(
        counts, [](const auto &each) { return each.second.differs(); });
    if (gone.empty() && fresh.empty() && differing.empty())
      return success();
    InFlightDiagnostic message =
        strict ? emitError(step.getLoc()) : emitWarning(step.getLoc());
    StringRef left = strict ? "" : ", left to the placer";
    StringRef separator = "";
    message << file << " is of another version of the program: ";
    if (!gone.empty()) {
      message << "only the file has " << list(gone);
      separator = "; ";
    }
    if (!fresh.empty()) {
      message << separator << "only the program has " << list(fresh) << left;
      separator = "; ";
    }
    for (auto &[base, count] : differing) {
      message << separator << "the operators called '" << base
              << "' cannot be told apart, " << count.inFile
              << " in the file and " << count.inProgram << " in the program"
              << left;
      separator = "; ";
    }
    return failure(strict);
  }

  LogicalResult load() {
    if (failed(readFile()) || failed(checkDevices()))
      return failure();
    SmallVector<std::string> names = namesOf(step);
    counts.clear();
    for (StringRef name : names)
      ++counts[baseOf(name)].inProgram;
    llvm::StringMap<StringRef> deviceOf;
    for (const placement::NamedDevice &each : placed) {
      deviceOf[each.name] = each.device;
      ++counts[baseOf(each.name)].inFile;
    }
    SmallVector<StringRef> gone, fresh;
    llvm::StringMap<bool> inProgram;
    for (auto [id, name] : llvm::enumerate(names)) {
      inProgram[name] = true;
      if (counts[baseOf(name)].differs())
        continue;
      auto found = deviceOf.find(name);
      if (found == deviceOf.end())
        fresh.push_back(name);
      else if (failed(pin(id, name, found->second)))
        return failure();
    }
    for (const placement::NamedDevice &each : placed)
      if (!inProgram.contains(each.name) &&
          !counts[baseOf(each.name)].differs())
        gone.push_back(each.name);
    if (fresh.size() == names.size() && !names.empty())
      return emitError(step.getLoc())
             << file
             << " names no operator of the program; is it another "
                "model's, or are the names lost (keep locations between "
                "commands with --mlir-print-debuginfo)?";
    return report(gone, fresh);
  }

  void runOnOperation() override {
    FailureOr<FunctionOpInterface> found = findStep(getOperation());
    if (failed(found))
      return signalPassFailure();
    step = *found;
    operators = operatorsOf(step);
    if (failed(load()))
      signalPassFailure();
  }
};
} // namespace
