//===- LoweredKernels.cpp - Kernels' host code, each made once ------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Conversion/Kernels/Host/LoweredKernels.h"
#include "Baechi/Analysis/KernelHash.h"
#include "Baechi/Conversion/Kernels/Host/HostKernels.h"
#include "Baechi/Dialect/Baechi.h"
#include "Common/KernelCopies.h"
#include "Common/Lowering.h"
#include "Steps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace baechi;

namespace {
constexpr StringLiteral kTarget = "host code";

std::string keyOf(StringRef hash, StringRef implementation) {
  return (hash + " " + implementation).str();
}

/// The symbols beside `functions` that they refer to, transitively.
llvm::SetVector<Operation *> referencesOf(ArrayRef<Operation *> functions,
                                          const SymbolTable &names) {
  llvm::SetVector<Operation *> needed;
  SmallVector<Operation *> worklist(functions);
  while (!worklist.empty()) {
    auto uses = SymbolTable::getSymbolUses(worklist.pop_back_val());
    if (!uses)
      continue;
    for (SymbolTable::SymbolUse use : *uses)
      if (Operation *symbol =
              names.lookup(use.getSymbolRef().getRootReference()))
        if (needed.insert(symbol))
          worklist.push_back(symbol);
  }
  return needed;
}

bool isDeclaration(Operation *symbol) {
  auto function = dyn_cast<FunctionOpInterface>(symbol);
  return function && function.isExternal();
}

/// The functions with a body, by name.
llvm::StringMap<Operation *>
functionsIn(MutableArrayRef<OwningOpRef<ModuleOp>> modules) {
  llvm::StringMap<Operation *> functions;
  for (OwningOpRef<ModuleOp> &module : modules)
    for (auto function : module->getOps<FunctionOpInterface>())
      if (!function.isExternal())
        functions[function.getName()] = function;
  return functions;
}

/// The names of what a kernel's code is to say of the kernel. The scratch is
/// the code's own.
SmallVector<StringAttr> attributesOf(func::FuncOp kernel) {
  SmallVector<StringAttr> names;
  for (NamedAttribute attr : kernel->getDiscardableAttrs())
    if (attr.getName() != BaechiDialect::kKernelScratch)
      names.push_back(attr.getName());
  return names;
}

/// Replaces the attributes `former` of `code`, those of the kernel that was
/// lowered, by those of `kernel`, which has the same text.
void takeAttributes(Operation *code, ArrayRef<StringAttr> former,
                    func::FuncOp kernel) {
  for (StringAttr name : former)
    code->removeDiscardableAttr(name);
  for (StringAttr name : attributesOf(kernel))
    code->setDiscardableAttr(name, kernel->getDiscardableAttr(name));
}

/// Makes `symbols`, copies from another module, refer to each other by the
/// names that they have here.
void renameReferences(ArrayRef<Operation *> symbols,
                      const llvm::DenseMap<StringAttr, StringAttr> &names) {
  if (names.empty())
    return;
  AttrTypeReplacer replacer;
  replacer.addReplacement([&](FlatSymbolRefAttr name) {
    auto renamed = names.find(name.getAttr());
    return renamed == names.end() ? name
                                  : FlatSymbolRefAttr::get(renamed->second);
  });
  for (Operation *symbol : symbols)
    replacer.recursivelyReplaceElementsIn(symbol);
}
} // namespace

void LoweredKernels::find(Kernels kernels) {
  found.clear();
  for (func::FuncOp kernel : kernels)
    found[kernel] =
        &entries[keyOf(kernelHash(kernel), askedImplementation(kernel))];
}

SmallVector<func::FuncOp>
LoweredKernels::firstOf(Kernels kernels,
                        function_ref<bool(const Entry &)> isAsked) {
  llvm::SmallPtrSet<Entry *, 16> seen;
  SmallVector<func::FuncOp> first;
  for (func::FuncOp kernel : kernels)
    if (Entry &entry = entryOf(kernel);
        isAsked(entry) && seen.insert(&entry).second)
      first.push_back(kernel);
  return first;
}

