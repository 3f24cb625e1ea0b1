//===- RankChain.h - Ranks that send one message a step -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_UNITTESTS_RUNTIME_RANKCHAIN_H
#define BAECHI_UNITTESTS_RUNTIME_RANKCHAIN_H

#include "RankThreads.h"

#include <gtest/gtest.h>

namespace baechi::runtime::test {

/// Ranks, and a program of one message a step.
class RankChainTest : public testing::Test, protected RankThreads {
protected:
  void expectNoErrors() {
    EXPECT_EQ(0, hub->wrong);
    for (size_t rank = 0; rank < members.size(); ++rank) {
      EXPECT_EQ("", createErrors[rank]);
      EXPECT_EQ("", followErrors[rank]);
    }
  }

  /// One message a step from the first device to the second.
  void buildChain() {
    program = makeProgram(2);
    addQueue(program, 0, 1, {64});
    bodies[0] = [](Context context, char *arena) {
      return baechi_send(context, 0, 0, arena);
    };
    bodies[1] = [](Context context, char *arena) -> int32_t {
      return baechi_recv(context, 0, 0, arena) ||
             baechi_await_recv(context, 0, 0);
    };
  }
};

} // namespace baechi::runtime::test

#endif
