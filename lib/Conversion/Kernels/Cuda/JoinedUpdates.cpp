//===- JoinedUpdates.cpp - Small updates as one launch --------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An optimizer updates each parameter by itself, most of them in less time than
// a launch takes. Where one GPU does them all, neighbours in the step become
// one kernel, which is one launch: PyTorch's optimizers call the same a
// multi-tensor apply.
//
// What is joined is computed when the last of its gradients is there. So the
// others wait in memory, of which no more is taken than kShareHeld of the
// step's arguments.
//
//===----------------------------------------------------------------------===//

#include "Baechi/Dialect/CudaBlocks.h"
#include "LaunchCode.h"
#include "Products.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace baechi;

namespace {
/// Of one tensor: what takes longer than a launch is worth one.
constexpr int64_t kMostElements = int64_t(1) << 18;
/// A launch has 4 KiB for its parameters; the emulation takes fewer.
constexpr size_t kMostPointers = 120;
/// What waits for the last of a launch's gradients, in bytes.
constexpr int64_t kMostHeld = int64_t(4) << 20, kLeastHeld = 64 << 10;
constexpr int64_t kShareHeld = 16;

class Joiner {
public:
  explicit Joiner(ModuleOp module) : module(module), symbols(module) {}
  void run();

private:
  /// The kernel of a call that may be joined with others.
  func::FuncOp updateOf(func::CallOp call);
  void joinIn(func::FuncOp step);
  bool fits(func::CallOp call);
  void add(func::CallOp call);
  void close();
  func::FuncOp kernelFor(ArrayRef<SmallVector<unsigned>> operands,
                         ArrayRef<Value> values);
  ArrayRef<int64_t> aliasesOf(func::FuncOp kernel, unsigned result);

  ModuleOp module;
  SymbolTable symbols;
  int64_t mostHeld = 0;
  /// The launch at work: its calls, the tensors that they take, those of them
  /// that may be overwritten, the pointers and the bytes that wait.
  SmallVector<func::CallOp> calls;
  llvm::DenseSet<Value> taken, overwritten;
  size_t pointers = 0;
  int64_t held = 0;
  /// Joined kernels, by those that they are of and where operands of these are
  /// among theirs.
  struct Joined {
    SmallVector<func::FuncOp> parts;
    SmallVector<SmallVector<unsigned>> operands;
    func::FuncOp kernel;
  };
  SmallVector<Joined> joined;
};
} // namespace

/// Whether the kernel is one elementwise operation that fills new tensors.
static bool isElementwise(func::FuncOp kernel) {
  linalg::GenericOp only;
  for (Operation &op : kernel.front().without_terminator()) {
    if (auto work = dyn_cast<linalg::GenericOp>(op)) {
      if (only)
        return false;
      only = work;
    } else if (!isa<arith::ConstantOp, tensor::EmptyOp, tensor::ExpandShapeOp,
                    tensor::CollapseShapeOp>(op)) {
      return false;
    }
  }
  return only && only.getNumReductionLoops() == 0 &&
         llvm::all_of(only.getDpsInitsMutable(), [&](OpOperand &init) {
           return init.get().getDefiningOp<tensor::EmptyOp>() &&
                  only.getMatchingBlockArgument(&init).use_empty();
         });
}

/// Attributes that say no more than that it is a kernel, and of results which
/// arguments they may lie in.
static bool isPlain(func::FuncOp kernel) {
  bool plain = llvm::all_of(kernel->getDiscardableAttrs(), [](auto attr) {
    return attr.getName() == BaechiDialect::kKernel;
  });
  for (unsigned argument : llvm::seq(kernel.getNumArguments()))
    plain &= function_interface_impl::getArgAttrs(kernel, argument).empty();
  for (unsigned result : llvm::seq(kernel.getNumResults()))
    plain &= llvm::all_of(
        function_interface_impl::getResultAttrs(kernel, result),
        [](auto attr) { return attr.getName() == BaechiDialect::kMayAlias; });
  return plain;
}

