//===- ExpandReplicas.cpp - One replica's program as that of all ----------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/Program.h"
#include "Baechi/Dialect/Replicas.h"
#include "Baechi/Transforms/Replicas/Passes.h"
#include "Collectives.h"
#include "Pieces.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"

namespace baechi {
#define GEN_PASS_DEF_EXPANDREPLICAS
#include "Baechi/Transforms/Replicas/Passes.h.inc"
} // namespace baechi

using namespace mlir;
using namespace baechi;
using namespace baechi::split;

static bool isOfStableHlo(Operation *op) {
  return op->getName().getDialectNamespace() == "stablehlo";
}

static bool isPartitionId(Operation *op) {
  return op->getName().getStringRef() == "stablehlo.partition_id";
}

static bool isNumber(Operation *op) {
  return isPartitionId(op) ||
         op->getName().getStringRef() == "stablehlo.replica_id";
}

bool split::hasStableHlo(Operation *around) {
  return around
      ->walk([](Operation *op) {
        return isOfStableHlo(op) ? WalkResult::interrupt()
                                 : WalkResult::advance();
      })
      .wasInterrupted();
}

namespace {
/// StableHLO's processes are replicas of partitions. One of the numbers is 1
/// here, and what is called a replica may be a partition.
struct Processes {
  int64_t count = 1;
  enum { Replicas, Partitions, NotSaid } kind = NotSaid;
};
} // namespace

/// As the module says it, or as collectives name replicas.
static FailureOr<Processes> findProcesses(func::FuncOp step) {
  auto said = [&](StringRef name) {
    auto attr =
        step->getParentOfType<ModuleOp>()->getAttrOfType<IntegerAttr>(name);
    return attr && attr.getType().isSignlessInteger(32) ? attr.getInt()
                                                        : int64_t(1);
  };
  int64_t replicas = said("mhlo.num_replicas");
  int64_t partitions = said("mhlo.num_partitions");
  if (replicas > 1 && partitions > 1)
    return step->emitError("is a program of ")
           << replicas << " replicas of " << partitions
           << " partitions: one of the two numbers must be 1 "
              "(mhlo.num_replicas, mhlo.num_partitions)";
  if (partitions > 1)
    return Processes{partitions, Processes::Partitions};
  if (replicas > 1)
    return Processes{replicas, Processes::Replicas};
  Processes named;
  step.walk([&](Operation *op) {
    named.count = std::max(named.count, replicasNamedBy(op));
  });
  return named;
}

/// An error where a collective is not among all the processes that there are:
/// its channel and use_global_device_ids say among which (StableHLO's
/// specification, "process groups").
static LogicalResult checkProcesses(Operation *op, const Processes &processes) {
  StringRef name = op->getName().stripDialect();
  bool isPoint = name == "all_to_all" || name == "collective_permute";
  bool hasChannel = op->hasAttr("channel_handle") || op->hasAttr("channel_id");
  if (processes.kind == Processes::Partitions &&
      !(isPoint ? hasChannel : op->hasAttr("use_global_device_ids")))
    return op->emitOpError("is between replicas, and the module has partitions "
                           "(mhlo.num_partitions): give it a channel_handle")
           << (isPoint ? "" : " and use_global_device_ids")
           << ", or the module mhlo.num_replicas in place of those";
  if (processes.kind == Processes::Replicas && isPoint && hasChannel)
    return op->emitOpError("is between partitions, as it has a channel, and "
                           "the module has replicas (mhlo.num_replicas): take "
                           "the channel away, or give the module "
                           "mhlo.num_partitions in place of those");
  return success();
}

namespace {
class Expander {
public:
  Expander(func::FuncOp step, const Processes &processes)
      : step(step), block(step.front()), processes(processes),
        replicas(processes.count), builder(step.getContext()) {}

  LogicalResult run() {
    SmallVector<Operation *> written;
    for (Operation &op : block.without_terminator())
      written.push_back(&op);
    if (failed(cutArguments()))
      return failure();
    for (Operation *op : written) {
      builder.setInsertionPoint(op);
      if (failed(expand(op)))
        return failure();
    }
    if (failed(putResultsTogether()))
      return failure();
    for (Operation *op : llvm::reverse(gone)) // readers before what they read
      op->erase();
    step.setType(builder.getFunctionType(
        block.getArgumentTypes(), block.getTerminator()->getOperandTypes()));
    if (replicas > 1)
      step->setAttr(kReplicas, builder.getI64IntegerAttr(replicas));
    return success();
  }

private:
  using Values = SmallVector<Value>;

