//===- Cuttables.cpp - What of a model can be cut by its name -------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Driver/Cuts/Cuttables.h"
#include "Baechi/Analysis/LeastMemory.h"
#include "Baechi/Analysis/Program.h"
#include "Baechi/Analysis/Stashing.h"
#include "Baechi/Placement/Model/Pool.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace baechi;

/// The name of what \p name is a piece of.
static StringRef withoutPiece(StringRef name) {
  size_t mark = name.rfind(".piece");
  bool isPiece =
      mark != StringRef::npos &&
      llvm::all_of(name.drop_front(mark + StringRef(".piece").size()),
                   llvm::isDigit);
  return isPiece ? name.take_front(mark) : name;
}

/// The name that \p name has in each step that has it, or pieces of it.
static std::string wholeOf(StringRef name) {
  // What tells several of one name apart is another number in each step.
  return withoutPiece(name.take_front(name.rfind('#'))).str();
}

std::string Neediest::nameOfWhole() const { return wholeOf(name); }

bool Neediest::isOf(const Neediest &other) const {
  return nameOfWhole() == other.nameOfWhole();
}

/// The names that a step's operator has in the model it was formed of.
static llvm::StringSet<> namesWithin(Operation *op) {
  llvm::StringSet<> names;
  auto add = [&](Operation *named) {
    names.insert(withoutPiece(nameOf(named)));
  };
  add(op);
  if (func::FuncOp kernel = kernelOf(op))
    kernel.walk(add);
  names.erase("");
  return names;
}

Cuttables::Cuttables(FunctionOpInterface step) {
  unsigned arguments = step.getNumArguments();
  SmallVector<std::string> names = namesOf(step);
  for (auto [number, op] : llvm::enumerate(operatorsOf(step))) {
    if (op->getNumResults() == 0 || isa<tensor::EmptyOp>(op) ||
        op->hasTrait<OpTrait::ConstantLike>())
      continue;
    auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
    if (type && type.hasStaticShape())
      all.push_back({nameOf(op), {names[arguments + number], type}});
  }
  llvm::stable_sort(all, [](const auto &a, const auto &b) {
    return tensorBytes(a.second.type, false) >
           tensorBytes(b.second.type, false);
  });
}

std::vector<Cuttable> Cuttables::of(Operation *op, size_t most,
                                    ArrayRef<std::string> rules) const {
  llvm::StringSet<> names = namesWithin(op), ruled;
  for (StringRef rule : rules)
    ruled.insert(rule.rsplit('=').first);
  std::vector<Cuttable> found;
  for (const auto &[name, cuttable] : all)
    if (found.size() < most && names.contains(name) &&
        !ruled.contains(cuttable.name))
      found.push_back(cuttable);
  return found;
}

std::vector<Cuttable> Cuttables::ofMakers(Operation *op,
                                          ArrayRef<std::string> rules) const {
  llvm::SetVector<Operation *> makers; // operands may be parts of one
  for (Value operand : op->getOperands())
    if (Operation *maker = rootOf(operand).getDefiningOp())
      makers.insert(maker);
  std::vector<Cuttable> found;
  // Makers may share a name, or be pieces of one operator.
  std::vector<std::string> taken(rules);
  for (Operation *maker : makers)
    for (Cuttable &each : of(maker, 1, taken)) {
      taken.push_back(each.name + "=");
      found.push_back(std::move(each));
    }
  return found;
}

std::vector<std::string> baechi::rulesFor(ArrayRef<Cuttable> cut, size_t dim,
                                          int64_t pieces) {
  std::vector<std::string> rules;
  for (const Cuttable &each : cut)
    if (static_cast<int64_t>(dim) < each.type.getRank() &&
        each.type.getDimSize(dim) >= pieces)
      rules.push_back(llvm::formatv("{0}={1}:{2}", each.name, dim, pieces));
  return rules;
}

std::optional<Neediest> baechi::neediestOf(ModuleOp formed,
                                           const placement::Machine &target) {
  FailureOr<StepGraph> graph = buildStepGraph(formed);
  if (failed(graph) || graph->graph.ops.empty())
    return std::nullopt;
  const placement::Device *largest = nullptr;
  for (const placement::Device &device : target.devices)
    if (!placement::isPool(device) &&
        (!largest || device.memory > largest->memory))
      largest = &device;
  if (!largest)
    return std::nullopt;
  std::vector<int64_t> needs;
  if (target.devices.size() == 1) {
    needs = leastMemoryByOperator(*graph);
  } else {
    placement::SpillOptions options;
    options.kind = largest->kind;
    findMovable(*graph, options);
    needs = placement::spillNeeds(graph->graph, options);
  }
  placement::MemoryFloor floor = placement::floorOf(needs);
  Neediest neediest{graph->operation(floor.op),
                    graph->graph.ops[floor.op].name,
                    floor.bytes,
                    /*lacking=*/0,
                    largest->name,
                    largest->memory,
                    /*tooLarge=*/{}};
  for (auto [need, op] : llvm::zip(needs, graph->graph.ops))
    if (need > largest->memory) {
      neediest.lacking += need - largest->memory;
      int64_t &most = neediest.tooLarge[wholeOf(op.name)];
      most = std::max(most, need);
    }
  return neediest;
}
