//===- Program.cpp - A step as operators and tensors -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/Program.h"
#include "Baechi/Analysis/Slices.h"
#include "Baechi/Dialect/Carried.h"
#include "Baechi/Interfaces/OperatorInterfaces.h"
#include "mlir/Dialect/LLVMIR/LLVMAttrs.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace baechi;

namespace {
/// The step must be one block that ends with what the function returns.
LogicalResult checkForm(FunctionOpInterface step) {
  if (!llvm::hasSingleElement(step.getFunctionBody()))
    return emitError(step.getLoc())
           << "the step has several blocks; unstructured "
              "control flow cannot be placed";
  Block &block = step.getFunctionBody().front();
  Operation *last = block.empty() ? nullptr : &block.back();
  bool returns = last && last->hasTrait<OpTrait::ReturnLike>();
  // An llvm.func of no result has the result type void.
  if (returns && last->getNumOperands() == 0) {
    for (unsigned index = 0; index < step.getNumArguments(); ++index)
      returns &= !step.getArgAttr(index, BaechiDialect::kUpdatedBy);
  } else if (returns) {
    returns = last->getNumOperands() == step.getNumResults();
  }
  if (returns)
    return success();
  return emitError(last ? last->getLoc() : step.getLoc())
         << "the step must end by returning its results";
}
} // namespace

namespace {
/// The public functions that could be the step.
SmallVector<FunctionOpInterface> findCandidates(ModuleOp module) {
  SmallVector<FunctionOpInterface> found, others;
  for (auto function : module.getOps<FunctionOpInterface>())
    if (!function.isExternal() && function.isPublic() &&
        !function->hasAttr(BaechiDialect::kKernel))
      (isa<func::FuncOp>(function) ? found : others).push_back(function);
  // Beside a func.func, functions of other dialects are its helpers.
  return found.empty() ? others : found;
}
} // namespace

LogicalResult baechi::checkNotPartitioned(ModuleOp module) {
  for (auto inner : module.getOps<ModuleOp>())
    if (auto device = inner->getAttrOfType<StringAttr>(BaechiDialect::kDevice))
      return emitError(module.getLoc())
             << "the module is already partitioned: it holds a program for "
                "device '"
             << device.getValue() << "'; give the one that was partitioned";
  return success();
}

LogicalResult baechi::chooseStep(ModuleOp module, StringRef name) {
  SmallVector<FunctionOpInterface> found = findCandidates(module);
  if (llvm::none_of(found, [&](FunctionOpInterface function) {
        return function.getName() == name;
      })) {
    InFlightDiagnostic diag = emitError(module.getLoc())
                              << "the module has no public function @" << name
                              << " to run; it has";
    for (FunctionOpInterface function : found)
      diag << " @" << function.getName();
    return found.empty() ? diag << " none" : diag;
  }
  for (FunctionOpInterface function : found)
    if (function.getName() != name)
      function.setPrivate();
  return success();
}

FailureOr<FunctionOpInterface> baechi::findStep(ModuleOp module) {
  SmallVector<FunctionOpInterface> found = findCandidates(module);
  if (found.size() == 1) {
    if (failed(checkForm(found[0])))
      return failure();
    return found[0];
  }
  if (failed(checkNotPartitioned(module)))
    return failure();
  InFlightDiagnostic diag = emitError(module.getLoc())
                            << "a program needs one public function, its "
                               "step; this module has ";
  if (found.empty())
    return diag << "none", failure();
  diag << found.size() << ":";
  for (FunctionOpInterface function : found)
    diag << " @" << function.getName();
  diag << "; make all but one private, or choose it (baechi-run "
          "--step=NAME)";
  return failure();
}

PlacementCertificateAttr baechi::findCertificate(ModuleOp module) {
  for (auto function : module.getOps<FunctionOpInterface>())
    if (auto certificate = function->getAttrOfType<PlacementCertificateAttr>(
            BaechiDialect::kCertificate))
      return certificate;
  return {};
}