  /// What each replica has for \p value.
  Values of(Value value) {
    auto found = own.find(value);
    return found == own.end() ? Values(replicas, value) : found->second;
  }

  static bool differs(ArrayRef<Value> values) {
    return !llvm::all_equal(values);
  }

  bool isBatched(unsigned argument) {
    return step.getArgAttr(argument, kBatched) != nullptr;
  }

  /// A batched argument becomes all replicas' one after the other.
  LogicalResult cutArguments() {
    builder.setInsertionPointToStart(&block);
    bool differ = step.walk([](Operation *op) {
                        return isNumber(op) ? WalkResult::interrupt()
                                            : WalkResult::advance();
                      })
                      .wasInterrupted();
    for (BlockArgument argument : block.getArguments()) {
      unsigned number = argument.getArgNumber();
      if (!isBatched(number) || replicas < 2)
        continue;
      if (!isa<UnitAttr>(step.getArgAttr(number, kBatched)))
        return step.emitError("argument ")
               << number << " says which replicas have which parts "
               << "(baechi.batched), and each has one of its own in one "
                  "replica's program: say baechi.batched alone";
      auto type = dyn_cast<RankedTensorType>(argument.getType());
      if (!type || type.getRank() == 0 || !type.hasStaticShape())
        return step.emitError("argument ")
               << number << ", of which each replica has its own part "
               << "(baechi.batched), has type " << argument.getType()
               << ": parts lie along the first dimension; give it one";
      SmallVector<int64_t> shape(type.getShape());
      shape[0] *= replicas;
      argument.setType(type.clone(shape));
      Values &parts = own[argument];
      for (int64_t replica = 0; replica < replicas; ++replica)
        parts.push_back(
            partOf(builder, argument.getLoc(), argument, 0, replica, replicas));
      differ = true;
    }
    if (!differ && replicas > 1)
      return step.emitError(
          "is one replica's program, and nothing differs between replicas: "
          "mark the arguments that each has its own part of (baechi.batched)");
    return success();
  }

  LogicalResult expand(Operation *op) {
    if (casts.contains(op)) {
      gone.push_back(op);
      return success();
    }
    if (isNumber(op))
      return number(op);
    if (isOfStableHlo(op)) {
      if (replicas > 1 && failed(checkProcesses(op, processes)))
        return failure();
      for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
        FailureOr<Values> made = exchange(builder, op, index, of(operand));
        if (failed(made))
          return failure();
        own[op->getResult(index)] = std::move(*made);
      }
      if (op->getNumOperands() == 0)
        return exchange(builder, op, 0, {});
      gone.push_back(op);
      return success();
    }
    Operation *within = nullptr;
    op->walk([&](Operation *inner) {
      if (isOfStableHlo(inner))
        within = inner;
    });
    if (within)
      return within->emitOpError(
          "is within a branch, which one device computes: exchange values "
          "outside of it");
    cloneForEach(op);
    return success();
  }

  /// StableHLO's own numbers have no sign, and what its lowering makes of their
  /// readers casts them first.
  LogicalResult number(Operation *op) {
    if (isPartitionId(op) && processes.kind == Processes::NotSaid &&
        replicas > 1)
      return op->emitOpError("numbers partitions, and the module does not say "
                             "that it has any: give it mhlo.num_partitions");
    // There is one of what the other kind of number is of.
    bool isCounted =
        isPartitionId(op) == (processes.kind == Processes::Partitions);
    SmallVector<Value> numbers(op->getResults());
    for (Operation *user : op->getUsers())
      if (isa<UnrealizedConversionCastOp>(user) && user->getNumResults() == 1) {
        numbers.push_back(user->getResult(0));
        casts.insert(user);
      }
    bool isCast = llvm::all_of(
        op->getUsers(), [&](Operation *user) { return casts.contains(user); });
    for (Value value :
         llvm::drop_begin(numbers, isCast && numbers.size() > 1)) {
      auto type = dyn_cast<RankedTensorType>(value.getType());
      if (!type || type.getRank() != 0 ||
          !type.getElementType().isSignlessInteger())
        return op->emitOpError("has a result that is no tensor of one signless "
                               "integer, which numbers of replicas are here");
      Values &each = own[value];
      for (int64_t replica = 0; replica < replicas; ++replica)
        each.push_back(arith::ConstantOp::create(
            builder, op->getLoc(),
            DenseElementsAttr::get(
                type, builder.getIntegerAttr(type.getElementType(),
                                             isCounted ? replica : 0))));
    }
    gone.push_back(op);
    return success();
  }