OwningOpRef<ModuleOp> LoweredKernels::copyCode(Kernels kernels,
                                               Location location) {
  llvm::DenseMap<Operation *, SmallVector<func::FuncOp, 1>> wanted;
  llvm::DenseMap<Operation *, SmallVector<Operation *>> functions;
  for (func::FuncOp kernel : kernels) {
    Operation *function = entryOf(kernel).function;
    auto &users = wanted[function];
    if (users.empty())
      functions[function->getParentOp()].push_back(function);
    users.push_back(kernel);
  }

  OwningOpRef<ModuleOp> to = ModuleOp::create(location);
  SymbolTable names(*to);
  for (OwningOpRef<ModuleOp> &from : code) {
    auto roots = functions.find(*from);
    if (roots == functions.end())
      continue;
    llvm::SetVector<Operation *> needed =
        referencesOf(roots->second, SymbolTable(*from));
    SmallVector<Operation *> copies;
    llvm::DenseMap<StringAttr, StringAttr> renamed;
    for (Operation &symbol : *from->getBody()) {
      if (auto users = wanted.find(&symbol); users != wanted.end()) {
        for (func::FuncOp kernel : users->second) {
          Operation *copy = copies.emplace_back(symbol.clone());
          SymbolTable::setSymbolName(copy, hostSymbol(kernel.getSymName()));
          if (auto &former = entryOf(kernel).attributes)
            takeAttributes(copy, *former, kernel);
          names.insert(copy);
        }
        continue;
      }
      StringAttr name = SymbolTable::getSymbolName(&symbol);
      if (!needed.contains(&symbol) ||
          (isDeclaration(&symbol) && names.lookup(name)))
        continue;
      Operation *copy = copies.emplace_back(symbol.clone());
      if (StringAttr now = names.insert(copy); now != name)
        renamed[name] = now;
    }
    renameReferences(copies, renamed);
  }
  // Whatever they were lowered with.
  for (func::FuncOp kernel : kernels)
    names.lookup(hostSymbol(kernel.getSymName()))
        ->moveBefore(to->getBody(), to->getBody()->end());
  return to;
}

LogicalResult LoweredKernels::bufferize(Kernels kernels, Location location) {
  if (kernels.empty())
    return success();
  auto lowered = runOnGroups(kernels, location, kTarget, lowerToPointers);
  if (failed(lowered))
    return failure();
  numBufferized += kernels.size();
  llvm::StringMap<Operation *> made = functionsIn(*lowered);
  for (func::FuncOp kernel : kernels) {
    Entry &entry = entryOf(kernel);
    auto function =
        cast<func::FuncOp>(made.at(hostSymbol(kernel.getSymName())));
    entry.function = function;
    entry.scratch =
        function->getAttrOfType<IntegerAttr>(BaechiDialect::kKernelScratch)
            .getInt();
    // Products are functions of pointers by now, made anew.
    if (llvm::none_of(function.getArgumentTypes(),
                      llvm::IsaPred<LLVM::LLVMPointerType>))
      entry.attributes = attributesOf(kernel);
  }
  llvm::move(*lowered, std::back_inserter(code));
  return success();
}

LogicalResult LoweredKernels::finish(Kernels kernels, Location location) {
  if (kernels.empty())
    return success();
  auto copy = [&](Kernels kernels, Location location) {
    return copyCode(kernels, location);
  };
  auto finished = runOnGroups(kernels, location, kTarget, lowerToLLVM, copy);
  if (failed(finished))
    return failure();
  numFinished += kernels.size();
  llvm::StringMap<Operation *> made = functionsIn(*finished);
  for (func::FuncOp kernel : kernels) {
    Entry &entry = entryOf(kernel);
    entry.function->erase();
    entry.function = made.at(hostSymbol(kernel.getSymName()));
    entry.isFinished = true;
  }
  llvm::move(*finished, std::back_inserter(code));
  return success();
}

void LoweredKernels::noteScratch(StringRef hash, StringRef implementation,
                                 int64_t bytes) {
  std::lock_guard<std::mutex> lock(turn);
  entries[keyOf(hash, implementation)].scratch = bytes;
}

LogicalResult LoweredKernels::annotateScratch(ModuleOp module) {
  std::lock_guard<std::mutex> lock(turn);
  loadHostDialects(module.getContext());
  SmallVector<func::FuncOp> kernels = kernelsOf(module);
  find(kernels);
  if (failed(bufferize(
          firstOf(kernels, [](const Entry &entry) { return !entry.scratch; }),
          module.getLoc())))
    return failure();
  Builder builder(module.getContext());
  for (func::FuncOp kernel : kernels)
    kernel->setAttr(BaechiDialect::kKernelScratch,
                    builder.getI64IntegerAttr(*entryOf(kernel).scratch));
  return success();
}

LogicalResult LoweredKernels::lower(ModuleOp module) {
  std::lock_guard<std::mutex> lock(turn);
  loadHostDialects(module.getContext());
  SmallVector<func::FuncOp> kernels = kernelsOf(module);
  find(kernels);
  auto hasNoCode = [](const Entry &entry) { return !entry.function; };
  auto isUnfinished = [](const Entry &entry) { return !entry.isFinished; };
  if (failed(bufferize(firstOf(kernels, hasNoCode), module.getLoc())) ||
      failed(finish(firstOf(kernels, isUnfinished), module.getLoc())))
    return failure();
  for (func::FuncOp kernel : kernels)
    if (failed(checkPlannedScratch(kernel, *entryOf(kernel).scratch,
                                   "baechi-kernel-scratch")))
      return failure();
  OwningOpRef<ModuleOp> lowered = copyCode(kernels, module.getLoc());
  for (func::FuncOp kernel : kernels)
    kernel.erase();
  return moveSymbols(*lowered, module, kTarget);
}

void LoweredKernels::clear() {
  std::lock_guard<std::mutex> lock(turn);
  entries.clear();
  found.clear();
  code.clear();
}
