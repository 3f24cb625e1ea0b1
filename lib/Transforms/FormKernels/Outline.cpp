//===- Outline.cpp - Outlining groups of operators as kernels -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/ReplicaSides.h"
#include "Baechi/Analysis/Slices.h"
#include "Baechi/Costs/Roofline.h"
#include "Baechi/Dialect/Baechi.h"
#include "Baechi/Dialect/Replicas.h"
#include "KernelNames.h"
#include "MayAlias.h"
#include "OperatorGroups.h"
#include "OperatorKinds.h"
#include "Phases.h"
#include "RowGroups.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/SymbolTable.h"
#include <unordered_map>

using namespace mlir;
using namespace baechi;
using namespace baechi::formkernels;

//===----------------------------------------------------------------------===//
// Results that nothing computes
//===----------------------------------------------------------------------===//

/// The value that `value` is a reshaped view of.
static Value withoutReshapes(Value value) {
  while (isa_and_nonnull<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(
      value.getDefiningOp()))
    value = value.getDefiningOp()->getOperand(0);
  return value;
}

static Value copyOf(OpBuilder &builder, Location loc, Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  Value init = tensor::EmptyOp::create(builder, loc, type.getShape(),
                                       type.getElementType());
  AffineMap identity = builder.getMultiDimIdentityMap(type.getRank());
  SmallVector<utils::IteratorType> loops(type.getRank(),
                                         utils::IteratorType::parallel);
  return linalg::GenericOp::create(
             builder, loc, type, value, init, ArrayRef{identity, identity},
             loops,
             [](OpBuilder &body, Location loc, ValueRange arguments) {
               linalg::YieldOp::create(body, loc, arguments.front());
             })
      .getResult(0);
}

void formkernels::copyPlainResults(func::FuncOp step) {
  Operation *terminator = step.front().getTerminator();
  OpBuilder builder(terminator);
  DenseSet<Value> returned;
  for (OpOperand &operand : terminator->getOpOperands()) {
    Value root = withoutReshapes(operand.get());
    Operation *producer = root.getDefiningOp();
    if (!producer || !isOperator(producer) || !returned.insert(root).second)
      operand.set(copyOf(builder, terminator->getLoc(), operand.get()));
  }
}

/// Whether \p value lies in memory between kernels: an argument, an operator's
/// result or a large constant, or a view of one that needs no code.
static bool liesInStep(Value value) {
  Operation *op = value.getDefiningOp();
  for (; op && isView(op); op = op->getOperand(0).getDefiningOp())
    if (isa<tensor::ExtractSliceOp>(op) && !sliceOffset(op))
      return false;
  return !op || !isCloned(op);
}

