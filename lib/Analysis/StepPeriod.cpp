//===- StepPeriod.cpp - Steps that overlap, as the runtime runs them ------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/StepSimulation.h"
#include "llvm/ADT/STLExtras.h"

using namespace baechi;
using Kind = Instruction::Kind;

int64_t baechi::numComputing(const StepProgram &program) {
  return llvm::count_if(program.devices, [](const auto &instructions) {
    return llvm::any_of(instructions, [](const Instruction &instruction) {
      return instruction.kind == Kind::Operator;
    });
  });
}

int64_t baechi::singleDeviceNs(const StepProgram &program,
                               const placement::RuntimeCosts &costs) {
  int64_t ns = costs.startNs(/*several=*/false);
  for (auto [number, device] : llvm::enumerate(program.devices))
    for (const Instruction &instruction : device)
      if (instruction.kind == Kind::Operator &&
          !(number < program.isPool.size() && program.isPool[number]))
        ns += instruction.ns + costs.operatorNs;
  return ns;
}

int64_t baechi::leastOnOneGpuNs(const StepProgram &program) {
  double ns = 0;
  for (const GpuOperator &op : program.ofGpus)
    ns += double(op.ns) * shareOfGpu(op);
  return int64_t(ns);
}

StepProgram baechi::unrolled(const StepProgram &program, int steps) {
  StepProgram all = program;
  all.devices.assign(program.devices.size(), {});
  for (StepProgram::Queue &queue : all.queues) {
    auto once = queue.messages;
    for (int step = 1; step < steps; ++step) {
      for (auto &message : once)
        message.step = step;
      queue.messages.insert(queue.messages.end(), once.begin(), once.end());
    }
  }
  auto messageOf = [&](const Instruction &i) -> const auto & {
    return program.queues[i.queue].messages[i.seq];
  };
  for (auto [number, instructions] : llvm::enumerate(program.devices))
    for (int step = 0; step < steps; ++step) {
      auto add = [&](Instruction instruction, int of) {
        if (instruction.kind != Kind::Operator &&
            instruction.kind != Kind::LocalCopy)
          instruction.seq +=
              of * int32_t(program.queues[instruction.queue].messages.size());
        all.devices[number].push_back(instruction);
      };
      for (const Instruction &instruction : instructions) {
        bool isAwait = instruction.kind == Kind::AwaitSend ||
                       instruction.kind == Kind::AwaitRecv;
        bool isCarried = isAwait && messageOf(instruction).carried;
        if (!isCarried) {
          add(instruction, step);
        } else if (instruction.ofLastStep && step > 0) {
          Instruction await = instruction;
          await.ofLastStep = false;
          add(await, step - 1);
        } else if (!instruction.ofLastStep && step + 1 == steps) {
          add(instruction, step);
        }
      }
      // A device leaves a step when its messages are delivered.
      for (auto [queue, entry] : llvm::enumerate(program.queues))
        for (auto [seq, message] : llvm::enumerate(entry.messages)) {
          bool sends = size_t(entry.from) == number;
          if (message.carried || (!sends && size_t(entry.to) != number) ||
              (message.lent && !sends))
            continue;
          add({sends ? Kind::AwaitSend : Kind::AwaitRecv, 0, int32_t(queue),
               int32_t(seq)},
              step);
        }
    }
  return all;
}

std::optional<SimulatedPeriod>
baechi::simulateOverlap(const StepProgram &program,
                        const placement::RuntimeCosts &costs) {
  constexpr int few = 3, more = 7;
  std::optional<SimulatedStep> first =
                                   simulateStep(unrolled(program, few), costs),
                               last =
                                   simulateStep(unrolled(program, more), costs);
  if (!first || !last)
    return std::nullopt;
  auto each = [](int64_t ofMore, int64_t ofFew) {
    return (ofMore - ofFew) / (more - few);
  };
  return SimulatedPeriod{each(last->makespanNs, first->makespanNs),
                         {each(last->links.usedNs, first->links.usedNs),
                          each(last->links.waitedNs, first->links.waitedNs)}};
}

std::optional<int64_t>
baechi::simulatePeriod(const StepProgram &program,
                       const placement::RuntimeCosts &costs) {
  std::optional<SimulatedPeriod> period = simulateOverlap(program, costs);
  return period ? std::optional(period->ns) : std::nullopt;
}