FailureOr<func::FuncOp> baechi::findFuncStep(ModuleOp module) {
  FailureOr<FunctionOpInterface> step = findStep(module);
  if (failed(step))
    return failure();
  if (auto function = dyn_cast<func::FuncOp>(step->getOperation()))
    return function;
  return emitError(step->getLoc())
         << "the step is a '" << (*step)->getName().getStringRef()
         << "', this takes a 'func.func' only";
}

bool baechi::isView(Operation *op) {
  if (isa_and_nonnull<tensor::ExpandShapeOp, tensor::CollapseShapeOp,
                      tensor::CastOp>(op))
    return true;
  if (op && op->hasAttr(BaechiDialect::kView))
    return sliceOffset(op).has_value();
  auto stated = dyn_cast_or_null<BufferOpInterface>(op);
  return stated && stated.isView();
}

void baechi::removeAttribute(Operation *op, StringRef name) {
  auto properties =
      op->isRegistered()
          ? DictionaryAttr()
          : dyn_cast_or_null<DictionaryAttr>(op->getPropertiesAsAttribute());
  if (!properties || !properties.contains(name)) {
    op->removeAttr(name);
    return;
  }
  NamedAttrList rest(properties);
  rest.erase(name);
  (void)op->setPropertiesFromAttribute(rest.getDictionary(op->getContext()),
                                       [&] { return op->emitOpError(); });
}

int64_t baechi::offsetInRoot(Value value) {
  int64_t offset = 0;
  for (Operation *op = value.getDefiningOp(); op && isView(op);
       op = op->getOperand(0).getDefiningOp())
    offset += sliceOffset(op).value_or(0);
  return offset;
}

Value baechi::rootOf(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (isView(op))
      value = op->getOperand(0);
    else if (auto await = dyn_cast<AwaitOp>(op))
      value = await.getSource();
    else
      break;
  }
  return value;
}

std::optional<int64_t> baechi::tensorBytes(Type type, bool aligned) {
  constexpr int64_t most = int64_t(1) << 48;
  if (auto future = dyn_cast<FutureType>(type))
    type = future.getValueType();
  ArrayRef<int64_t> shape;
  Type element = type;
  if (auto tensor = dyn_cast<RankedTensorType>(type)) {
    shape = tensor.getShape();
    element = tensor.getElementType();
  }
  if (auto vector = dyn_cast<VectorType>(element)) {
    if (vector.isScalable() || !shape.empty())
      return std::nullopt;
    shape = vector.getShape();
    element = vector.getElementType();
  }
  int64_t parts = 1;
  if (auto complex = dyn_cast<ComplexType>(element)) {
    parts = 2;
    element = complex.getElementType();
  }
  if (!element.isIntOrIndexOrFloat() || ShapedType::isDynamicShape(shape))
    return std::nullopt;
  int64_t width = element.isIndex() ? 64 : element.getIntOrFloatBitWidth();
  int64_t bytes = parts * llvm::divideCeil(width, 8);
  for (int64_t size : shape)
    if (llvm::MulOverflow(bytes, size, bytes))
      return std::nullopt;
  if (bytes > most)
    return std::nullopt;
  return aligned ? llvm::alignTo(bytes, kAlignment) : bytes;
}

/// What --baechi-partition and --baechi-plan-memory add.
static bool isOfExchange(Operation *op) {
  return isa<SendOp, RecvOp, AwaitOp, AwaitCarriedOp, GiveBackOp, CopyOp>(op);
}

SmallVector<Operation *> baechi::operatorsOf(FunctionOpInterface step) {
  SmallVector<Operation *> operators;
  for (Operation &op : step.getFunctionBody().front())
    if (!op.hasTrait<OpTrait::IsTerminator>() && !isView(&op) &&
        !matchPattern(&op, m_Constant()) && !isOfExchange(&op))
      operators.push_back(&op);
  return operators;
}

bool baechi::isAtEndForLoan(AwaitOp await) {
  auto send = await.getSource().getDefiningOp<SendOp>();
  if (!send || !send.getLent())
    return false;
  for (Operation *op = await->getNextNode(); op; op = op->getNextNode())
    if (!isa<AwaitOp>(op) && !op->hasTrait<OpTrait::IsTerminator>())
      return false;
  return true;
}