  /// One copy for all replicas that it reads the same values for.
  void cloneForEach(Operation *op) {
    SetVector<Value> read(op->operand_begin(), op->operand_end());
    getUsedValuesDefinedAbove(op->getRegions(), read);
    if (llvm::none_of(read, [&](Value value) { return own.contains(value); }))
      return;
    SmallVector<Values> values;
    for (Value value : read)
      values.push_back(of(value));
    SmallVector<std::pair<Values, Operation *>> made;
    SmallVector<Values> results(op->getNumResults());
    for (int64_t replica = 0; replica < replicas; ++replica) {
      Values mine;
      for (const Values &each : values)
        mine.push_back(each[replica]);
      auto same = llvm::find_if(
          made, [&](const auto &entry) { return entry.first == mine; });
      Operation *copy = nullptr;
      if (same == made.end()) {
        IRMapping mapping;
        for (auto [value, my] : llvm::zip_equal(read, mine))
          mapping.map(value, my);
        copy = builder.clone(*op, mapping);
        copy->setLoc(namedAfter(op, ".replica" + Twine(replica)));
        made.emplace_back(mine, copy);
      } else {
        copy = same->second;
      }
      for (auto [index, result] : llvm::enumerate(copy->getResults()))
        results[index].push_back(result);
    }
    for (auto [result, each] : llvm::zip_equal(op->getResults(), results))
      own[result] = each;
    gone.push_back(op);
  }

  LogicalResult putResultsTogether() {
    Operation *end = block.getTerminator();
    builder.setInsertionPoint(end);
    llvm::DenseSet<unsigned> cut; // results that are batched arguments' next
    for (unsigned number = 0; number < step.getNumArguments(); ++number) {
      auto by =
          step.getArgAttrOfType<IntegerAttr>(number, BaechiDialect::kUpdatedBy);
      if (!by)
        continue;
      if (isBatched(number))
        cut.insert(by.getInt());
      else if (differs(of(end->getOperand(by.getInt()))))
        return step.emitError("argument ")
               << number << " is one for all replicas, and each computes "
               << "another next value of it, result " << by.getInt()
               << ": exchange its gradient (stablehlo.all_reduce), or mark the "
                  "argument as each replica's own (baechi.batched)";
    }
    for (OpOperand &operand : end->getOpOperands()) {
      unsigned number = operand.getOperandNumber();
      Values values = of(operand.get());
      if (!differs(values) && !cut.contains(number)) {
        operand.set(values.front());
        continue;
      }
      auto type = dyn_cast<RankedTensorType>(operand.get().getType());
      if (!type || type.getRank() == 0 || !type.hasStaticShape())
        return step.emitError("result ")
               << number << ", of which each replica has its own, has type "
               << operand.get().getType()
               << ": parts lie along the first dimension; give it one, or "
                  "exchange it (stablehlo.all_reduce)";
      operand.set(concatenate(builder, operand.get().getLoc(), values, 0));
    }
    return success();
  }

  func::FuncOp step;
  Block &block;
  Processes processes;
  int64_t replicas;
  OpBuilder builder;
  /// Of values that replicas have for themselves, each one's.
  llvm::DenseMap<Value, Values> own;
  llvm::DenseSet<Operation *> casts; ///< of replicas' numbers
  SmallVector<Operation *> gone;
};

struct ExpandReplicas
    : public baechi::impl::ExpandReplicasBase<ExpandReplicas> {
  using ExpandReplicasBase::ExpandReplicasBase;

  void runOnOperation() override {
    FailureOr<func::FuncOp> step = findFuncStep(getOperation());
    if (failed(step))
      return signalPassFailure();
    if (failed(checkOthers(*step)))
      return signalPassFailure();
    if (!hasStableHlo(*step))
      return markAllAnalysesPreserved();
    FailureOr<Processes> processes = findProcesses(*step);
    if (failed(processes))
      return signalPassFailure();
    if (processes->count > 64) {
      step->emitError("the step can have 1 to 64 replicas, not ")
          << processes->count;
      return signalPassFailure();
    }
    if (failed(writeTurnByTurn(*step, processes->count)) ||
        failed(Expander(*step, *processes).run()))
      signalPassFailure();
  }

private:
  /// What is called is one operation of a replica.
  LogicalResult checkOthers(func::FuncOp step) {
    WalkResult walked =
        getOperation().walk<WalkOrder::PreOrder>([&](Operation *op) {
          if (op == step.getOperation())
            return WalkResult::skip();
          if (!isOfStableHlo(op))
            return WalkResult::advance();
          op->emitOpError("is not in the step itself: inline the function "
                          "that it is in");
          return WalkResult::interrupt();
        });
    return failure(walked.wasInterrupted());
  }
};
} // namespace
