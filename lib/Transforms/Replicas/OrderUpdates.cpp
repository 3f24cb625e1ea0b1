//===- OrderUpdates.cpp - When owners compute updates -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A device's operators have one order. Where an update stands before its
// gradient arrives, all that follows waits; where it stands late, its
// parameter leaves late. When gradients arrive follows from the order of
// messages and from the updates' own places. So several orders are simulated
// (StepSimulation.h), steps that overlap: that of the plan, the updates after
// all else, the most urgent first, and then as gradients arrived in the last
// simulation, but for those that no other device waits for, as of a loss. The
// one of the shortest period is taken.
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/InPlace.h"
#include "Baechi/Analysis/MachineAttr.h"
#include "Baechi/Analysis/Program.h"
#include "Baechi/Analysis/StepSimulation.h"
#include "Messages.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/EquivalenceClasses.h"

using namespace mlir;
using namespace baechi;

namespace {
/// How often arrivals are simulated.
constexpr int rounds = 5;
/// Of the unrolled steps, the one whose arrivals are looked at.
constexpr int steps = 5, lookedAt = 3;

/// Operators that what other devices send leads to, and that lead to nothing
/// but next values: they may stand anywhere after what they read.
struct Update {
  size_t device = 0;
  SmallVector<Operation *>
      operations;                 ///< in order, with their awaits and sends
  SmallVector<MessageTag> awaits; ///< of this step
  int64_t priority = std::numeric_limits<int64_t>::max();
  /// How many of the device's other operators it follows at least, and does.
  size_t earliest = 0, place = 0;
  int64_t arrival = 0; ///< orders those of one place
  /// It overwrites what other updates read.
  bool isLast = false;
  /// Other devices wait for what it makes: not so for a loss, which is only
  /// returned.
  bool isSent = false;
};

/// A device's program without its updates.
struct Rest {
  SmallVector<Operation *> operators;
  Operation *end = nullptr; ///< before which all updates may stand
};

class Orderer {
public:
  Orderer(ModuleOp module, ArrayRef<DeviceProgram> programs)
      : module(module), programs(programs),
        machine(fromAttr(
            module->getAttrOfType<MachineAttr>(BaechiDialect::kMachine))),
        costs(machine.runtime.value_or(placement::RuntimeCosts())),
        messages(messagesOf(programs)) {}

  FailureOr<int64_t> run() {
    for (DeviceProgram program : programs)
      viewWhereMade(program.step.front());
    for (size_t device = 0; device < programs.size(); ++device)
      collect(device);
    if (updates.empty())
      return period();
    std::optional<SmallVector<Update>> best;
    SmallVector<Operation *> planned;
    for (DeviceProgram program : programs)
      for (Operation &op : program.step.front().without_terminator())
        planned.push_back(&op);
    FailureOr<int64_t> shortest = period();
    if (failed(shortest))
      return failure();
    for (Update &update : updates) {
      if (update.isLast)
        continue;
      update.place = rests[update.device].operators.size();
      update.arrival = update.priority;
    }
    for (int round = 0; round < rounds; ++round) {
      move();
      FailureOr<int64_t> next = period();
      if (failed(next))
        return failure();
      if (*next < *shortest) {
        shortest = next;
        best = updates;
      }
      if (failed(followArrivals()))
        return failure();
    }
    if (best) {
      updates = std::move(*best);
      move();
    } else {
      for (Operation *op : planned)
        op->moveBefore(op->getBlock()->getTerminator());
    }
    return shortest;
  }

private:
  using Positions = llvm::DenseMap<Operation *, int64_t>;

  /// An update must not wait for where a view of what it reads happens to
  /// stand.
  static void viewWhereMade(Block &body) {
    for (Operation &op : llvm::make_early_inc_range(body))
      if (isView(&op) && op.getNumOperands() == 1) {
        if (Operation *made = op.getOperand(0).getDefiningOp())
          op.moveAfter(made);
        else
          op.moveBefore(&body, body.begin());
      }
  }