SmallVector<Value> baechi::valuesReadBy(Operation *op) {
  SmallVector<Value> values(op->getOperands());
  for (Region &region : op->getRegions())
    region.walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        if (operand.getParentBlock() == op->getBlock())
          values.push_back(operand);
    });
  return values;
}

LogicalResult baechi::checkPlaceable(FunctionOpInterface step) {
  constexpr const char *mend =
      "; what can be placed are tensors and vectors of static shape and "
      "scalars, each smaller than 2^48 bytes";
  for (BlockArgument argument : step.getArguments())
    if (!tensorBytes(argument.getType(), true))
      return emitError(argument.getLoc())
             << "argument " << argument.getArgNumber()
             << " of the step has type " << argument.getType() << mend;
  for (Operation &op : step.getFunctionBody().front())
    if (isOfExchange(&op))
      return op.emitOpError() << "belongs to a partitioned program; place the "
                                 "program that was partitioned";
  for (Operation *op : operatorsOf(step))
    for (Type type : op->getResultTypes())
      if (!tensorBytes(type, true))
        return op->emitOpError() << "has a result of type " << type << mend;
  for (auto [index, value] : llvm::enumerate(
           step.getFunctionBody().front().getTerminator()->getOperands()))
    if (!tensorBytes(rootOf(value).getType(), true))
      return emitError(value.getLoc())
             << "result " << index << " of the step has type "
             << value.getType() << mend;
  return success();
}

namespace {
/// Finds operators with effects; each called function is looked at once.
class EffectFinder {
public:
  /// Whether \p op, or what stands inside of it, has an effect that is seen
  /// outside of \p scope.
  bool hasEffect(Operation *op, Operation *scope) {
    bool recursive = op->hasTrait<OpTrait::HasRecursiveMemoryEffects>();
    if (auto stated = dyn_cast<MemoryEffectOpInterface>(op)) {
      SmallVector<MemoryEffects::EffectInstance> effects;
      stated.getEffects(effects);
      if (llvm::any_of(effects, [&](const MemoryEffects::EffectInstance &it) {
            return !isa<MemoryEffects::Allocate>(it.getEffect()) &&
                   !isOwn(it.getValue(), scope);
          }))
        return true;
    } else if (auto call = dyn_cast<CallOpInterface>(op)) {
      return callHasEffect(call);
    } else if ((!op->isRegistered() && saysSideEffect(op)) ||
               (!recursive && op->getNumResults() == 0 &&
                !op->hasTrait<OpTrait::IsTerminator>() &&
                (op->isRegistered() || !isLastOfRegion(op, scope)))) {
      return true;
    }
    for (Region &region : op->getRegions())
      for (Operation &inner : region.getOps())
        if (hasEffect(&inner, scope))
          return true;
    return false;
  }

private:
  /// Memory that \p scope itself has made.
  static bool isOwn(Value value, Operation *scope) {
    if (!value)
      return false;
    Operation *made = value.getDefiningOp();
    return made && scope->isProperAncestor(made);
  }

  /// What ends a region of an unregistered operation is taken as a yield.
  static bool isLastOfRegion(Operation *op, Operation *scope) {
    return op != scope && op == &op->getBlock()->back();
  }

  /// StableHLO's mark of a custom call that does more than its result tells.
  static bool saysSideEffect(Operation *op) {
    auto mark = dyn_cast_or_null<BoolAttr>(op->getAttr("has_side_effect"));
    return mark && mark.getValue();
  }

  /// A call or a function that says that it reads and writes no memory.
  static bool saysNoMemory(Operation *op) {
    auto effects = op->getAttrOfType<LLVM::MemoryEffectsAttr>("memory_effects");
    auto none = LLVM::ModRefInfo::NoModRef;
    return effects && effects.getOther() == none &&
           effects.getArgMem() == none &&
           effects.getInaccessibleMem() == none &&
           effects.getErrnoMem() == none && effects.getTargetMem0() == none &&
           effects.getTargetMem1() == none;
  }

