//===- StepSimulation.h - A step as the runtime runs it ---------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// The time that a lowered program takes, by the runtime's own rules
/// (runtime/core/Exchange.h, Baechi/Runtime/Rules.h). A host device does one
/// thing at a time, and a copy takes the time of the device that does it. A GPU
/// runs what it does between two messages as one graph (GpuRun.h), after what
/// it did before; copies that it takes part in run beside, one at a time in
/// each direction of two devices. Each GPU is taken to be one of its own. The
/// thread that moves the messages of simulated links (runtime/core/Carrier.h)
/// takes nobody's time, but for where it shares the devices' processors: there
/// it copies one message after the other once they have passed their links, on
/// a processor that has nothing to do, or else on its last one, whose device it
/// holds up.
/// Placers work with simpler rules, under which transfers overlap computation
/// and operators do not; this is what a report compares with the measured step.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_ANALYSIS_STEPSIMULATION_H
#define BAECHI_ANALYSIS_STEPSIMULATION_H

#include "Baechi/Analysis/GpuRun.h"
#include "Baechi/Dialect/SimulatedNetwork.h"
#include "Baechi/Placement/Model/Problem.h"
#include "mlir/IR/BuiltinOps.h"

namespace baechi {

/// What a device does next. Messages are named by queue and position in it.
struct Instruction {
  /// A lent message has no Recv; its AwaitSend waits for the GiveBack.
  enum class Kind {
    Operator,
    LocalCopy,
    Send,
    Recv,
    AwaitSend,
    AwaitRecv,
    GiveBack
  };
  Kind kind;
  /// Operators and local copies: their time alone.
  int64_t ns = 0;
  int32_t queue = 0;
  int32_t seq = 0;
  /// An await of what the step before has offered.
  bool ofLastStep = false;
  /// Operators and local copies of GPUs: which of `StepProgram::ofGpus`.
  int32_t ofGpu = -1;
};

/// A lowered program: what each device does, and the queues' messages.
struct StepProgram {
  struct Queue {
    int32_t from = 0;
    int32_t to = 0;
    struct Message {
      int64_t bytes = 0;
      /// What its copy takes, or the rendezvous of one that is lent, ns.
      int64_t copyNs = 0;
      bool lent = false;
      /// The plan's start.
      int64_t plannedNs = 0;
      /// Offered in one step and awaited in the next, by both ends.
      bool carried = false;
      /// Of an exchange: earlier steps' go first, and of a step smaller ones.
      int step = 0;
      int64_t priority = 0;
      /// On a simulated link: slices that are moved one by one, and how long
      /// the last one and the others have its lanes.
      int64_t slices = 1;
      int64_t sliceNs = 0;
      int64_t lastSliceNs = 0;
    };
    std::vector<Message> messages;
    /// A simulated link or a GPU moves them, while devices compute: one at a
    /// time where links have a lane in common, what the plan starts first
    /// before others.
    bool isCarried = false;
    std::vector<int32_t> lanes = {};
    /// Of the simulated link: so long after its bytes a message arrives, and
    /// others move.
    int64_t latencyNs = 0;
    /// It is one, and the carrier moves its messages.
    bool isSimulated = false;
  };
  std::vector<std::vector<Instruction>> devices;
  /// A device each: it only holds and copies.
  std::vector<uint8_t> isPool;
  /// What GPUs do, of all of them.
  std::vector<GpuOperator> ofGpus;
  std::vector<Queue> queues;
  /// Simulated links move messages by priority, and then as they are ready.
  bool hasExchange = false;
  /// Of the thread that moves the messages of simulated links, where it shares
  /// the devices' processors (kCarrierCosts): what a message takes of one, and
  /// how fast it copies; 0: it has one of its own.
  int64_t carrierNs = 0;
  int64_t carrierBytesPerUs = 0;
};

/// How many devices have operators.
int64_t numComputing(const StepProgram &program);

/// Of all lanes of simulated links, as runtime::LaneRecord has one's.
struct LinkUse {
  int64_t usedNs = 0;
  int64_t waitedNs = 0;
};

struct SimulatedStep {
  int64_t makespanNs = 0;
  LinkUse links;
  /// Of each device's operators, in order.
  std::vector<std::vector<SimulatedInterval>> operators;
  /// Of each queue's messages: their copies.
  std::vector<std::vector<SimulatedInterval>> copies;
  /// A device each: the time that it spent copying.
  std::vector<int64_t> copyNs;
};

/// Several steps that overlap (Session::steps), as one: a device begins its
/// next step when its messages are delivered, but for those that are carried.
StepProgram unrolled(const StepProgram &program, int steps);

/// From one of several steps that overlap to the next, without those at the
/// start.
struct SimulatedPeriod {
  int64_t ns = 0;
  LinkUse links;
};

/// nullopt where the step is not free of deadlock.
std::optional<SimulatedPeriod>
simulateOverlap(const StepProgram &program,
                const placement::RuntimeCosts &costs);

/// The time alone.
std::optional<int64_t> simulatePeriod(const StepProgram &program,
                                      const placement::RuntimeCosts &costs);

/// Runs \p program by the runtime's rules; what is carried is awaited at the
/// step's end. The step must be free of deadlock
/// (--baechi-verify-partitioned); nullopt where it is not.
std::optional<SimulatedStep> simulateStep(const StepProgram &program,
                                          const placement::RuntimeCosts &costs);

/// The same operators, one after the other on one device: of GPUs, which run
/// some of them at the same time, the most that it can be.
int64_t singleDeviceNs(const StepProgram &program,
                       const placement::RuntimeCosts &costs);

/// What GPUs do would not take less than that on one of them, however much of
/// it runs at the same time.
int64_t leastOnOneGpuNs(const StepProgram &program);

/// The program of a module after --baechi-plan-memory. \p machine has the
/// links. Fails, with an error, when the module is no partitioned program.
mlir::FailureOr<StepProgram> readStepProgram(mlir::ModuleOp module,
                                             const placement::Machine &machine);

} // namespace baechi

#endif // BAECHI_ANALYSIS_STEPSIMULATION_H
