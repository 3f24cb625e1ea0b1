//===- SessionTest.cpp - Steps, messages and values -----------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestPrograms.h"

#include <gmock/gmock.h>

#include <cstring>

using namespace baechi::runtime;
using namespace baechi::runtime::test;
using testing::HasSubstr;

namespace {

/// Doubles the number at 0 into the message to the other device and waits for
/// the answer at 64.
int32_t ping(baechi_context *context, char *arena) {
  int32_t number;
  std::memcpy(&number, arena, 4);
  number *= 2;
  std::memcpy(arena + 128, &number, 4);
  if (baechi_recv(context, 1, 0, arena + 64) ||
      baechi_send(context, 0, 0, arena + 128) ||
      baechi_await_send(context, 0, 0))
    return 1;
  return baechi_await_recv(context, 1, 0);
}

int32_t pong(baechi_context *context, char *arena) {
  if (baechi_recv(context, 0, 0, arena) || baechi_await_recv(context, 0, 0))
    return 1;
  int32_t number;
  std::memcpy(&number, arena, 4);
  number += 1;
  std::memcpy(arena + 64, &number, 4);
  if (baechi_send(context, 1, 0, arena + 64))
    return 1;
  return baechi_await_send(context, 1, 0);
}

Program pingPong() {
  Program program = makeProgram(2);
  addQueue(program, 0, 1, {4});
  addQueue(program, 1, 0, {4});
  ArgumentInfo argument;
  static_cast<BufferInfo &>(argument) = {"x", 0, 0, 4, ElementType::I32, {}};
  program.arguments = {argument};
  program.results = {{"y", 0, 64, 4, ElementType::I32, {}}};
  return program;
}

TEST(Session, PingPong) {
  auto session = makeSession(pingPong(), {ping, pong});
  ASSERT_TRUE(session);
  for (int32_t x = 0; x < 1000; ++x) {
    ASSERT_EQ("", messageOf(session->setArgument(0, &x, 4)));
    ASSERT_EQ("", messageOf(session->step()));
    int32_t y = -1;
    ASSERT_EQ("", messageOf(session->getResult(0, &y, 4)));
    ASSERT_EQ(2 * x + 1, y);
  }
}

} // namespace