  void collect(size_t device) {
    func::FuncOp step = programs[device].step;
    Block &body = step.front();
    Positions positions;
    for (Operation &op : body)
      positions[&op] = positions.size();
    llvm::SetVector<Operation *> moved = findMovable(body);
    llvm::SetVector<Operation *> last;
    if (!findLast(step, moved, last)) {
      moved.clear();
      last.clear();
    }
    llvm::EquivalenceClasses<Operation *> classes;
    for (Operation *op : moved) {
      classes.insert(op);
      for (Value value : valuesReadBy(op))
        if (Operation *made = value.getDefiningOp(); moved.contains(made))
          classes.unionSets(made, op);
    }
    for (const InPlaceUpdate &next : inPlaceUpdates(step))
      for (Operation *reader : readersOf(next.previous, next.updater))
        if (moved.contains(reader) && moved.contains(next.updater))
          classes.unionSets(reader, next.updater);
    Rest &rest = rests.emplace_back();
    llvm::DenseMap<Operation *, size_t> placeOf; // before each operation
    for (Operation &op : body) {
      placeOf[&op] = rest.operators.size();
      if (!moved.contains(&op) && !last.contains(&op) && isOperator(&op))
        rest.operators.push_back(&op);
    }
    rest.end = body.getTerminator();
    while (isa_and_nonnull<AwaitOp>(rest.end->getPrevNode()) &&
           rest.end->getPrevNode()->getNumResults() == 0)
      rest.end = rest.end->getPrevNode();
    llvm::DenseMap<Operation *, size_t> numbers;
    for (Operation *op : moved) {
      Operation *leader = classes.getLeaderValue(op);
      auto [known, isNew] = numbers.try_emplace(leader, updates.size());
      if (isNew)
        updates.emplace_back().device = device;
      updates[known->second].operations.push_back(op);
    }
    for (auto &[leader, number] : numbers)
      complete(updates[number], positions, placeOf);
    for (Operation *op : last) {
      Update &update = updates.emplace_back();
      update.device = device;
      update.operations.push_back(op);
      (void)addSends(op, update.operations);
      complete(update, positions, placeOf);
      update.place = rest.operators.size();
      update.arrival = std::numeric_limits<int64_t>::max();
      update.isLast = true;
    }
  }

  /// The other operators that overwrite what updates read, as the number of the
  /// step: these follow them all. False where that cannot be.
  static bool findLast(func::FuncOp step,
                       const llvm::SetVector<Operation *> &moved,
                       llvm::SetVector<Operation *> &last) {
    for (const InPlaceUpdate &next : inPlaceUpdates(step)) {
      if (moved.contains(next.updater) ||
          llvm::none_of(readersOf(next.previous, next.updater),
                        [&](Operation *op) { return moved.contains(op); }))
        continue;
      if (SmallVector<Operation *> sends; !addSends(next.updater, sends))
        return false;
      last.insert(next.updater);
    }
    return true;
  }

  /// The carried sends, and views, of what \p op makes; false where there is
  /// another reader.
  static bool addSends(Operation *op, SmallVectorImpl<Operation *> &sends) {
    return llvm::all_of(op->getUsers(), [&](Operation *user) {
      if (user->hasTrait<OpTrait::IsTerminator>())
        return true;
      sends.push_back(user);
      return user->hasAttr(kCarried) || (isView(user) && addSends(user, sends));
    });
  }

  static bool isOperator(Operation *op) {
    return !op->hasTrait<OpTrait::IsTerminator>() && !isView(op) &&
           !matchPattern(op, m_Constant()) &&
           !isa<SendOp, RecvOp, AwaitOp, AwaitCarriedOp, GiveBackOp>(op);
  }

  /// In the block's order; awaits and views of theirs, too.
  static llvm::SetVector<Operation *> findMovable(Block &body) {
    llvm::DenseSet<Operation *> leads; // to next values alone
    for (Operation &op : llvm::reverse(body)) {
      if (op.hasTrait<OpTrait::IsTerminator>() ||
          (isa<SendOp>(op) && op.hasAttr(kCarried))) {
        leads.insert(&op);
        continue;
      }
      if (isa<SendOp, RecvOp, AwaitCarriedOp, GiveBackOp>(op) ||
          op.getNumResults() == 0 || matchPattern(&op, m_Constant()))
        continue;
      if (llvm::all_of(op.getUsers(), [&](Operation *user) {
            return leads.contains(body.findAncestorOpInBlock(*user));
          }))
        leads.insert(&op);
    }
    llvm::DenseSet<Operation *> follows; // what was received in this step
    llvm::SetVector<Operation *> moved;
    for (Operation &op : body) {
      auto await = dyn_cast<AwaitOp>(op);
      bool receives =
          await && isa_and_nonnull<RecvOp>(await.getSource().getDefiningOp());
      if (!receives && llvm::none_of(valuesReadBy(&op), [&](Value value) {
            return follows.contains(value.getDefiningOp());
          }))
        continue;
      follows.insert(&op);
      if (!leads.contains(&op) || op.hasTrait<OpTrait::IsTerminator>())
        continue;
      // What is sent on, with what awaits it in the next step, stays where its
      // updater does: that may be read in this step, too, and then is not
      // moved.
      if ((isa<SendOp>(op) || isView(&op)) &&
          !moved.contains(op.getOperand(0).getDefiningOp()))
        continue;
      moved.insert(&op);
    }
    return moved;
  }

