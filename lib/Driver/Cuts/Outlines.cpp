//===- Outlines.cpp - What cuts of a step need, without its code ----------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Driver/Cuts/Outlines.h"
#include "Baechi/Analysis/Program.h"
#include "Baechi/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SHA256.h"

using namespace mlir;
using namespace baechi;

namespace {
/// Numbers the values of a module and feeds all that is in it to a hash. Types,
/// attributes and locations are unique in their context.
class Digest {
public:
  void add(Operation *op) {
    addWord(op->getName().getAsOpaquePointer());
    addWord(op->getLoc().getAsOpaquePointer());
    addWord(op->getAttrDictionary().getAsOpaquePointer());
    addNumber(op->getNumOperands());
    for (Value operand : op->getOperands())
      addNumber(numbers.lookup(operand));
    addNumber(op->getNumResults());
    for (Value result : op->getResults())
      addMade(result);
    addNumber(op->getNumSuccessors());
    addNumber(op->getNumRegions());
    for (Region &region : op->getRegions()) {
      addNumber(region.getBlocks().size());
      for (Block &block : region) {
        addNumber(block.getNumArguments());
        for (Value argument : block.getArguments())
          addMade(argument);
        addNumber(block.getOperations().size());
        for (Operation &inner : block)
          add(&inner);
      }
    }
  }

  std::string text() { return llvm::toHex(hash.result()); }

private:
  void addMade(Value value) {
    numbers[value] = numbers.size() + 1;
    addWord(value.getType().getAsOpaquePointer());
  }
  void addNumber(uint64_t number) {
    hash.update(
        ArrayRef(reinterpret_cast<const uint8_t *>(&number), sizeof(number)));
  }
  void addWord(const void *pointer) {
    addNumber(reinterpret_cast<uintptr_t>(pointer));
  }

  llvm::SHA256 hash;
  llvm::DenseMap<Value, uint64_t> numbers;
};
} // namespace

std::string baechi::digestOf(ModuleOp module) {
  Digest digest;
  digest.add(module);
  return digest.text();
}

static OwningOpRef<ModuleOp> inlineStep(ModuleOp model) {
  OwningOpRef<ModuleOp> inlined = model.clone();
  PassManager passes(inlined->getContext());
  passes.addPass(createInlineStep());
  return succeeded(passes.run(*inlined)) ? std::move(inlined) : nullptr;
}

std::optional<Neediest> Outlines::neediest(const SplitChoice &choice) {
  if (!inlined && !(inlined = inlineStep(forms.model())))
    return std::nullopt;
  OwningOpRef<ModuleOp> trial = forms.cut(*inlined, choice);
  if (!trial)
    return std::nullopt;
  auto [found, isNew] = known.try_emplace(digestOf(*trial));
  if (!isNew)
    return found->second;
  if (succeeded(forms.outlineKernels(*trial)))
    found->second = neediestOf(*trial, forms.machine());
  if (FailureOr<FunctionOpInterface> step = findStep(*trial); succeeded(step))
    operators += operatorsOf(*step).size();
  if (found->second)
    found->second->op = nullptr;
  return found->second;
}
