//===- LinkFaultTest.cpp - Links between ranks that are cut ---------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RankRing.h"
#include "RelayedLink.h"

#include "ranks/Pulse.h"

#include <chrono>
#include <thread>

using namespace baechi::runtime;
using namespace baechi::runtime::test;
using testing::AnyOf;
using testing::HasSubstr;
using testing::StartsWith;

namespace {

void sleepFor(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

/// A ring of three ranks, where what ranks 0 and 1 say to each other goes over
/// a link.
class LinkFaultTest : public RankRing {
protected:
  void SetUp() override {
    RankRing::build(3, 3);
    std::vector<Meeting> meetings = meetingsOf(3);
    relay = std::make_unique<RelayedPort>(meetings[0].port);
    meetings[1].port = relay->port();
    members.clear();
    for (auto &transport : connectAll(meetings)) {
      ASSERT_TRUE(transport) << transport.error().message();
      members.push_back(std::make_shared<Ranks>(std::move(*transport)));
    }
  }

  void setSilence(double seconds) {
    for (auto &member : members)
      member->setSilence(seconds);
  }

  std::unique_ptr<RelayedPort> relay;
};

/// What cannot pass is kept, from the middle of a frame or of what follows it.
TEST_F(LinkFaultTest, StepsWaitForALinkThatIsCutForASecond) {
  setSilence(3);
  run([&](Session &session) {
    for (int64_t bytes : {20, 700}) {
      relay->link.holdAfter(bytes);
      std::thread later([&] {
        sleepFor(1);
        EXPECT_TRUE(relay->link.holdsSomething());
        relay->link.letGo();
      });
      expectRing(session, 3);
      later.join();
    }
    EXPECT_TRUE(session.usable());
  });
  EXPECT_EQ(followErrors, std::vector<std::string>(3));
}

TEST_F(LinkFaultTest, ALinkThatStaysCutIsNamed) {
  setSilence(0.6);
  run([&](Session &session) {
    relay->link.holdAfter(700);
    EXPECT_THAT(session.step().message(),
                StartsWith("rank 1 was lost: it has said nothing for 1 "
                           "seconds: its process was stopped, or it cannot be "
                           "reached; it held host1"));
    EXPECT_FALSE(session.usable());
  });
  EXPECT_THAT(followErrors[1], StartsWith("rank 0 was lost"));
  EXPECT_THAT(followErrors[2],
              AnyOf(HasSubstr("rank 1"), StartsWith("rank 0 was lost")));
}

TEST_F(LinkFaultTest, AConnectionThatIsLostIsNamed) {
  setSilence(0.6);
  run([&](Session &session) {
    relay->link.cut();
    EXPECT_THAT(session.step().message(), StartsWith("rank 1 was lost"));
    EXPECT_FALSE(session.usable());
  });
  EXPECT_THAT(followErrors[1], StartsWith("rank 0 was lost"));
}

/// Ranks 0 and 1 that say over a link that they live.
class PulseLinkTest : public testing::Test {
protected:
  void connect(double silence) {
    std::array<std::array<int, 2>, 2> pairs{};
    for (int32_t rank : {0, 1}) {
      ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0,
                              pairs[size_t(rank)].data()));
      pulses.push_back(std::make_unique<Pulse>(rank, 2, silence));
    }
    link = std::make_unique<RelayedLink>(pairs[0][1], pairs[1][1]);
    for (int32_t rank : {0, 1})
      pulses[size_t(rank)]->add(1 - rank, pairs[size_t(rank)][0]);
  }

  std::vector<std::unique_ptr<Pulse>> pulses;
  std::unique_ptr<RelayedLink> link;
};

TEST_F(PulseLinkTest, NobodyIsLostByALinkThatIsCutForASecond) {
  connect(2);
  link->holdAfter(0);
  sleepFor(1);
  EXPECT_TRUE(link->holdsSomething());
  link->letGo();
  sleepFor(1.5);
  for (auto &pulse : pulses)
    EXPECT_EQ(-1, pulse->lostRank());
}

TEST_F(PulseLinkTest, BothAreLostToEachOtherByALinkThatStaysCut) {
  connect(0.6);
  link->holdAfter(0);
  for (int32_t rank : {0, 1}) {
    Pulse &pulse = *pulses[size_t(rank)];
    for (int look = 0; look < 60000 && pulse.lostRank() < 0; ++look)
      sleepFor(0.001);
    EXPECT_EQ(1 - rank, pulse.lostRank());
    EXPECT_THAT(pulse.whyLost(1 - rank), HasSubstr("it has said nothing for"));
  }
}

} // namespace
