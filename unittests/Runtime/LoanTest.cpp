//===- LoanTest.cpp - Messages that are lent, not copied ------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RankThreads.h"

#include <gmock/gmock.h>

using namespace baechi::runtime;
using namespace baechi::runtime::test;
using testing::HasSubstr;

namespace {

constexpr int64_t bytes = 1024;

/// Two devices; queue 0 lends messages from the first to the second.
Program makeLender(size_t messages = 1) {
  Program program = makeProgram(2);
  addQueue(program, 0, 1, std::vector<int64_t>(messages, bytes));
  for (MessageInfo &message : program.queues[0].messages)
    message.lent = true;
  return program;
}

/// Why a step of the program fails; "" if it does not.
std::string stepError(Program program, Body first, Body second) {
  auto session =
      makeSession(std::move(program), {std::move(first), std::move(second)});
  return session ? session->step().message() : "";
}

int32_t lend(Context context, char *arena) {
  return baechi_send(context, 0, 0, arena);
}

int32_t borrowAndGiveBack(Context context, char *) {
  const void *source = nullptr;
  if (int32_t stop = baechi_borrow(context, 0, 0, &source))
    return stop;
  return baechi_give_back(context, 0, 0);
}

TEST(Loan, SenderOverwritesOnlyWhatItGotBack) {
  constexpr size_t rounds = 64;
  Program program = makeLender(rounds);
  addResult(program, 1, 0, bytes);
  // One buffer for all messages: a loan that ended early would be seen.
  auto session = makeSession(
      program, {[](Context context, char *arena) {
                  for (int32_t seq = 0; seq < int32_t(rounds); ++seq) {
                    std::memset(arena, seq + 1, bytes);
                    if (sendAndWait(context, 0, seq, arena))
                      return 1;
                  }
                  return 0;
                },
                [](Context context, char *arena) {
                  std::memset(arena, 0, bytes);
                  for (int32_t seq = 0; seq < int32_t(rounds); ++seq) {
                    const void *source = nullptr;
                    if (baechi_borrow(context, 0, seq, &source))
                      return 1;
                    const char *lent = static_cast<const char *>(source);
                    for (int64_t i = 0; i < bytes; ++i)
                      arena[i] |= char(lent[i] != seq + 1);
                    if (baechi_give_back(context, 0, seq))
                      return 1;
                  }
                  return 0;
                }});
  ASSERT_TRUE(session);
  std::vector<char> wrong(bytes, 1);
  for (int step = 0; step < 200; ++step) {
    ASSERT_SUCCESS(session->step());
    ASSERT_SUCCESS(session->getResult(0, wrong.data(), bytes));
    ASSERT_EQ(std::vector<char>(bytes, 0), wrong);
  }
  EXPECT_EQ(int64_t(rounds) * bytes, session->timeline().devices[0].bytesSent);
  EXPECT_EQ(int64_t(rounds) * bytes, session->timeline().devices[0].bytesLent);
}

TEST(Loan, IsReadWhereItLies) {
  std::atomic<const void *> sent{nullptr}, borrowed{nullptr};
  EXPECT_EQ("", stepError(
                    makeLender(),
                    [&](Context context, char *arena) {
                      sent = arena + 128;
                      return sendAndWait(context, 0, 0, arena + 128);
                    },
                    [&](Context context, char *) {
                      const void *source = nullptr;
                      if (baechi_borrow(context, 0, 0, &source))
                        return 1;
                      borrowed = source;
                      return baechi_give_back(context, 0, 0);
                    }));
  EXPECT_EQ(sent.load(), borrowed.load());
}

TEST(Loan, MisuseIsAnError) {
  EXPECT_THAT(stepError(makeLender(), lend,
                        [](Context context, char *arena) {
                          return baechi_recv(context, 0, 0, arena);
                        }),
              HasSubstr("offered a buffer for a message that is lent"));
  EXPECT_THAT(stepError(makeLender(), lend,
                        [](Context context, char *arena) {
                          (void)borrowAndGiveBack(context, arena);
                          return borrowAndGiveBack(context, arena);
                        }),
              HasSubstr("borrowed a message twice in one step"));
  EXPECT_THAT(stepError(makeLender(), lend,
                        [](Context context, char *) {
                          return baechi_give_back(context, 0, 0);
                        }),
              HasSubstr("gave back a message that it does not hold"));
  Program copied = makeLender();
  copied.queues[0].messages[0].lent = false;
  EXPECT_THAT(stepError(copied, lend, borrowAndGiveBack),
              HasSubstr("borrowed a message that is not lent"));
}

TEST(Loan, WhatIsKeptIsTold) {
  EXPECT_THAT(stepError(makeLender(), lend,
                        [](Context context, char *) {
                          const void *source = nullptr;
                          return baechi_borrow(context, 0, 0, &source);
                        }),
              HasSubstr("message 0 'm0' of queue 0 (host0 to host1) was "
                        "borrowed but not given back"));
  EXPECT_THAT(stepError(makeLender(), lend, doNothing),
              HasSubstr("was sent but not received"));
}

TEST(Loan, CycleThroughALoanIsADeadlock) {
  Program program = makeLender();
  addQueue(program, 0, 1, {4});
  // The lender waits for its tensor before it sends what the borrower needs to
  // give that back.
  EXPECT_EQ(
      "deadlock: host0 waits to get back message 0 'm0' of queue 0 (host0 "
      "to host1) before its first operator; host1 waits to receive "
      "message 0 'm0' of queue 1 (host0 to host1) before its first "
      "operator",
      stepError(
          program,
          [](Context context, char *arena) {
            if (sendAndWait(context, 0, 0, arena))
              return 1;
            return sendAndWait(context, 1, 0, arena);
          },
          [](Context context, char *arena) {
            const void *source = nullptr;
            if (baechi_borrow(context, 0, 0, &source) ||
                recvAndWait(context, 1, 0, arena))
              return 1;
            return baechi_give_back(context, 0, 0);
          }));
  EXPECT_EQ("deadlock: host1 waits to borrow message 0 'm0' of queue 0 (host0 "
            "to host1) before its first operator",
            stepError(makeLender(), doNothing, borrowAndGiveBack));
}

TEST(Loan, NeedsOneAddressSpace) {
  Program program = makeLender();
  program.devices[1].kind = "cuda";
  EXPECT_EQ("queue 0, message 0 'm0': it is lent, but device host1 has an "
            "address space of its own",
            program.check().message());
}

struct LoanRanks : testing::Test, RankThreads {};

TEST_F(LoanRanks, BetweenProcessesIsRefused) {
  build(2);
  program = makeLender();
  bodies[0] = lend;
  bodies[1] = borrowAndGiveBack;
  auto session = begin();
  end();
  ASSERT_FALSE(bool(session));
  EXPECT_THAT(
      session.error().message(),
      HasSubstr("message 'm0' from host0 to host1 is lent, but they are "
                "devices of two processes, which share no memory: "
                "compile the program with --transfers=copy"));
}

} // namespace
