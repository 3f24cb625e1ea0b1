//===- MessageGroupsTest.cpp - Messages that cannot wait for each other ---===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/MessageGroups.h"
#include "gtest/gtest.h"
#include <random>

using namespace baechi;
using Kind = Instruction::Kind;
using Groups = std::vector<std::vector<int64_t>>;

namespace {
Instruction at(Kind kind, int32_t queue, int32_t seq = 0) {
  return {kind, 0, queue, seq};
}

StepProgram programOf(std::vector<std::vector<Instruction>> devices,
                      std::vector<StepProgram::Queue> queues) {
  StepProgram program;
  program.devices = std::move(devices);
  program.queues = std::move(queues);
  return program;
}

TEST(MessageGroups, WhatNobodyWaitsForIsOneGroup) {
  // An exchange: both directions, two messages each.
  std::vector<Instruction> a, b;
  for (int32_t seq : {0, 1}) {
    a.insert(a.end(), {at(Kind::Send, 0, seq), at(Kind::Recv, 1, seq)});
    b.insert(b.end(), {at(Kind::Recv, 0, seq), at(Kind::Send, 1, seq)});
  }
  for (int32_t seq : {0, 1}) {
    a.push_back(at(Kind::AwaitRecv, 1, seq));
    b.push_back(at(Kind::AwaitRecv, 0, seq));
  }
  StepProgram program = programOf({a, b}, {{0, 1, {{}, {}}}, {1, 0, {{}, {}}}});
  EXPECT_EQ((Groups{{0, 0}, {0, 0}}),
            *groupMessages(program, {{5, 6}, {7, 8}}));
}

TEST(MessageGroups, WhatIsOfferedAfterAnAwaitComesLater) {
  // An answer, although its buffer is posted first and it is planned earlier.
  StepProgram program = programOf(
      {{at(Kind::Recv, 1), at(Kind::Send, 0), at(Kind::AwaitRecv, 1)},
       {at(Kind::Recv, 0), at(Kind::AwaitRecv, 0), at(Kind::Send, 1)}},
      {{0, 1, {{}}}, {1, 0, {{}}}});
  EXPECT_EQ((Groups{{0}, {1}}), *groupMessages(program, {{9}, {1}}));
  // A buffer that is wanted back is waited for, too.
  program.devices = {
      {at(Kind::Send, 0), at(Kind::AwaitSend, 0), at(Kind::Recv, 1)},
      {at(Kind::Recv, 0), at(Kind::Send, 1)}};
  EXPECT_EQ((Groups{{0}, {1}}), *groupMessages(program, {{9}, {1}}));
}

TEST(MessageGroups, GoByThePlannedStarts) {
  // A pipeline of three devices: the second message of the first may be before
  // the first one's consequence or after it.
  StepProgram program =
      programOf({{at(Kind::Send, 0, 0), at(Kind::Send, 0, 1)},
                 {at(Kind::Recv, 0, 0), at(Kind::Recv, 0, 1),
                  at(Kind::AwaitRecv, 0, 0), at(Kind::Send, 1, 0)},
                 {at(Kind::Recv, 1, 0)}},
                {{0, 1, {{}, {}}}, {1, 2, {{}}}});
  EXPECT_EQ((Groups{{0, 0}, {1}}), *groupMessages(program, {{0, 1}, {2}}));
  EXPECT_EQ((Groups{{0, 1}, {1}}), *groupMessages(program, {{0, 3}, {2}}));
}

TEST(MessageGroups, CircularWaitsHaveNone) {
  StepProgram program = programOf(
      {{at(Kind::Recv, 1), at(Kind::AwaitRecv, 1), at(Kind::Send, 0)},
       {at(Kind::Recv, 0), at(Kind::AwaitRecv, 0), at(Kind::Send, 1)}},
      {{0, 1, {{}}}, {1, 0, {{}}}});
  EXPECT_FALSE(groupMessages(program, {{0}, {0}}));
}

TEST(MessageGroups, WhatNobodySendsHasNone) {
  StepProgram program =
      programOf({{at(Kind::Send, 0)},
                 {at(Kind::Recv, 0), at(Kind::Recv, 0, 1), at(Kind::Recv, 3)}},
                {{0, 1, {{}}}});
  EXPECT_FALSE(groupMessages(program, {{0}}));
}

/// Messages moved one after the other on each device, in the order of their
/// groups and any order within: whether all devices come to their end.
bool endsOneByOne(const StepProgram &program, const Groups &groups,
                  std::mt19937 &random) {
  std::vector<std::pair<int32_t, int32_t>> order;
  for (size_t q = 0; q < groups.size(); ++q)
    for (size_t seq = 0; seq < groups[q].size(); ++seq)
      order.emplace_back(q, seq);
  std::shuffle(order.begin(), order.end(), random);
  auto groupOf = [&](std::pair<int32_t, int32_t> m) {
    return groups[m.first][m.second];
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](auto a, auto b) { return groupOf(a) < groupOf(b); });
  size_t devices = program.devices.size();
  // Of each device: its next instruction, and its messages in order.
  std::vector<size_t> next(devices, 0), head(devices, 0);
  std::vector<std::vector<std::pair<int32_t, int32_t>>> own(devices);
  for (auto message : order)
    for (int32_t end :
         {program.queues[message.first].from, program.queues[message.first].to})
      own[end].push_back(message);
  std::map<std::pair<int32_t, int32_t>, int> offers;
  std::set<std::pair<int32_t, int32_t>> moved;
  for (bool any = true; any;) {
    any = false;
    for (size_t device = 0; device < devices; ++device)
      for (size_t &step = next[device]; step < program.devices[device].size();
           ++step, any = true) {
        const Instruction &now = program.devices[device][step];
        std::pair<int32_t, int32_t> message{now.queue, now.seq};
        if (now.kind == Kind::Send || now.kind == Kind::Recv)
          ++offers[message];
        else if (now.kind != Kind::Operator && !moved.count(message))
          break;
      }
    // A message moves when it is the next one at both of its ends.
    for (auto message : order) {
      const StepProgram::Queue &queue = program.queues[message.first];
      auto isNext = [&](int32_t end) {
        return head[end] < own[end].size() && own[end][head[end]] == message;
      };
      if (offers[message] < 2 || !isNext(queue.from) || !isNext(queue.to))
        continue;
      ++head[queue.from];
      ++head[queue.to];
      moved.insert(message);
      any = true;
    }
  }
  return moved.size() == order.size();
}

