//===- PinReplicas.cpp - Devices of replicas, owners of parameters --------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/MachineAttr.h"
#include "Baechi/Analysis/PlacementProblem.h"
#include "Baechi/Analysis/Program.h"
#include "Baechi/Dialect/Carried.h"
#include "Baechi/Dialect/Replicas.h"
#include "Baechi/Placement/Model/Pool.h"
#include "Baechi/Transforms/Replicas/Passes.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace baechi {
#define GEN_PASS_DEF_PINREPLICAS
#include "Baechi/Transforms/Replicas/Passes.h.inc"
} // namespace baechi

using namespace mlir;
using namespace baechi;

namespace {
/// What has one owner.
struct Owned {
  SmallVector<int32_t> arguments;
  SmallVector<Operation *> updaters;
  int64_t bytes = 0;
  int32_t owner = -1;
};

class Pinner {
public:
  Pinner(FunctionOpInterface step, ArrayRef<StringAttr> devices,
         int64_t replicas, bool factors)
      : step(step), operators(operatorsOf(step)), devices(devices),
        replicas(replicas), factors(factors) {}

  void pin() {
    for (Operation *op : operators)
      if (std::optional<int32_t> device = deviceOf(op);
          device && !op->hasAttr(BaechiDialect::kPin)) {
        pinTo(op, *device);
        byReplica.insert(op);
      }
    SmallVector<Owned> all = collectOwned();
    chooseOwners(all);
    for (const Owned &owned : all) {
      for (int32_t argument : owned.arguments)
        if (!step.getArgAttr(argument, BaechiDialect::kPin))
          step.setArgAttr(argument, BaechiDialect::kPin, devices[owned.owner]);
      // A state that goes from replica to replica is where its next value is
      // made, whosever that is.
      for (Operation *updater : owned.updaters) {
        if (byReplica.contains(updater))
          updater->removeAttr(BaechiDialect::kPin);
        pinTo(updater, owned.owner);
      }
    }
    // Once all updates have their owners: what several read goes to the first.
    for (const Owned &owned : all)
      for (Operation *updater : owned.updaters)
        pinJoins(updater, owned);
    if (factors)
      moveProducts();
  }

private:
  std::optional<int32_t> deviceOf(Operation *op) const {
    auto replica = op->getAttrOfType<IntegerAttr>(kReplica);
    if (!replica || replica.getInt() >= replicas)
      return std::nullopt;
    return int32_t(replica.getInt() * int64_t(devices.size()) / replicas);
  }

  void pinTo(Operation *op, int32_t device) {
    if (!op->hasAttr(BaechiDialect::kPin))
      op->setAttr(BaechiDialect::kPin, devices[device]);
  }

  /// States of several replicas, which have them by themselves.
  static bool arePinnedApart(Operation *a, Operation *b) {
    Attribute here = a->getAttr(BaechiDialect::kPin);
    Attribute there = b ? b->getAttr(BaechiDialect::kPin) : nullptr;
    return here && there && here != there;
  }

  int64_t bytesOf(int32_t argument) {
    return tensorBytes(step.getArgument(argument).getType(), false).value_or(0);
  }

  std::optional<int32_t> updatedArgument(Value value) {
    auto argument = dyn_cast<BlockArgument>(rootOf(value));
    if (!argument ||
        !step.getArgAttr(argument.getArgNumber(), BaechiDialect::kUpdatedBy))
      return std::nullopt;
    return argument.getArgNumber();
  }

