//===- StepSimulationTest.cpp - Steps by the runtime's rules --------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/StepSimulation.h"
#include "gtest/gtest.h"

using namespace baechi;
using Kind = Instruction::Kind;

namespace {
Instruction compute(int64_t ns) { return {Kind::Operator, ns, 0, 0}; }
Instruction message(Kind kind, int32_t seq = 0, int32_t queue = 0) {
  return {kind, 0, queue, seq};
}

/// One queue from device 0 to device 1.
StepProgram program(std::vector<Instruction> sender,
                    std::vector<Instruction> receiver,
                    std::vector<StepProgram::Queue::Message> messages) {
  StepProgram program;
  program.devices = {std::move(sender), std::move(receiver)};
  program.queues = {{0, 1, std::move(messages)}};
  return program;
}

SimulatedStep simulate(const StepProgram &program,
                       const placement::RuntimeCosts &costs = {}) {
  std::optional<SimulatedStep> step = simulateStep(program, costs);
  EXPECT_TRUE(step.has_value());
  return step.value_or(SimulatedStep());
}

TEST(StepSimulation, AReceiverThatWaitsCopies) {
  SimulatedStep step = simulate(
      program({compute(1000), message(Kind::Send), compute(500)},
              {message(Kind::Recv), message(Kind::AwaitRecv), compute(300)},
              {{4096, 40}}));
  EXPECT_EQ(1000, step.copies[0][0].start);
  EXPECT_EQ(1040, step.copies[0][0].end);
  EXPECT_EQ(1040, step.operators[1][0].start);
  EXPECT_EQ(40, step.copyNs[1]);
  EXPECT_EQ(1500, step.makespanNs); // The sender goes on meanwhile.
}

TEST(StepSimulation, ACopyTakesTheTimeOfWhoDoesIt) {
  // The receiver computes first: the copy lies between its operators.
  SimulatedStep step = simulate(program({compute(100), message(Kind::Send)},
                                        {message(Kind::Recv), compute(1000),
                                         message(Kind::AwaitRecv), compute(10)},
                                        {{4096, 40}}));
  EXPECT_EQ(1000, step.copies[0][0].start);
  EXPECT_EQ(1050, step.makespanNs);
}

TEST(StepSimulation, ASenderThatWantsItsBufferBackCopies) {
  SimulatedStep step = simulate(
      program({compute(100), message(Kind::Send), message(Kind::AwaitSend)},
              {message(Kind::Recv), compute(1000), message(Kind::AwaitRecv)},
              {{4096, 40}}));
  EXPECT_EQ(100, step.copies[0][0].start);
  EXPECT_EQ(40, step.copyNs[0]);
  EXPECT_EQ(1000, step.makespanNs);
}

TEST(StepSimulation, AWaitingReceiverCopiesAhead) {
  // Message 1 is offered first; the receiver waits for message 0 meanwhile.
  StepProgram given = program(
      {message(Kind::Send, 1), compute(1000), message(Kind::Send, 0)},
      {message(Kind::Recv, 0), message(Kind::Recv, 1),
       message(Kind::AwaitRecv, 0), message(Kind::AwaitRecv, 1), compute(10)},
      {{64, 20}, {4096, 40}});
  SimulatedStep step = simulate(given);
  EXPECT_EQ(0, step.copies[0][1].start);
  EXPECT_EQ(1030, step.makespanNs);
  // One that would delay the awaited message too much stays.
  given.queues[0].messages[1].bytes = 1 << 20;
  step = simulate(given);
  EXPECT_EQ(1020, step.copies[0][1].start);
  EXPECT_EQ(1070, step.makespanNs);
}

TEST(StepSimulation, SleepersWakeLate) {
  placement::RuntimeCosts costs;
  costs.wakeNs = 7'000;
  auto waitFor = [&](int64_t ns) {
    return simulate(program({compute(ns), message(Kind::Send)},
                            {message(Kind::Recv), message(Kind::AwaitRecv)},
                            {{64, 20}}),
                    costs)
        .makespanNs;
  };
  EXPECT_EQ(5'020, waitFor(5'000)); // It still looks.
  EXPECT_EQ(107'020, waitFor(100'000));
}

