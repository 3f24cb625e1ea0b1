//===- StressTest.cpp - Random programs -----------------------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Random messages between random devices. Every device follows one common
/// order of events, so that no program can deadlock; when it waits for what it
/// has offered is random.
///
//===----------------------------------------------------------------------===//

#include "TestPrograms.h"

#include <atomic>
#include <random>

using namespace baechi::runtime;
using namespace baechi::runtime::test;

namespace {

struct Event {
  bool sends;
  int32_t queue;
  int32_t seq;
  /// Of the message's buffer in the device's arena.
  int64_t offset;
  /// Which earlier events of the device to wait for first.
  std::vector<size_t> awaits;
};

class RandomProgram {
public:
  RandomProgram(uint32_t seed, int32_t devices, int32_t messages)
      : program(makeProgram(devices, int64_t(messages) * slot)),
        events(devices) {
    std::mt19937 random(seed);
    for (int32_t from = 0; from < devices; ++from)
      for (int32_t to = 0; to < devices; ++to)
        if (from != to)
          addQueue(program, from, to, {});
    for (int32_t k = 0; k < messages; ++k) {
      int32_t queue = int32_t(random() % program.queues.size());
      QueueInfo &info = program.queues[queue];
      int32_t seq = int32_t(info.messages.size());
      int64_t bytes = 4 + int64_t(random() % (slot - 4));
      info.messages.push_back({"m", bytes, 0, 0});
      addEvent(random, info.from, {true, queue, seq, k * slot, {}});
      addEvent(random, info.to, {false, queue, seq, k * slot, {}});
    }
    // What was not waited for on the way is waited for at the end.
    for (auto &list : events)
      list.push_back({});
    for (size_t device = 0; device < events.size(); ++device)
      for (size_t i = 0; i + 1 < events[device].size(); ++i)
        events[device].back().awaits.push_back(i);
  }

  std::vector<Body> bodies() {
    std::vector<Body> result;
    for (size_t device = 0; device < events.size(); ++device)
      result.push_back([this, device](Context context, char *arena) {
        return run(context, arena, int32_t(device));
      });
    return result;
  }

  Program program;
  std::vector<std::vector<Event>> events;
  /// Which device fails, and before which of its events.
  std::atomic<int32_t> failingDevice{-1};
  std::atomic<size_t> failingEvent{0};
  std::atomic<int32_t> step{0};
  std::atomic<int32_t> wrongBytes{0};

private:
  static constexpr int64_t slot = 512;

  void addEvent(std::mt19937 &random, int32_t device, Event event) {
    std::vector<Event> &list = events[device];
    // An await of a receive leads back in the common order, so it is safe; a
    // send's may have to wait for a receive that comes later.
    for (size_t i = 0; i < list.size(); ++i)
      if (!list[i].sends && random() % 4 == 0)
        event.awaits.push_back(i);
    list.push_back(std::move(event));
  }

  static int32_t await(Context context, const Event &event) {
    return event.sends ? baechi_await_send(context, event.queue, event.seq)
                       : baechi_await_recv(context, event.queue, event.seq);
  }

  /// What message `seq` of `queue` says in the current step.
  char byteOf(const Event &event) const {
    return char(31 * step + 7 * event.queue + event.seq);
  }

  int32_t run(Context context, char *arena, int32_t device) {
    const std::vector<Event> &list = events[device];
    for (size_t i = 0; i < list.size(); ++i) {
      const Event &event = list[i];
      if (failingDevice == device && failingEvent == i)
        return baechi_fail(context, "chosen");
      for (size_t earlier : event.awaits)
        if (int32_t stop = await(context, list[earlier]))
          return stop;
      if (i + 1 == list.size())
        break;
      size_t bytes =
          size_t(program.queues[event.queue].messages[event.seq].bytes);
      char *buffer = arena + event.offset;
      std::memset(buffer, event.sends ? byteOf(event) : 0, bytes);
      if (int32_t stop =
              event.sends
                  ? baechi_send(context, event.queue, event.seq, buffer)
                  : baechi_recv(context, event.queue, event.seq, buffer))
        return stop;
    }
    for (const Event &event : list)
      if (&event != &list.back() && !event.sends) {
        const auto &message = program.queues[event.queue].messages[event.seq];
        for (int64_t i = 0; i < message.bytes; ++i)
          wrongBytes += arena[event.offset + i] != byteOf(event);
      }
    return 0;
  }
};

TEST(Stress, RandomProgramsAndRandomFailures) {
  // Others when tests are shuffled, as scripts/soak does.
  uint32_t first = 20 * testing::UnitTest::GetInstance()->random_seed();
  for (uint32_t seed = first; seed < first + 20; ++seed) {
    int32_t devices = 2 + int32_t(seed % 5);
    RandomProgram random(seed, devices, 40);
    auto session = makeSession(random.program, random.bodies());
    ASSERT_TRUE(session);
    std::mt19937 choice(seed);
    for (random.step = 0; random.step < 20; ++random.step) {
      bool fails = choice() % 3 == 0;
      int32_t device = int32_t(choice() % uint32_t(devices));
      random.failingDevice = fails ? device : -1;
      random.failingEvent = choice() % random.events[device].size();
      std::string error = session->step().message();
      if (fails)
        ASSERT_EQ("device host" + std::to_string(device) +
                      ", before its first operator: chosen",
                  error);
      else
        ASSERT_EQ("", error);
      ASSERT_EQ(0, random.wrongBytes);
    }
  }
}

} // namespace