/// Random programs that end: whatever is awaited comes from a global order.
TEST(MessageGroups, OneByOneEveryStepEnds) {
  std::mt19937 random(7);
  auto below = [&](size_t n) { return size_t(random() % n); };
  int inverted = 0;
  for (int round = 0; round < 300; ++round) {
    size_t devices = 2 + below(4);
    StepProgram program;
    program.devices.resize(devices);
    for (size_t from = 0; from < devices; ++from)
      for (size_t to = 0; to < devices; ++to)
        if (from != to)
          program.queues.push_back({int32_t(from), int32_t(to), {}});
    Groups starts(program.queues.size());
    std::vector<std::vector<Instruction>> awaits(devices);
    for (size_t i = 0, n = 5 + below(30); i < n; ++i) {
      size_t q = below(program.queues.size());
      StepProgram::Queue &queue = program.queues[q];
      auto seq = int32_t(queue.messages.size());
      queue.messages.emplace_back();
      starts[q].push_back(int64_t(below(100)));
      for (bool sends : {true, false}) {
        int32_t end = sends ? queue.from : queue.to;
        program.devices[end].push_back(
            at(sends ? Kind::Send : Kind::Recv, int32_t(q), seq));
        awaits[end].push_back(
            at(sends ? Kind::AwaitSend : Kind::AwaitRecv, int32_t(q), seq));
      }
      // What has been offered may be awaited now, or at the end.
      for (std::vector<Instruction> &pending : awaits)
        if (!pending.empty() && below(3) == 0) {
          size_t pick = below(pending.size());
          program.devices[&pending - awaits.data()].push_back(pending[pick]);
          pending.erase(pending.begin() + ptrdiff_t(pick));
        }
    }
    std::optional<Groups> groups = groupMessages(program, starts);
    ASSERT_TRUE(groups);
    for (int shuffle = 0; shuffle < 3; ++shuffle)
      EXPECT_TRUE(endsOneByOne(program, *groups, random)) << round;
    // One group would not do: the test can fail.
    Groups one = *groups;
    for (std::vector<int64_t> &queue : one)
      std::fill(queue.begin(), queue.end(), 0);
    inverted += !endsOneByOne(program, one, random);
  }
  EXPECT_GT(inverted, 100);
}
} // namespace