TEST(StepSimulation, OverheadsAndContention) {
  placement::RuntimeCosts costs;
  costs.stepNs = 10'000;
  costs.operatorNs = 50;
  costs.sharedPercent = 120;
  StepProgram given =
      program({compute(1000), compute(1000)}, {compute(100)}, {});
  EXPECT_EQ(10'000 + 2 * (1200 + 50), simulate(given, costs).makespanNs);
  EXPECT_EQ(10'000 + 2 * (1000 + 50) + 150, singleDeviceNs(given, costs));
  // A device that computes alone shares nothing.
  given.devices[1].clear();
  EXPECT_EQ(10'000 + 2 * (1000 + 50), simulate(given, costs).makespanNs);
  // Nor does starting its step wake others.
  costs.aloneNs = 3'000;
  EXPECT_EQ(3'000 + 2 * (1000 + 50), simulate(given, costs).makespanNs);
  EXPECT_EQ(3'000 + 2 * (1000 + 50), singleDeviceNs(given, costs));
  given.devices[1] = {compute(100)};
  EXPECT_EQ(10'000 + 2 * (1200 + 50), simulate(given, costs).makespanNs);
}

TEST(StepSimulation, DevicesThatOutnumberCoresTakeTurns) {
  placement::RuntimeCosts costs;
  costs.cores = 1;
  StepProgram given = program({compute(1000)}, {compute(400)}, {});
  // Half each until the shorter has ended.
  SimulatedStep step = simulate(given, costs);
  EXPECT_EQ(step.makespanNs, 1400);
  EXPECT_EQ(step.operators[0][0].end, 1400);
  EXPECT_EQ(step.operators[1][0].end, 800);
  costs.cores = 2;
  EXPECT_EQ(simulate(given, costs).makespanNs, 1000);
  // Who waits takes no turn, and sleeps.
  costs.cores = 1;
  costs.wakeNs = 50;
  given = program({compute(1000), message(Kind::Send)},
                  {message(Kind::Recv), message(Kind::AwaitRecv), compute(400)},
                  {{64, 20}});
  EXPECT_EQ(simulate(given, costs).makespanNs, 1000 + 50 + 20 + 400);
  // Of three on two cores the first and the last share one.
  costs = {};
  costs.cores = 2;
  given = program({compute(1000)}, {compute(1000)}, {});
  given.devices.push_back({compute(1000)});
  step = simulate(given, costs);
  EXPECT_EQ(step.operators[0][0].end, 2000);
  EXPECT_EQ(step.operators[1][0].end, 1000);
  EXPECT_EQ(step.operators[2][0].end, 2000);
}

/// A latency of 100 ns, and 900 of bytes.
StepProgram overALink(std::vector<Instruction> sender,
                      std::vector<Instruction> receiver, size_t messages) {
  StepProgram linked =
      program(std::move(sender), std::move(receiver),
              std::vector<StepProgram::Queue::Message>(messages, {4096, 1000}));
  for (StepProgram::Queue::Message &message : linked.queues[0].messages)
    message.lastSliceNs = message.copyNs - 100;
  linked.queues[0].isCarried = true;
  linked.queues[0].lanes = {0};
  linked.queues[0].latencyNs = 100;
  return linked;
}

TEST(StepSimulation, LinksAreUsedWhileMessagesWait) {
  std::vector<Instruction> receiver = {
      message(Kind::Recv, 0), message(Kind::Recv, 1),
      message(Kind::AwaitRecv, 0), message(Kind::AwaitRecv, 1)};
  SimulatedStep backlog = simulate(
      overALink({message(Kind::Send, 0), message(Kind::Send, 1)}, receiver, 2));
  // The second one's bytes move in the first one's latency.
  EXPECT_EQ(1900, backlog.makespanNs);
  EXPECT_EQ(1800, backlog.links.usedNs);
  EXPECT_EQ(1800, backlog.links.waitedNs);
  // Nothing waits from 1000 to 3000.
  SimulatedStep rest = simulate(
      overALink({message(Kind::Send, 0), compute(3000), message(Kind::Send, 1)},
                receiver, 2));
  EXPECT_EQ(4000, rest.makespanNs);
  EXPECT_EQ(1800, rest.links.usedNs);
  EXPECT_EQ(1800, rest.links.waitedNs);
  // Each lane that a message takes waits for it.
  StepProgram duplex =
      overALink({message(Kind::Send, 0), message(Kind::Send, 1)}, receiver, 2);
  duplex.queues[0].lanes = {0, 3};
  EXPECT_EQ(3600, simulate(duplex).links.waitedNs);
}

TEST(StepSimulation, WhatArrivesFirstWakesItsReceiver) {
  // The second device waits for a short message when a long one to it begins.
  StepProgram given = overALink({compute(100), message(Kind::Send)},
                                {message(Kind::Recv), message(Kind::Recv, 0, 1),
                                 message(Kind::AwaitRecv, 0, 1), compute(10)},
                                1);
  given.queues[0].messages[0].lastSliceNs = 50'000;
  given.devices.push_back({compute(300), message(Kind::Send, 0, 1)});
  given.queues.push_back({2, 1, {{4096, 1000}}, /*isCarried=*/true, {1}, 100});
  given.queues[1].messages[0].lastSliceNs = 900;
  EXPECT_EQ(300 + 1000 + 10, simulate(given).operators[1][0].end);
}

TEST(StepSimulation, LinksAreUsedInStepsThatOverlap) {
  std::optional<SimulatedPeriod> period = simulateOverlap(
      overALink({compute(500), message(Kind::Send)},
                {message(Kind::Recv), message(Kind::AwaitRecv)}, 1),
      {});
  ASSERT_TRUE(period);
  // The sender leaves its step when the message has arrived.
  EXPECT_EQ(1500, period->ns);
  EXPECT_EQ(900, period->links.usedNs);
  EXPECT_EQ(900, period->links.waitedNs);
}

TEST(StepSimulation, ACarrierWithoutAProcessorTakesADevices) {
  // A message passes its link at 1100, while the sender computes on.
  using Ends = std::pair<int64_t, int64_t>;
  auto endsOf = [](int64_t receiverNs, int64_t bytesPerUs) {
    StepProgram given =
        overALink({compute(100), message(Kind::Send), compute(5000)},
                  {message(Kind::Recv), compute(receiverNs),
                   message(Kind::AwaitRecv), compute(10)},
                  1);
    given.queues[0].isSimulated = true;
    given.queues[0].messages[0].bytes = 4000;
    given.carrierNs = 50;
    given.carrierBytesPerUs = bytesPerUs;
    SimulatedStep step = simulate(given);
    return Ends(step.operators[0][1].end, step.operators[1][1].end);
  };
  // It has a processor of its own.
  EXPECT_EQ(Ends(5100, 1110), endsOf(300, 0));
  // That of the receiver, which waits: 50 and 200 more.
  EXPECT_EQ(Ends(5100, 1360), endsOf(300, 20'000));
  // None is free: the first device's.
  EXPECT_EQ(Ends(5350, 3010), endsOf(3000, 20'000));
}

TEST(StepSimulation, APoolThatCopiesIsStarted) {
  placement::RuntimeCosts costs;
  costs.stepNs = 9000;
  costs.aloneNs = 400;
  StepProgram given =
      program({compute(1000), message(Kind::Send), message(Kind::AwaitSend)},
              {message(Kind::Recv), message(Kind::AwaitRecv)}, {{4096, 40}});
  given.isPool = {0, 1};
  EXPECT_EQ(1040 + 9000, simulate(given, costs).makespanNs);
  // In whose arena nothing waits, that has no thread in the step.
  given.devices = {{compute(1000)}, {}};
  given.queues = {};
  EXPECT_EQ(1000 + 400, simulate(given, costs).makespanNs);
}

TEST(StepSimulation, AStepThatHangsHasNoTime) {
  EXPECT_FALSE(simulateStep(
      program({}, {message(Kind::Recv), message(Kind::AwaitRecv)}, {{64, 20}}),
      {}));
}
} // namespace
