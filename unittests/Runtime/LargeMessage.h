//===- LargeMessage.h - A message of more than 2 GiB ------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_UNITTESTS_RUNTIME_LARGEMESSAGE_H
#define BAECHI_UNITTESTS_RUNTIME_LARGEMESSAGE_H

#include "TestPrograms.h"

#include <string>
#include <vector>

namespace baechi::runtime::test {

/// Two GPUs, and a message of more bytes than 31 bits can count: its first and
/// its last 64 bytes are arguments of the one and results of the other.
struct LargeMessage {
  static constexpr int64_t part = 64;
  static constexpr int64_t last = int64_t(1) << 31;
  static constexpr int64_t bytes = last + part;

  static Program program() {
    Program made = makeProgram(2, bytes);
    for (DeviceInfo &device : made.devices)
      device.kind = "cuda";
    addQueue(made, 0, 1, {bytes});
    for (int64_t at : {int64_t(0), last}) {
      addArgument(made, 0, at, part);
      addResult(made, 1, at, part);
    }
    return made;
  }

  static std::vector<Body> bodies() {
    return {[](Context context, char *arena) {
              return sendAndWait(context, 0, 0, arena);
            },
            [](Context context, char *arena) {
              return recvAndWait(context, 0, 0, arena);
            }};
  }

  static void arrives(Session &session) {
    const std::string sent[] = {std::string(part, 'f'), std::string(part, 'l')};
    for (size_t i : {0, 1})
      ASSERT_SUCCESS(session.setArgument(i, sent[i].data(), part));
    ASSERT_SUCCESS(session.step());
    for (size_t i : {0, 1}) {
      std::string got(part, ' ');
      ASSERT_SUCCESS(session.getResult(i, got.data(), part));
      EXPECT_EQ(sent[i], got);
    }
  }
};

} // namespace baechi::runtime::test

#endif // BAECHI_UNITTESTS_RUNTIME_LARGEMESSAGE_H