  /// A host call that prints, or does whatever else is seen.
  static bool saysOrdered(Operation *op) {
    auto call = op->getAttrOfType<DictionaryAttr>(BaechiDialect::kHostCall);
    return call && call.getAs<StringAttr>("effects") == "ordered";
  }

  bool callHasEffect(CallOpInterface call) {
    if (saysNoMemory(call))
      return false;
    auto symbol = dyn_cast<SymbolRefAttr>(call.getCallableForCallee());
    if (!symbol)
      return true;
    auto callee = dyn_cast_or_null<FunctionOpInterface>(call.resolveCallable());
    if (callee && saysOrdered(callee))
      return true;
    if (callee &&
        (callee->hasAttr(BaechiDialect::kKernel) || saysNoMemory(callee)))
      return false;
    // What is defined elsewhere may do anything.
    if (!callee || callee.isExternal())
      return true;
    auto [known, isNew] = called.try_emplace(symbol, false);
    if (!isNew)
      return known->second || call->getNumResults() == 0;
    bool effect = call->getNumResults() == 0;
    for (Operation &inner : callee.getFunctionBody().getOps())
      effect |=
          !inner.hasTrait<OpTrait::IsTerminator>() && hasEffect(&inner, callee);
    called[symbol] = effect;
    return effect;
  }

  llvm::DenseMap<SymbolRefAttr, bool> called;
};
} // namespace

SmallVector<Operation *>
baechi::operatorsWithEffects(FunctionOpInterface step) {
  EffectFinder finder;
  return llvm::filter_to_vector(operatorsOf(step), [&](Operation *op) {
    return finder.hasEffect(op, op);
  });
}

std::string baechi::nameOf(Operation *op) {
  if (auto given = op->getAttrOfType<StringAttr>(BaechiDialect::kName))
    return given.str();
  std::string name;
  op->getLoc()->walk([&](Location inner) {
    auto named = dyn_cast<NameLoc>(inner);
    if (!named)
      return WalkResult::advance();
    name = named.getName().str();
    return WalkResult::interrupt();
  });
  return name;
}

SmallVector<std::string> baechi::namesOf(FunctionOpInterface step) {
  SmallVector<std::string> names;
  llvm::StringMap<int64_t> used;
  auto add = [&](const std::string &name) {
    // "name", "name#1", "name#2": a taken name counts on.
    std::string unique = name;
    while (!used.try_emplace(unique, 0).second)
      unique = name + "#" + std::to_string(++used[name]);
    names.push_back(std::move(unique));
  };
  for (BlockArgument argument : step.getArguments()) {
    auto name = step.getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                                  BaechiDialect::kName);
    add(name ? name.str() : "arg" + std::to_string(argument.getArgNumber()));
  }
  SymbolTableCollection symbols;
  for (Operation *op : operatorsOf(step)) {
    std::string text = nameOf(op);
    if (text.empty()) {
      func::FuncOp kernel = kernelOf(op, symbols);
      text =
          kernel ? kernel.getName().str() : op->getName().getStringRef().str();
    }
    add(text);
  }
  return names;
}

func::FuncOp baechi::kernelOf(Operation *op) {
  SymbolTableCollection symbols;
  return kernelOf(op, symbols);
}

func::FuncOp baechi::kernelOf(Operation *op, SymbolTableCollection &symbols) {
  auto call = dyn_cast<func::CallOp>(op);
  if (!call)
    return {};
  for (Operation *scope = op->getParentOp(); scope;
       scope = scope->getParentOp()) {
    if (!scope->hasTrait<OpTrait::SymbolTable>())
      continue;
    auto kernel = symbols.lookupSymbolIn<func::FuncOp>(
        scope, call.getCalleeAttr().getAttr());
    if (kernel && kernel->hasAttr(BaechiDialect::kKernel))
      return kernel;
  }
  return {};
}

bool baechi::isHostCall(func::FuncOp kernel) {
  return kernel && kernel->hasAttr(BaechiDialect::kHostCall);
}