  /// What its first operators must come after, and what else goes with it.
  void complete(Update &update, Positions &positions,
                llvm::DenseMap<Operation *, size_t> &placeOf) {
    func::FuncOp step = programs[update.device].step;
    llvm::SmallPtrSet<Operation *, 16> inside(update.operations.begin(),
                                              update.operations.end());
    // The first of the rest's operators that it may stand before.
    auto follow = [&](Operation *op) {
      if (op && !inside.contains(op))
        update.earliest = std::max(
            update.earliest, placeOf.lookup(op) + (isOperator(op) ? 1 : 0));
    };
    for (Operation *op : update.operations) {
      for (Value value : valuesReadBy(op))
        follow(value.getDefiningOp());
      if (auto await = dyn_cast<AwaitOp>(op)) {
        auto recv = await.getSource().getDefiningOp<RecvOp>();
        update.awaits.emplace_back(recv.getQueue(), recv.getSeq());
      }
      update.isSent |= op->hasAttr(kCarried);
      if (op->hasAttr(kCarried) && op->hasAttr(kPriority))
        update.priority =
            std::min(update.priority,
                     op->getAttrOfType<IntegerAttr>(kPriority).getInt());
    }
    for (const InPlaceUpdate &next : inPlaceUpdates(step))
      if (inside.contains(next.updater))
        for (Operation *reader : readersOf(next.previous, next.updater))
          follow(reader);
    for (auto await : step.front().getOps<AwaitCarriedOp>())
      if (Operation *end = awaitedBy(await);
          isa_and_nonnull<SendOp>(end) &&
          llvm::is_contained(update.operations, end))
        update.operations.push_back(await);
    llvm::sort(update.operations, [&](Operation *a, Operation *b) {
      return positions.lookup(a) < positions.lookup(b);
    });
    update.place = placeOf.lookup(update.operations.front());
    update.arrival = positions.lookup(update.operations.front());
  }

  /// Puts all updates in their places.
  void move() {
    SmallVector<Update *> order;
    for (Update &update : updates)
      order.push_back(&update);
    llvm::stable_sort(order, [](Update *a, Update *b) {
      return std::tie(a->place, a->arrival) < std::tie(b->place, b->arrival);
    });
    for (Update *update : order) {
      const Rest &rest = rests[update->device];
      size_t place = std::max(update->place, update->earliest);
      Operation *before =
          place < rest.operators.size() ? rest.operators[place] : rest.end;
      for (Operation *op : update->operations)
        op->moveBefore(before);
    }
    placeAroundReaders(messages);
  }

  FailureOr<int64_t> period() {
    FailureOr<StepProgram> program = readStepProgram(module, machine);
    if (failed(program))
      return failure();
    return simulatePeriod(*program, costs)
        .value_or(std::numeric_limits<int64_t>::max());
  }

  /// Places each update before the first operator that began after all that it
  /// awaits had arrived.
  LogicalResult followArrivals() {
    FailureOr<StepProgram> program = readStepProgram(module, machine);
    if (failed(program))
      return failure();
    std::optional<SimulatedStep> simulated =
        simulateStep(unrolled(*program, steps), costs);
    if (!simulated)
      return success();
    for (Update &update : updates) {
      if (update.isLast)
        continue;
      update.arrival = 0;
      for (auto [queue, seq] : update.awaits)
        update.arrival = std::max(
            update.arrival,
            simulated
                ->copies[queue]
                        [lookedAt * program->queues[queue].messages.size() +
                         seq]
                .end);
    }
    for (auto [device, rest] : llvm::enumerate(rests)) {
      func::FuncOp step = programs[device].step;
      SmallVector<Operation *> all = operatorsOf(step);
      llvm::DenseMap<Operation *, size_t> numberOf;
      for (auto [number, op] : llvm::enumerate(all))
        numberOf[op] = number;
      for (Update &update : updates)
        if (update.device == device && update.isSent && !update.isLast)
          update.place =
              std::partition_point(
                  rest.operators.begin(), rest.operators.end(),
                  [&](Operation *op) {
                    return simulated
                               ->operators[device][lookedAt * all.size() +
                                                   numberOf.lookup(op)]
                               .start < update.arrival;
                  }) -
              rest.operators.begin();
    }
    return success();
  }

  ModuleOp module;
  ArrayRef<DeviceProgram> programs;
  placement::Machine machine;
  placement::RuntimeCosts costs;
  Messages messages;
  SmallVector<Rest> rests;
  SmallVector<Update> updates;
};
} // namespace

FailureOr<int64_t> baechi::orderUpdates(ModuleOp module,
                                        ArrayRef<DeviceProgram> programs) {
  return Orderer(module, programs).run();
}
