//===- TrainingProgram.h - Replicas in small -------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_UNITTESTS_RUNTIME_TRAININGPROGRAM_H
#define BAECHI_UNITTESTS_RUNTIME_TRAININGPROGRAM_H

#include "GivenCalls.h"
#include "TestPrograms.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <thread>
#include <vector>

namespace baechi::runtime::test {

/// Parameters, each of which one device owns, updates with what all others make
/// of all parameters, and sends to them: replicas in small.
struct Training {
  int32_t devices = 2;
  std::vector<int32_t> owners;  ///< by parameter
  std::vector<int64_t> numbers; ///< that a parameter has
  bool hasNetwork = false;

  size_t parameters() const { return owners.size(); }
  /// A pair's contributions come first, then what is carried.
  int32_t queueOf(int32_t from, int32_t to) const {
    return from * (devices - 1) + to - int32_t(to > from);
  }
  int32_t seqOf(int32_t from, int32_t to, size_t parameter) const {
    int32_t seq = 0;
    bool isCarried = owners[parameter] == from;
    for (size_t i = 0; i < (isCarried ? parameters() : parameter); ++i)
      seq += owners[i] == to;
    for (size_t i = 0; isCarried && i < parameter; ++i)
      seq += owners[i] == from;
    return seq;
  }
  /// Places in an arena: the parameter, what the device makes, and what it
  /// gets.
  static constexpr int64_t room = 1024;
  static int64_t valueAt(size_t parameter) { return int64_t(parameter) * room; }
  int64_t madeAt(size_t parameter) const {
    return int64_t(parameters() + parameter) * room;
  }
  int64_t gotAt(size_t parameter, int32_t from) const {
    return int64_t((2 + size_t(from)) * parameters() + parameter) * room;
  }
};

inline Training randomTraining(std::mt19937 &random) {
  Training training;
  training.devices = 2 + int32_t(random() % 3);
  training.hasNetwork = random() % 2 == 0;
  for (size_t i = 0, n = 1 + random() % 5; i < n; ++i) {
    training.owners.push_back(int32_t(random() % size_t(training.devices)));
    training.numbers.push_back(1 + int64_t(random() % 100));
  }
  return training;
}

inline Program makeTraining(const Training &training, std::mt19937 &random) {
  Program program =
      makeProgram(size_t(training.devices),
                  training.gotAt(training.parameters(), training.devices - 1));
  for (int32_t from = 0; from < training.devices; ++from)
    for (int32_t to = 0; to < training.devices; ++to) {
      if (from == to)
        continue;
      std::vector<int64_t> sizes;
      size_t contributions = 0;
      for (int32_t owner : {to, from})
        for (size_t i = 0; i < training.parameters(); ++i)
          if (training.owners[i] == owner) {
            sizes.push_back(8 * training.numbers[i]);
            contributions += owner == to;
          }
      addQueue(program, from, to, sizes);
      QueueInfo &queue = program.queues.back();
      for (size_t seq = 0; seq < sizes.size(); ++seq) {
        queue.messages[seq].carried = seq >= contributions;
        queue.messages[seq].priority = int64_t(random() % 4);
      }
      if (training.hasNetwork)
        queue.link = SimulatedLink{
            2000, 200, {random() % 2 ? from : from * training.devices + to}};
    }
  for (size_t i = 0; i < training.parameters(); ++i) {
    addArgument(program, training.owners[i], Training::valueAt(i),
                8 * training.numbers[i]);
    for (int32_t device = 0; device < training.devices; ++device)
      if (device != training.owners[i])
        program.arguments.back().copies.push_back(
            {device, Training::valueAt(i)});
  }
  if (random() % 3)
    program.exchange =
        ExchangeOrder{random() % 2 ? std::optional<int64_t>(8 << random() % 6)
                                   : std::nullopt};
  return program;
}

inline void dawdleSeldom(std::mt19937 &random) {
  if (random() % 6 == 0)
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 100));
}

using Values = std::vector<std::vector<uint64_t>>;

inline uint64_t sumOf(uint64_t sum, const uint64_t *values, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    sum = sum * 31 + values[i];
  return sum;
}
inline uint64_t madeOf(uint64_t sum, int32_t device, size_t parameter,
                       int64_t i) {
  return (sum ^ uint64_t(device * 7 + 1)) * (parameter * 13 + size_t(i) + 1);
}