void formkernels::copyHostOperands(func::FuncOp step) {
  for (Operation &op : step.front().without_terminator())
    if (hostCallOf(&op))
      for (OpOperand &operand : op.getOpOperands())
        if (!liesInStep(operand.get())) {
          OpBuilder builder(&op);
          operand.set(copyOf(builder, op.getLoc(), operand.get()));
        }
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

namespace {
/// A group as a function, with what it takes from and gives to the step.
struct Kernel {
  func::FuncOp function;
  SmallVector<Value> inputs, outputs;
};

class Outliner {
public:
  Outliner(func::FuncOp step, const OperatorGroups &groups,
           const RowExtents &rows, bool rowLoops)
      : step(step), groups(groups), rows(rows), rowLoops(rowLoops),
        symbols(step->getParentOp()) {}

  void run(KernelCounts &counts);

private:
  Kernel outline(ArrayRef<Operation *> members);
  SmallVector<Value> escapingResults(ArrayRef<Operation *> members);
  func::FuncOp share(func::FuncOp kernel, ArrayRef<Operation *> members);
  func::FuncOp finish(func::FuncOp plain, ArrayRef<int64_t> rows,
                      ArrayRef<Operation *> members);

  /// A group before and after its rows were fused: most groups of a model were
  /// there before, and need no second fusion.
  struct Finished {
    OwningOpRef<func::FuncOp> plain;
    SmallVector<int64_t> rows;
    func::FuncOp kernel;
  };

  func::FuncOp step;
  const OperatorGroups &groups;
  const RowExtents &rows;
  bool rowLoops;
  SymbolTable symbols;
  /// By their hashes.
  std::unordered_map<size_t, SmallVector<Finished, 1>> known;
  std::unordered_map<size_t, SmallVector<func::FuncOp, 1>> finished;
  llvm::DenseMap<Operation *, int64_t> bytes;
};
} // namespace

/// Clones what reads values of outside through its operands alone. (Again with
/// the same mapping, its regions would lose their arguments, which that has.)
static void cloneApart(OpBuilder &builder, Operation *op, IRMapping &mapping) {
  IRMapping operands;
  for (Value operand : op->getOperands())
    operands.map(operand, mapping.lookup(operand));
  Operation *copy = builder.clone(*op, operands);
  mapping.map(op->getResults(), copy->getResults());
}

/// Results that the return or operators of other groups read.
SmallVector<Value> Outliner::escapingResults(ArrayRef<Operation *> members) {
  Block *block = &step.front();
  SmallVector<Value> escaping;
  for (Operation *member : members) {
    for (Value result : member->getResults()) {
      SmallVector<Value> work{result};
      bool escapes = false;
      while (!work.empty() && !escapes) {
        for (Operation *user : work.pop_back_val().getUsers()) {
          user = block->findAncestorOpInBlock(*user);
          if (user->hasTrait<OpTrait::IsTerminator>())
            escapes = true;
          else if (!isCloned(user))
            escapes |= groups.groupOf(user) != groups.groupOf(member);
          else
            llvm::append_range(work, user->getResults());
        }
      }
      if (escapes)
        escaping.push_back(result);
    }
  }
  return escaping;
}

/// True for a slice that needs no code, of a tensor that is computed outside of
/// `inside`, or of such a slice: the step can take it.
static bool isFreeSlice(Operation *slice, const DenseSet<Operation *> &inside) {
  if (!isa<tensor::ExtractSliceOp>(slice))
    return false;
  Operation *op = slice;
  for (; isView(op); op = op->getOperand(0).getDefiningOp())
    if (isa<tensor::ExtractSliceOp>(op) && !sliceOffset(op))
      return false;
  return !op || (!isCloned(op) && !inside.contains(op));
}

Kernel Outliner::outline(ArrayRef<Operation *> members) {
  Kernel kernel;
  DenseSet<Operation *> inside(members.begin(), members.end());
  SetVector<Value> inputs;
  SmallVector<SmallVector<Operation *>> clones;
  SmallVector<Location> locations{mainOperation(members)->getLoc()};
  for (Operation *member : members) {
    // Kernels that differ only in where such a slice begins are the same.
    Reads reads = readsOf(member, [&](Operation *op) {
      return rowLoops && isFreeSlice(op, inside);
    });
    for (Value tensor : reads.tensors)
      if (!tensor.getDefiningOp() || !inside.contains(tensor.getDefiningOp()))
        inputs.insert(tensor);
    clones.push_back(reads.clones.takeVector());
    llvm::sort(clones.back(), [&](Operation *x, Operation *y) {
      return groups.position(x) < groups.position(y);
    });
    locations.push_back(member->getLoc());
  }
  kernel.inputs = inputs.takeVector();
  kernel.outputs = escapingResults(members);

  MLIRContext *context = step.getContext();
  OpBuilder builder(context);
  Location loc = FusedLoc::get(context, locations);
  kernel.function = func::FuncOp::create(
      builder, loc, "kernel",
      builder.getFunctionType(ValueRange(kernel.inputs).getTypes(),
                              ValueRange(kernel.outputs).getTypes()));
  kernel.function.setPrivate();
  kernel.function->setAttr(BaechiDialect::kKernel, builder.getUnitAttr());
  Block *body = kernel.function.addEntryBlock();
  builder.setInsertionPointToEnd(body);
  IRMapping mapping;
  mapping.map(kernel.inputs, body->getArguments());
  for (auto [member, memberClones] : llvm::zip_equal(members, clones)) {
    for (Operation *clone : memberClones)
      // Each operation fills a tensor of its own: a shared one would be copied.
      if (isa<tensor::EmptyOp, linalg::FillOp>(clone))
        cloneApart(builder, clone, mapping);
      else if (!mapping.contains(clone->getResult(0)))
        builder.clone(*clone, mapping);
    builder.clone(*member, mapping);
  }
  SmallVector<Value> results;
  for (Value output : kernel.outputs)
    results.push_back(mapping.lookup(output));
  func::ReturnOp::create(builder, loc, results);
  return kernel;
}

/// Equal for equal kernels, whatever their names and locations.
static llvm::hash_code hashOf(func::FuncOp kernel) {
  llvm::hash_code hash = hash_value(Type(kernel.getFunctionType()));
  kernel.getBody().walk([&](Operation *op) {
    hash =
        llvm::hash_combine(hash, OperationEquivalence::computeHash(
                                     op, OperationEquivalence::ignoreHashValue,
                                     OperationEquivalence::ignoreHashValue,
                                     OperationEquivalence::IgnoreLocations));
  });
  return hash;
}

static bool areEqual(func::FuncOp x, func::FuncOp y) {
  return x.getFunctionType() == y.getFunctionType() &&
         x.getResAttrsAttr() == y.getResAttrsAttr() &&
         OperationEquivalence::isRegionEquivalentTo(
             &x.getBody(), &y.getBody(), OperationEquivalence::IgnoreLocations);
}

/// The kernel of the module that is equal to `kernel`, which is erased then;
/// otherwise `kernel`, now in the module.
func::FuncOp Outliner::share(func::FuncOp kernel,
                             ArrayRef<Operation *> members) {
  SmallVector<func::FuncOp, 1> &alike = finished[hashOf(kernel)];
  for (func::FuncOp other : alike)
    if (areEqual(kernel, other)) {
      kernel->erase();
      return other;
    }
  alike.push_back(kernel);
  kernel.setName(kernelName(members));
  symbols.insert(kernel);
  bytes[kernel] = workOfKernel(kernel).bytes;
  return kernel;
}

/// The kernel of the module that computes what `plain`, a group as it came,
/// does. Takes `plain`.
func::FuncOp Outliner::finish(func::FuncOp plain, ArrayRef<int64_t> rows,
                              ArrayRef<Operation *> members) {
  SmallVector<Finished, 1> &alike = known[hashOf(plain)];
  for (const Finished &other : alike)
    if (rows == ArrayRef(other.rows) && areEqual(plain, other.plain.get())) {
      plain->erase();
      return other.kernel;
    }
  func::FuncOp kernel = plain.clone();
  if (!rows.empty())
    fuseRows(kernel, rows, rowLoops);
  markAliases(kernel);
  kernel = share(kernel, members);
  alike.push_back({plain, llvm::to_vector(rows), kernel});
  return kernel;
}

/// The value that `value` is in the step of calls; views are cloned into it.
static Value inStep(OpBuilder &builder, IRMapping &mapping, Value value) {
  Operation *op = value.getDefiningOp();
  if (!mapping.contains(value) && isView(op)) {
    (void)inStep(builder, mapping, op->getOperand(0));
    builder.clone(*op, mapping);
  }
  return mapping.lookupOrDefault(value);
}

void Outliner::run(KernelCounts &counts) {
  Block &block = step.front();
  Operation *terminator = block.getTerminator();
  SmallVector<Operation *> replaced;
  for (Operation &op : block.without_terminator())
    if (kindOf(&op) != OperatorKind::Kept)
      replaced.push_back(&op);

  OpBuilder builder(terminator);
  IRMapping mapping;
  llvm::SmallPtrSet<Operation *, 4> hostCalls;
  for (auto &[group, members] : groups.inOrder()) {
    if (func::FuncOp callee = hostCallOf(members.front())) {
      for (Value operand : members.front()->getOperands())
        (void)inStep(builder, mapping, operand);
      callee->setAttr(BaechiDialect::kKernel, builder.getUnitAttr());
      builder.clone(*members.front(), mapping);
      ++counts.operatorsAfter;
      counts.bytesAfter += workOf(members.front()).bytes;
      hostCalls.insert(callee);
      continue;
    }
    Kernel kernel = outline(members);
    SmallVector<Value> operands;
    for (Value input : kernel.inputs)
      operands.push_back(inStep(builder, mapping, input));
    Location loc = kernel.function.getLoc();
    func::FuncOp shared =
        finish(kernel.function,
               members.size() > 1 ? rows.lookup(group) : SmallVector<int64_t>(),
               members);
    auto call = func::CallOp::create(builder, loc, shared, operands);
    if (std::optional<int64_t> side = groups.sideOf(group))
      call->setAttr(kReplica, builder.getI64IntegerAttr(*side));
    mapping.map(kernel.outputs, call.getResults());
    ++counts.operatorsAfter;
    counts.bytesAfter += bytes.lookup(shared);
  }
  counts.kernels = bytes.size() + hostCalls.size();

  for (OpOperand &operand : terminator->getOpOperands()) {
    SmallVector<Operation *> views;
    for (Value value = operand.get(); !mapping.contains(value);
         value = views.back()->getOperand(0))
      views.push_back(value.getDefiningOp());
    for (Operation *view : llvm::reverse(views))
      builder.clone(*view, mapping);
    operand.set(mapping.lookup(operand.get()));
  }
  for (Operation *op : llvm::reverse(replaced))
    op->erase();
}

/// One operation for equal slices of a tensor, so that a kernel does not take
/// it twice.
static void shareSlices(Block &block) {
  llvm::DenseMap<std::pair<Value, std::pair<Attribute, Type>>, Operation *>
      known;
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (!sliceOffset(&op) || op.hasAttr(kCopied))
      continue;
    auto [first, isNew] = known.try_emplace(
        {op.getOperand(0), {op.getAttrDictionary(), op.getResult(0).getType()}},
        &op);
    if (isNew)
      continue;
    op.replaceAllUsesWith(first->second);
    op.erase();
  }
}

void formkernels::outlineKernels(func::FuncOp step, bool rowLoops,
                                 unsigned maxBuffers, KernelCounts &counts) {
  shareSlices(step.front());
  OperatorGroups groups(step.front(), maxBuffers, replicaSides(step));
  groupInsertions(groups);
  // Pieces that follow each other would wait, in memory, for each other.
  if (!step->hasAttr(BaechiDialect::kChained))
    groupSums(groups);
  step->removeAttr(BaechiDialect::kChained);
  RowExtents rows = groupByRows(groups);
  groupTails(groups, rows);
  Outliner(step, groups, rows, rowLoops).run(counts);
  if (Attribute asked = step->removeAttr(BaechiDialect::kImplementation))
    for (auto kernel : step->getParentOfType<ModuleOp>().getOps<func::FuncOp>())
      if (kernel->hasAttr(BaechiDialect::kKernel) && !kernel.isExternal())
        kernel->setAttr(BaechiDialect::kImplementation, asked);
  // What is left of slices the kernels read in place.
  for (auto slice : step.getOps<tensor::ExtractSliceOp>())
    if (sliceOffset(slice))
      slice->setAttr(BaechiDialect::kView, UnitAttr::get(step.getContext()));
}