  /// Arguments that are updated, by what must be together and by what is
  /// updated from each other: of one size, and no scalar, as a weight and its
  /// moments are.
  SmallVector<Owned> collectOwned() {
    Operation *terminator = step.getFunctionBody().front().getTerminator();
    llvm::EquivalenceClasses<int32_t> classes;
    llvm::DenseMap<int32_t, Operation *> updaterOf;
    llvm::DenseMap<Operation *, int32_t> updatedBy;
    SmallVector<int32_t> groups = requiredGroups(step, operators);
    llvm::DenseMap<int32_t, int32_t> firstOf;
    for (int32_t id = 0, n = step.getNumArguments(); id < n; ++id) {
      auto by =
          step.getArgAttrOfType<IntegerAttr>(id, BaechiDialect::kUpdatedBy);
      if (!by)
        continue;
      classes.insert(id);
      if (groups[id] >= 0)
        classes.unionSets(firstOf.try_emplace(groups[id], id).first->second,
                          id);
      Operation *updater =
          rootOf(terminator->getOperand(by.getInt())).getDefiningOp();
      if (!updater || !llvm::is_contained(operators, updater))
        continue;
      updaterOf[id] = updater;
      classes.unionSets(updatedBy.try_emplace(updater, id).first->second, id);
    }
    for (auto [id, updater] : updaterOf)
      for (Value operand : updater->getOperands()) {
        std::optional<int32_t> other = updatedArgument(operand);
        if (Operation *made = rootOf(operand).getDefiningOp();
            !other && made && updatedBy.contains(made))
          other = updatedBy.lookup(made);
        if (other && bytesOf(*other) == bytesOf(id) &&
            bytesOf(id) >= kLeastBytes &&
            !arePinnedApart(updater, updaterOf.lookup(*other)))
          classes.unionSets(id, *other);
      }
    llvm::MapVector<int32_t, Owned> byLeader;
    for (int32_t id = 0, n = step.getNumArguments(); id < n; ++id) {
      if (!classes.contains(id))
        continue;
      Owned &owned = byLeader[classes.getLeaderValue(id)];
      owned.arguments.push_back(id);
      owned.bytes += bytesOf(id);
      if (Operation *updater = updaterOf.lookup(id);
          updater && !llvm::is_contained(owned.updaters, updater))
        owned.updaters.push_back(updater);
    }
    SmallVector<Owned> all;
    for (auto &entry : byLeader)
      all.push_back(std::move(entry.second));
    return all;
  }

  /// Where something of it is pinned, that; else the device that owns least,
  /// the largest first.
  void chooseOwners(MutableArrayRef<Owned> all) {
    SmallVector<int64_t> bytes(devices.size());
    SmallVector<Owned *> open;
    auto pinnedTo = [&](Attribute pin) {
      auto found = llvm::find(devices, pin);
      return pin && found != devices.end()
                 ? std::optional(int32_t(found - devices.begin()))
                 : std::nullopt;
    };
    for (Owned &owned : all) {
      std::optional<int32_t> there;
      for (int32_t argument : owned.arguments)
        if (!there)
          there = pinnedTo(step.getArgAttr(argument, BaechiDialect::kPin));
      for (Operation *updater : owned.updaters)
        if (!there)
          there = pinnedTo(updater->getAttr(BaechiDialect::kPin));
      if (!there) {
        open.push_back(&owned);
        continue;
      }
      owned.owner = *there;
      bytes[*there] += owned.bytes;
    }
    llvm::stable_sort(open, [](const Owned *a, const Owned *b) {
      return a->bytes > b->bytes;
    });
    for (Owned *owned : open) {
      owned->owner = int32_t(llvm::min_element(bytes) - bytes.begin());
      bytes[owned->owner] += owned->bytes;
    }
  }

  /// What an update reads and no replica computes, of the argument's size: the
  /// gradient, as it is joined, clipped or decayed.
  void pinJoins(Operation *updater, const Owned &owned) {
    SmallVector<Operation *> work{updater};
    while (!work.empty()) {
      Operation *op = work.pop_back_val();
      for (Value operand : op->getOperands()) {
        Operation *made = rootOf(operand).getDefiningOp();
        if (!made || made->hasAttr(BaechiDialect::kPin) ||
            !llvm::is_contained(operators, made) ||
            llvm::none_of(owned.arguments, [&](int32_t argument) {
              return bytesOf(argument) >= kLeastBytes &&
                     tensorBytes(made->getResult(0).getType(), false) ==
                         bytesOf(argument);
            }))
          continue;
        pinTo(made, owned.owner);
        work.push_back(made);
      }
    }
  }

