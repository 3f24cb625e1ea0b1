//===- RankRing.h - Devices in a ring over ranks ----------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_UNITTESTS_RUNTIME_RANKRING_H
#define BAECHI_UNITTESTS_RUNTIME_RANKRING_H

#include "RankThreads.h"

#include <gmock/gmock.h>

namespace baechi::runtime::test {

inline constexpr int32_t messages = 6;
inline constexpr int64_t bytes = 1000;
inline constexpr int64_t slot = 1024;
inline constexpr int64_t half = messages * slot;

/// Device d sends the tensors of its arena's first half to the next one of
/// `count`, receives the previous one's into its second, and passes on.
inline Body ringBody(int32_t device, int32_t count) {
  return [=](Context context, char *arena) {
    int32_t out = device, in = (device + count - 1) % count;
    for (int32_t seq = 0; seq < messages; ++seq)
      if (baechi_recv(context, in, seq, arena + half + slot * seq))
        return 1;
    baechi_operator_begin(context, 0);
    // The last first: a queue's messages may come in any order.
    for (int32_t seq = messages; seq-- > 0;)
      if (baechi_send(context, out, seq, arena + slot * seq))
        return 1;
    baechi_operator_end(context, 0);
    baechi_operator_begin(context, 1);
    for (int32_t seq = 0; seq < messages; ++seq)
      if (baechi_await_recv(context, in, seq) ||
          (seq % 2 && baechi_await_send(context, out, seq)))
        return 1;
    baechi_operator_end(context, 1);
    for (int32_t seq = 0; seq < messages; seq += 2)
      if (baechi_await_send(context, out, seq))
        return 1;
    return 0;
  };
}

class RankRing : public testing::Test, protected RankThreads {
protected:
  void build(int32_t ranks, int32_t devices, bool overSockets = false) {
    if (overSockets)
      buildOverSockets(ranks);
    else
      RankThreads::build(ranks);
    program = makeProgram(size_t(devices), 2 * half);
    for (int32_t device = 0; device < devices; ++device) {
      addQueue(program, device, (device + 1) % devices,
               std::vector<int64_t>(messages, bytes));
      addArgument(program, device, 0, half);
      addResult(program, device, half, half);
      bodies[device] = ringBody(device, devices);
    }
  }

  /// Sets arguments, steps, and looks whether each device has the previous
  /// one's tensors.
  void expectRing(Session &session, int steps) {
    size_t devices = program.devices.size();
    std::vector<std::vector<char>> values(devices);
    for (int step = 0; step < steps; ++step) {
      for (size_t device = 0; device < devices; ++device) {
        values[device].clear();
        for (int64_t i = 0; i < half; ++i)
          values[device].push_back(
              char((i * int64_t(device + 3) + step) % 127 + 1));
        ASSERT_SUCCESS(
            session.setArgument(device, values[device].data(), half));
      }
      ASSERT_SUCCESS(session.step());
      std::vector<char> got(half);
      for (size_t device = 0; device < devices; ++device) {
        ASSERT_SUCCESS(session.getResult(device, got.data(), half));
        for (int64_t i = 0; i < half; ++i)
          ASSERT_EQ(i % slot < bytes
                        ? values[(device + devices - 1) % devices][i]
                        : 0,
                    got[i])
              << "device " << device << ", byte " << i;
        ASSERT_SUCCESS(session.getArgument(device, got.data(), half));
        ASSERT_EQ(values[device], got);
      }
    }
  }
};

} // namespace baechi::runtime::test

#endif // BAECHI_UNITTESTS_RUNTIME_RANKRING_H
