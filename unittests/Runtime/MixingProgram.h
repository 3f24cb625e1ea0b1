//===- MixingProgram.h - Devices that all need each other -------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_UNITTESTS_RUNTIME_MIXINGPROGRAM_H
#define BAECHI_UNITTESTS_RUNTIME_MIXINGPROGRAM_H

#include "TestPrograms.h"

#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <thread>
#include <vector>

namespace baechi::runtime::test {

/// Where a device's second number lies, as results are aligned.
constexpr size_t second = 8;

inline std::vector<char> stateOf(const std::vector<uint64_t> &values) {
  std::vector<char> data(72);
  std::memcpy(data.data(), &values[0], 8);
  std::memcpy(data.data() + 8 * second, &values[1], 8);
  return data;
}

/// Lets the other devices run ahead or behind.
inline void dawdleAtTimes(std::mt19937 &random) {
  if (random() % 4 == 0)
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 200));
}

/// How messages move.
enum class Way { Copied, Lent, Network };

/// A state of two numbers a device; in each step every device sends its first
/// number to all others, adds what it receives and its input of the step to the
/// second, and then changes the first. Its result is the second number.
///
/// Arena: the state, the input, and room for what is received.
inline Program makeMixing(int32_t devices, Way way) {
  Program program = makeProgram(size_t(devices), 4096);
  for (int32_t from = 0; from < devices; ++from)
    for (int32_t to = 0; to < devices; ++to)
      if (from != to) {
        addQueue(program, from, to, {8});
        program.queues.back().messages[0].lent = way == Way::Lent;
        if (way == Way::Network)
          program.queues.back().link =
              SimulatedLink{20'000, 100, {from * devices + to}};
      }
  for (int32_t device = 0; device < devices; ++device) {
    addArgument(program, device, 0, 72);
    addArgument(program, device, 128, 8);
    addResult(program, device, 64, 8);
  }
  return program;
}

inline Body mixingBody(int32_t device, int32_t devices, Way way, bool awaits) {
  auto random = std::make_shared<std::mt19937>(device + 17);
  return [=](Context context, char *arena) {
    auto *state = reinterpret_cast<uint64_t *>(arena);
    auto *input = reinterpret_cast<uint64_t *>(arena + 128);
    uint64_t sum = state[second] * 3 + *input;
    auto queueOf = [&](int32_t from, int32_t to) {
      return from * (devices - 1) + to - (to > from);
    };
    auto roomOf = [&](int32_t other) {
      return reinterpret_cast<uint64_t *>(arena + 192 + 64 * other);
    };
    // What is sent is a copy, which the next step writes anew.
    auto *sent = reinterpret_cast<uint64_t *>(arena + 1024);
    dawdleAtTimes(*random);
    *sent = state[0];
    for (int32_t other = 0; other < devices; ++other)
      if (other != device) {
        if (baechi_send(context, queueOf(device, other), 0, sent))
          return 1;
        if (way != Way::Lent &&
            baechi_recv(context, queueOf(other, device), 0, roomOf(other)))
          return 1;
      }
    for (int32_t other = 0; other < devices; ++other) {
      if (other == device)
        continue;
      const void *source = roomOf(other);
      int32_t queue = queueOf(other, device);
      if (way == Way::Lent ? baechi_borrow(context, queue, 0, &source)
                           : baechi_await_recv(context, queue, 0))
        return 1;
      dawdleAtTimes(*random);
      sum = sum * 31 + *static_cast<const uint64_t *>(source);
      if (way == Way::Lent && baechi_give_back(context, queue, 0))
        return 1;
    }
    for (int32_t other = 0; awaits && other < devices; ++other)
      if (other != device &&
          baechi_await_send(context, queueOf(device, other), 0))
        return 1;
    state[second] = sum;
    state[0] = state[0] * 5 + sum;
    return 0;
  };
}

/// The same, by itself.
struct Mixing {
  std::vector<std::vector<uint64_t>> results; ///< a device each
  std::vector<std::vector<uint64_t>> states;
};

inline Mixing mixAlone(int32_t devices,
                       const std::vector<std::vector<uint64_t>> &inputs) {
  Mixing mixing;
  mixing.results.resize(size_t(devices));
  for (int32_t device = 0; device < devices; ++device)
    mixing.states.push_back({uint64_t(device) + 1, 7});
  for (size_t step = 0; step < inputs[0].size(); ++step) {
    std::vector<std::vector<uint64_t>> before = mixing.states;
    for (size_t device = 0; device < size_t(devices); ++device) {
      uint64_t sum = before[device][1] * 3 + inputs[device][step];
      for (size_t other = 0; other < size_t(devices); ++other)
        if (other != device)
          sum = sum * 31 + before[other][0];
      mixing.states[device] = {before[device][0] * 5 + sum, sum};
      mixing.results[device].push_back(sum);
    }
  }
  return mixing;
}

} // namespace baechi::runtime::test

#endif // BAECHI_UNITTESTS_RUNTIME_MIXINGPROGRAM_H