inline Body trainingBody(const Training &training, int32_t device) {
  auto random = std::make_shared<std::mt19937>(device + 29);
  return [=](Context context, char *arena) -> int32_t {
    auto at = [&](int64_t offset) {
      return reinterpret_cast<uint64_t *>(arena + offset);
    };
    size_t count = training.parameters();
    std::vector<size_t> any(count);
    std::iota(any.begin(), any.end(), size_t(0));
    uint64_t sum = 17;
    for (size_t i = 0; i < count; ++i) {
      int32_t owner = training.owners[i];
      if (owner != device) {
        int32_t queue = training.queueOf(owner, device);
        int32_t seq = training.seqOf(owner, device, i);
        if (baechi_await_recv(context, queue, seq))
          return 1;
      }
      sum = sumOf(sum, at(Training::valueAt(i)), training.numbers[i]);
      dawdleSeldom(*random);
    }
    std::shuffle(any.begin(), any.end(), *random);
    for (size_t i : any) {
      int32_t owner = training.owners[i];
      for (int64_t n = 0; n < training.numbers[i]; ++n)
        at(training.madeAt(i))[n] = madeOf(sum, device, i, n);
      if (owner == device) {
        for (int32_t from = 0; from < training.devices; ++from)
          if (from != device &&
              baechi_recv(context, training.queueOf(from, device),
                          training.seqOf(from, device, i),
                          at(training.gotAt(i, from))))
            return 1;
      } else if (baechi_send(context, training.queueOf(device, owner),
                             training.seqOf(device, owner, i),
                             at(training.madeAt(i))) ||
                 baechi_recv(context, training.queueOf(owner, device),
                             training.seqOf(owner, device, i),
                             at(Training::valueAt(i)))) {
        return 1;
      }
    }
    std::shuffle(any.begin(), any.end(), *random);
    for (size_t i : any) {
      if (training.owners[i] != device)
        continue;
      for (int32_t other = 0; other < training.devices; ++other)
        if (other != device &&
            (baechi_await_recv(context, training.queueOf(other, device),
                               training.seqOf(other, device, i)) ||
             baechi_await_send(context, training.queueOf(device, other),
                               training.seqOf(device, other, i))))
          return 1;
      uint64_t *value = at(Training::valueAt(i));
      for (int64_t n = 0; n < training.numbers[i]; ++n) {
        value[n] *= 5;
        for (int32_t from = 0; from < training.devices; ++from)
          value[n] =
              value[n] * 3 + (from == device ? at(training.madeAt(i))[n]
                                             : at(training.gotAt(i, from))[n]);
      }
      for (int32_t other = 0; other < training.devices; ++other)
        if (other != device &&
            baechi_send(context, training.queueOf(device, other),
                        training.seqOf(device, other, i), value))
          return 1;
      dawdleSeldom(*random);
    }
    // What others still read is written anew in the next step.
    for (size_t i = 0; i < count; ++i)
      if (training.owners[i] != device &&
          baechi_await_send(context,
                            training.queueOf(device, training.owners[i]),
                            training.seqOf(device, training.owners[i], i)))
        return 1;
    return 0;
  };
}

/// The same, by itself.
inline void trainAlone(const Training &training, Values &values) {
  uint64_t sum = 17;
  for (size_t i = 0; i < values.size(); ++i)
    sum = sumOf(sum, values[i].data(), training.numbers[i]);
  for (size_t i = 0; i < values.size(); ++i)
    for (int64_t n = 0; n < training.numbers[i]; ++n) {
      uint64_t &value = values[i][size_t(n)];
      value *= 5;
      for (int32_t from = 0; from < training.devices; ++from)
        value = value * 3 + madeOf(sum, from, i, n);
    }
}

inline std::vector<uint64_t> randomValues(int64_t count, std::mt19937 &random) {
  std::vector<uint64_t> values(static_cast<size_t>(count));
  for (uint64_t &value : values)
    value = random();
  return values;
}

/// Calls, each the next step; some set a parameter, which others may just have
/// been sent.
inline void trainByCalls(Session &session, const Training &training,
                         Values &values, int64_t count, std::mt19937 &random) {
  std::deque<std::vector<uint64_t>> set;
  std::vector<std::vector<const void *>> arguments;
  for (int64_t call = 0; call < count; ++call) {
    arguments.emplace_back(training.parameters(), nullptr);
    if (size_t i = random() % training.parameters(); random() % 3 == 0) {
      values[i] = set.emplace_back(randomValues(training.numbers[i], random));
      arguments.back()[i] = set.back().data();
    }
    trainAlone(training, values);
  }
  auto first = int64_t(random() % 3);
  Calls calls(first, arguments,
              std::vector<std::vector<void *>>(size_t(count)));
  ASSERT_SUCCESS(session.overlapCalls(first, calls));
  EXPECT_EQ(calls.endedCalls, count);
}

} // namespace baechi::runtime::test

#endif // BAECHI_UNITTESTS_RUNTIME_TRAININGPROGRAM_H