func::FuncOp Joiner::updateOf(func::CallOp call) {
  auto kernel = symbols.lookup<func::FuncOp>(call.getCallee());
  bool isUpdate =
      kernel && kernel->hasAttr(BaechiDialect::kKernel) &&
      kernel.getBody().hasOneBlock() && kernel.getNumResults() > 0 &&
      call->getDiscardableAttrs().empty() && isPlain(kernel) &&
      isElementwise(kernel) &&
      llvm::all_of(call.getResults(), [](Value result) {
        auto type = dyn_cast<RankedTensorType>(result.getType());
        return type && type.hasStaticShape() && type.getNumElements() > 0 &&
               type.getNumElements() <= kMostElements &&
               llvm::all_of(result.getUsers(), llvm::IsaPred<func::ReturnOp>);
      });
  return isUpdate ? kernel : func::FuncOp();
}

ArrayRef<int64_t> Joiner::aliasesOf(func::FuncOp kernel, unsigned result) {
  auto aliases = kernel.getResultAttrOfType<DenseI64ArrayAttr>(
      result, BaechiDialect::kMayAlias);
  return aliases ? aliases.asArrayRef() : ArrayRef<int64_t>();
}

/// The tensor that a value is, or a part of.
static Value wholeOf(Value value) {
  while (isa_and_nonnull<tensor::ExpandShapeOp, tensor::CollapseShapeOp,
                         tensor::ExtractSliceOp, tensor::CastOp>(
      value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  return value;
}

/// What a result may lie in.
static SmallVector<Value> overwrittenBy(func::CallOp call,
                                        ArrayRef<int64_t> aliases) {
  return llvm::map_to_vector(aliases, [&](int64_t number) {
    return wholeOf(call.getOperand(number));
  });
}

/// Bytes that the call keeps from being free until it runs.
static int64_t heldBy(func::CallOp call) {
  int64_t bytes = 0;
  for (Value operand : call.getOperands())
    if (auto type = dyn_cast<RankedTensorType>(operand.getType());
        type && operand.getDefiningOp())
      bytes += bytesOf(type).value_or(kMostHeld);
  return bytes;
}

bool Joiner::fits(func::CallOp call) {
  if (pointers + call.getNumOperands() + call.getNumResults() > kMostPointers ||
      held + heldBy(call) > mostHeld)
    return false;
  // What one part overwrites no other one may read: they run at once.
  for (Value operand : call.getOperands())
    if (overwritten.contains(wholeOf(operand)))
      return false;
  func::FuncOp kernel = symbols.lookup<func::FuncOp>(call.getCallee());
  for (unsigned result : llvm::seq(kernel.getNumResults()))
    for (Value value : overwrittenBy(call, aliasesOf(kernel, result)))
      if (taken.contains(value))
        return false;
  return true;
}

void Joiner::add(func::CallOp call) {
  func::FuncOp kernel = symbols.lookup<func::FuncOp>(call.getCallee());
  for (unsigned result : llvm::seq(kernel.getNumResults()))
    overwritten.insert_range(overwrittenBy(call, aliasesOf(kernel, result)));
  for (Value operand : call.getOperands())
    taken.insert(wholeOf(operand));
  pointers += call.getNumOperands() + call.getNumResults();
  held += heldBy(call);
  calls.push_back(call);
}

/// One kernel for the calls at work, whose operands are at these places among
/// its own.
func::FuncOp Joiner::kernelFor(ArrayRef<SmallVector<unsigned>> operands,
                               ArrayRef<Value> values) {
  SmallVector<func::FuncOp> parts =
      llvm::map_to_vector(calls, [&](func::CallOp call) {
        return symbols.lookup<func::FuncOp>(call.getCallee());
      });
  for (const Joined &known : joined)
    if (known.parts == parts && ArrayRef(known.operands) == operands)
      return known.kernel;

  SmallVector<Type> results;
  for (func::FuncOp part : parts)
    llvm::append_range(results, part.getResultTypes());
  OpBuilder builder(module.getContext());
  SmallVector<Location> locations = llvm::map_to_vector(
      parts, [](func::FuncOp part) { return part.getLoc(); });
  Location loc = FusedLoc::get(module.getContext(), locations);
  auto kernel = func::FuncOp::create(
      builder, loc,
      (parts.front().getName() + "_x" + Twine(parts.size())).str(),
      builder.getFunctionType(llvm::to_vector(ValueRange(values).getTypes()),
                              results));
  kernel.setPrivate();
  kernel->setAttr(BaechiDialect::kKernel, builder.getUnitAttr());
  kernel->setAttr(kCudaTogether, builder.getUnitAttr());
  Block *body = kernel.addEntryBlock();
  builder.setInsertionPointToEnd(body);
  SmallVector<Value> returned;
  for (auto [part, places] : llvm::zip_equal(parts, operands)) {
    for (unsigned result : llvm::seq(part.getNumResults()))
      if (ArrayRef<int64_t> aliases = aliasesOf(part, result);
          !aliases.empty()) {
        SmallVector<int64_t> here = llvm::map_to_vector(
            aliases, [&](int64_t number) { return int64_t(places[number]); });
        kernel.setResultAttr(returned.size() + result, BaechiDialect::kMayAlias,
                             builder.getDenseI64ArrayAttr(here));
      }
    IRMapping mapping;
    for (auto [argument, place] : llvm::zip_equal(part.getArguments(), places))
      mapping.map(argument, body->getArgument(place));
    for (Operation &op : part.front().without_terminator())
      builder.clone(op, mapping);
    for (Value result : part.front().getTerminator()->getOperands())
      returned.push_back(mapping.lookup(result));
  }
  func::ReturnOp::create(builder, loc, returned);
  symbols.insert(kernel);
  joined.push_back({parts, llvm::to_vector(operands), kernel});
  return kernel;
}

/// Makes one call of those at work, where the last of them is.
void Joiner::close() {
  if (calls.size() > 1) {
    // A number that several take is one operand; what is overwritten is taken
    // by one of them.
    SmallVector<Value> values;
    SmallVector<SmallVector<unsigned>> operands;
    llvm::DenseMap<Value, unsigned> places;
    for (func::CallOp call : calls) {
      auto &own = operands.emplace_back();
      for (Value operand : call.getOperands()) {
        auto [place, isNew] = places.try_emplace(operand, values.size());
        if (!isNew && !overwritten.contains(wholeOf(operand))) {
          own.push_back(place->second);
          continue;
        }
        own.push_back(values.size());
        values.push_back(operand);
      }
    }
    func::FuncOp kernel = kernelFor(operands, values);
    OpBuilder builder(calls.back());
    SmallVector<Location> locations = llvm::map_to_vector(
        calls, [](func::CallOp call) { return call.getLoc(); });
    auto call = func::CallOp::create(
        builder, FusedLoc::get(module.getContext(), locations), kernel, values);
    unsigned first = 0;
    for (func::CallOp part : calls) {
      part.replaceAllUsesWith(
          call.getResults().slice(first, part.getNumResults()));
      first += part.getNumResults();
      part.erase();
    }
  }
  calls.clear();
  taken.clear();
  overwritten.clear();
  pointers = held = 0;
}

void Joiner::joinIn(func::FuncOp step) {
  int64_t bytes = 0;
  for (Type type : step.getArgumentTypes())
    if (auto tensor = dyn_cast<RankedTensorType>(type))
      bytes += bytesOf(tensor).value_or(0);
  mostHeld = std::clamp(bytes / kShareHeld, kLeastHeld, kMostHeld);
  for (Block &block : step.getBody()) {
    for (auto call : llvm::to_vector(block.getOps<func::CallOp>())) {
      // What is too much for a launch by itself lets the others go on.
      if (!updateOf(call) || heldBy(call) > mostHeld)
        continue;
      if (!fits(call))
        close();
      if (fits(call))
        add(call);
    }
    close();
  }
}

void Joiner::run() {
  llvm::SetVector<Operation *> before;
  for (auto kernel : module.getOps<func::FuncOp>())
    if (kernel->hasAttr(BaechiDialect::kKernel))
      before.insert(kernel);
  for (auto function : llvm::to_vector(module.getOps<func::FuncOp>()))
    if (!before.contains(function))
      joinIn(function);
  for (const Joined &each : joined)
    for (func::FuncOp part : each.parts)
      if (before.contains(part) &&
          SymbolTable::symbolKnownUseEmpty(part, module)) {
        before.remove(part);
        symbols.erase(part);
      }
}

void baechi::joinUpdates(ModuleOp module) { Joiner(module).run(); }
