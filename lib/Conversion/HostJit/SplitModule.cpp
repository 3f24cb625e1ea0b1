//===- SplitModule.cpp - Parts of a module to compile in parallel -===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Internal.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/SymbolTable.h"

using namespace mlir;
using namespace baechi;

namespace {
bool isLocal(LLVM::GlobalOp global) {
  return global.getLinkage() == LLVM::Linkage::Private ||
         global.getLinkage() == LLVM::Linkage::Internal;
}

/// Copies `symbol` as another part sees it: the declaration, or the whole of a
/// constant that has no other name outside.
void cloneReferenced(Operation *symbol, OpBuilder &builder) {
  if (auto function = dyn_cast<LLVM::LLVMFuncOp>(symbol)) {
    builder.cloneWithoutRegions(*function);
    return;
  }
  auto copy = dyn_cast<LLVM::GlobalOp>(builder.clone(*symbol));
  if (!copy || isLocal(copy))
    return;
  copy.removeValueAttr();
  copy.getInitializerRegion().getBlocks().clear();
  copy.setLinkage(LLVM::Linkage::External);
}

/// Adds to `part` what its functions refer to and lacks, transitively.
void completeReferences(ModuleOp part, const SymbolTable &all) {
  OpBuilder builder = OpBuilder::atBlockEnd(part.getBody());
  llvm::DenseSet<StringAttr> present;
  SmallVector<Operation *> worklist;
  for (Operation &op : *part.getBody()) {
    present.insert(SymbolTable::getSymbolName(&op));
    worklist.push_back(&op);
  }
  while (!worklist.empty()) {
    auto uses = SymbolTable::getSymbolUses(worklist.pop_back_val());
    if (!uses)
      continue;
    for (SymbolTable::SymbolUse use : *uses) {
      StringAttr name = use.getSymbolRef().getRootReference();
      Operation *symbol = all.lookup(name);
      if (!symbol || !present.insert(name).second)
        continue;
      cloneReferenced(symbol, builder);
      worklist.push_back(&part.getBody()->back());
    }
  }
}
} // namespace

SmallVector<OwningOpRef<ModuleOp>> baechi::splitModule(ModuleOp module,
                                                       unsigned parts) {
  struct Sized {
    int64_t size;
    unsigned position;
    LLVM::LLVMFuncOp function;
  };
  SmallVector<Sized> functions;
  SmallVector<Operation *> variables;
  for (Operation &op : *module.getBody()) {
    auto function = dyn_cast<LLVM::LLVMFuncOp>(op);
    if (function && !function.isExternal()) {
      int64_t size = 0;
      function.walk([&](Operation *) { ++size; });
      functions.push_back({size, unsigned(functions.size()), function});
    }
    if (auto global = dyn_cast<LLVM::GlobalOp>(op)) {
      if (!isLocal(global))
        variables.push_back(&op);
      else if (!global.getConstant())
        parts = 1; // It exists once.
    }
  }
  parts = std::clamp<unsigned>(functions.size(), 1, std::max(parts, 1u));

  // Longest first, each to the part that has least.
  llvm::sort(functions, [](const Sized &a, const Sized &b) {
    return std::tie(b.size, a.position) < std::tie(a.size, b.position);
  });
  SmallVector<OwningOpRef<ModuleOp>> result;
  for (unsigned part = 0; part < parts; ++part) {
    result.push_back(ModuleOp::create(module.getLoc()));
    (*result.back())->setAttrs(module->getDiscardableAttrDictionary());
  }
  SmallVector<int64_t> load(parts, 0);
  for (auto [size, position, function] : functions) {
    unsigned least = std::distance(load.begin(), llvm::min_element(load));
    load[least] += size;
    OpBuilder::atBlockEnd(result[least]->getBody()).clone(*function);
  }
  for (Operation *variable : variables)
    OpBuilder::atBlockEnd(result[0]->getBody()).clone(*variable);
  SymbolTable all(module);
  for (auto &part : result)
    completeReferences(*part, all);
  return result;
}