  /// A replica's part of a gradient whose factors are fewer bytes than it is
  /// goes to the device that all its readers are on: the factors are sent, as
  /// Poseidon's sufficient factor broadcasting does (Zhang et al., "Poseidon:
  /// An Efficient Communication Architecture for Distributed Deep Learning on
  /// GPU Clusters", USENIX ATC 2017). What several of an owner's products have
  /// as a factor is counted once, the first ones first.
  void moveProducts() {
    llvm::DenseSet<std::pair<Value, Attribute>> sent;
    for (Operation *op : operators) {
      Attribute here = op->getAttr(BaechiDialect::kPin);
      Attribute owner = readersDevice(op);
      if (!byReplica.contains(op) || !owner || owner == here)
        continue;
      int64_t product = 0, read = 0;
      for (Type type : op->getResultTypes())
        product += tensorBytes(type, false).value_or(0);
      llvm::SmallSetVector<Value, 4> operands;
      for (Value operand : op->getOperands())
        if (Value root = rootOf(operand); pinOf(root) != owner)
          operands.insert(operand);
      for (Value operand : operands)
        if (!sent.contains({operand, owner}))
          read += tensorBytes(operand.getType(), false).value_or(product);
      if (read >= product)
        continue;
      for (Value operand : operands)
        sent.insert({operand, owner});
      op->setAttr(BaechiDialect::kPin, owner);
      remark::passed(op->getLoc(), remark::RemarkOpts::name("factors-sent")
                                       .category("baechi-pin-replicas"))
          << remark::metric("Factors", read)
          << remark::metric("Product", product);
    }
  }

  Attribute pinOf(Value root) {
    if (Operation *made = root.getDefiningOp())
      return made->getAttr(BaechiDialect::kPin);
    return step.getArgAttr(cast<BlockArgument>(root).getArgNumber(),
                           BaechiDialect::kPin);
  }

  /// Where all that reads \p op is pinned to; none: there is no such device, or
  /// it is a result of the step.
  Attribute readersDevice(Operation *op) {
    Attribute device;
    SmallVector<Operation *> work(op->getUsers());
    while (!work.empty()) {
      Operation *user = work.pop_back_val();
      if (user->hasAttr(BaechiDialect::kView)) {
        llvm::append_range(work, user->getUsers());
        continue;
      }
      Attribute pin = user->getAttr(BaechiDialect::kPin);
      if (!pin || (device && pin != device))
        return {};
      device = pin;
    }
    return device;
  }

  /// Smaller ones, as the number of the step, are anybody's.
  static constexpr int64_t kLeastBytes = 16;

  FunctionOpInterface step;
  SmallVector<Operation *> operators;
  ArrayRef<StringAttr> devices;
  int64_t replicas;
  bool factors;
  /// Pinned as their replica is, not as a person asks.
  llvm::DenseSet<Operation *> byReplica;
};

struct PinReplicas : public baechi::impl::PinReplicasBase<PinReplicas> {
  using PinReplicasBase::PinReplicasBase;

  void runOnOperation() override {
    FailureOr<FunctionOpInterface> step = findStep(getOperation());
    if (failed(step))
      return signalPassFailure();
    auto replicas = (*step)->getAttrOfType<IntegerAttr>(kReplicas);
    if (!replicas)
      return;
    setExchange();
    std::optional<placement::Machine> target =
        machineOf(getOperation(), machine);
    if (!target)
      return signalPassFailure();
    SmallVector<StringAttr> devices;
    for (const placement::Device &device : target->devices)
      if (!placement::isPool(device))
        devices.push_back(StringAttr::get(&getContext(), device.name));
    if (std::string why =
            whyTooManyDevices(replicas.getInt(), int64_t(devices.size()));
        !why.empty()) {
      emitError(step->getLoc()) << why;
      return signalPassFailure();
    }
    Pinner(*step, devices, replicas.getInt(), factors).pin();
  }

private:
  void setExchange() {
    Builder builder(&getContext());
    if (!exchange.empty())
      getOperation()->setAttr(kExchange,
                              builder.getStringAttr(exchange.getValue()));
    if (sliceBytes > 0)
      getOperation()->setAttr(kSliceBytes,
                              builder.getI64IntegerAttr(sliceBytes));
  }
};
} // namespace

std::string baechi::whyTooManyDevices(int64_t replicas, int64_t devices) {
  if (replicas < 2 || devices <= replicas)
    return "";
  return "the step has " + std::to_string(replicas) +
         " replicas, and the machine " + std::to_string(devices) +
         " devices: give as many replicas as devices, or a multiple";
}
