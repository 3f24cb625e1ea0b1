//===- MeetingTest.cpp - Processes connect to each other ------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SocketRanks.h"

#include "Baechi/Runtime/Ranks.h"
#include "transport/sockets/Door.h"

#include <gmock/gmock.h>
#include <sys/socket.h>

#include <chrono>
#include <cstring>
#include <functional>

using namespace baechi::runtime;
using namespace baechi::runtime::test;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

namespace {

TEST(Meeting, StrangersAreTurnedAway) {
  std::vector<Meeting> meetings = meetingsOf(3);
  std::vector<sockets::Descriptor> strangers;
  std::thread visitor([&] {
    std::string why;
    for (int i = 0; i < 200; ++i) {
      auto socket = sockets::call("localhost", meetings[0].port,
                                  sockets::Deadline(20), why);
      ASSERT_TRUE(bool(socket)) << why;
      // Nothing, something else, or what begins alike.
      std::string words = i % 3 == 0   ? ""
                          : i % 3 == 1 ? "GET / HTTP/1.1\r\n\r\n"
                                       : std::string("baechi\0\1abc", 11);
      (void)!::send(socket.get(), words.data(), words.size(), MSG_NOSIGNAL);
      strangers.push_back(std::move(socket));
    }
  });
  std::thread leader, others;
  std::vector<Expected<std::unique_ptr<Transport>>> found;
  leader = std::thread([&] { found = connectAll({meetings[0]}); });
  visitor.join();
  auto rest = connectAll({meetings[2], meetings[1]});
  leader.join();
  EXPECT_TRUE(found[0]) << found[0].error().message();
  for (auto &each : rest)
    EXPECT_TRUE(each) << each.error().message();
}

TEST(Meeting, NamesWhoIsMissing) {
  std::vector<Meeting> meetings = meetingsOf(4, 1);
  meetings[2].seconds = 20;
  auto found = connectAll({meetings[0], meetings[2]});
  for (auto &each : found) {
    ASSERT_FALSE(each);
    EXPECT_THAT(each.error().message(),
                AllOf(StartsWith("rank 0 waited 1 s at localhost:"),
                      HasSubstr(" for ranks 1, 3 of 4")));
  }
  auto alone = connectAll({meetings[1]});
  ASSERT_FALSE(alone[0]);
  EXPECT_THAT(alone[0].error().message(),
              AllOf(StartsWith("rank 0 is not to be reached at localhost:"),
                    HasSubstr("Connection refused")));
}

/// What both ends say when the other one differs.
void expectRefusal(const std::function<void(std::vector<Meeting> &)> &change,
                   const char *text) {
  std::vector<Meeting> meetings = meetingsOf(3, 20);
  change(meetings);
  auto found = connectAll(meetings);
  for (auto &each : found) {
    ASSERT_FALSE(each);
    EXPECT_THAT(each.error().message(), HasSubstr(text));
  }
}

TEST(Meeting, NamesWhatDiffers) {
  expectRefusal([](auto &all) { all.pop_back(), all[1].size = 2; },
                "rank 1 was started as one of 2 processes, rank 0 as one of 3");
  expectRefusal([](auto &all) { all[2].rank = 1; }, "two processes are rank 1");
  auto found = connectAll({{3, 3, "localhost", freePort()}});
  ASSERT_FALSE(found[0]);
  EXPECT_EQ("this is rank 3 of 3: ranks count from 0",
            found[0].error().message());
}

TEST(Meeting, AnotherJobChangesNothing) {
  std::vector<Meeting> meetings = meetingsOf(2, 20);
  Meeting other = meetings[1];
  other.job = "other";
  std::vector<Expected<std::unique_ptr<Transport>>> found;
  std::thread leader([&] { found = connectAll({meetings[0]}); });
  auto refused = connectAll({other});
  auto right = connectAll({meetings[1]});
  leader.join();
  ASSERT_FALSE(refused[0]);
  EXPECT_THAT(
      refused[0].error().message(),
      AllOf(StartsWith("rank 1 is of job 'other', rank 0 at localhost:"),
            HasSubstr(" of 'job'")));
  EXPECT_TRUE(found[0]) << found[0].error().message();
  EXPECT_TRUE(right[0]) << right[0].error().message();
}

/// Says of itself what rank 1 would, and then nothing.
sockets::Descriptor callAsRank1(const Meeting &meeting, uint16_t port = 0) {
  std::string why;
  auto socket =
      sockets::call("localhost", meeting.port, sockets::Deadline(20), why);
  EXPECT_TRUE(bool(socket)) << why;
  sockets::Hello hello{};
  std::memcpy(hello.magic, sockets::magic, sizeof(hello.magic));
  hello.rank = 1;
  hello.size = meeting.size;
  hello.port = port;
  sockets::setText(hello.job, meeting.job);
  EXPECT_TRUE(sockets::writeAll(socket.get(), &hello, sizeof(hello),
                                sockets::Deadline(20)));
  return socket;
}

TEST(Meeting, ARankThatEndsWhileOthersAreMissingIsNamed) {
  std::vector<Meeting> meetings = meetingsOf(3, 20);
  std::thread leaver([&] {
    sockets::Descriptor socket = callAsRank1(meetings[1]);
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
  });
  auto found = connectAll({meetings[0]});
  leaver.join();
  ASSERT_FALSE(found[0]);
  EXPECT_THAT(found[0].error().message(),
              AllOf(StartsWith("rank 1 has ended while rank 0 at localhost:"),
                    HasSubstr(" waited for rank 2 of 3")));
}

TEST(Meeting, NamesAPortThatIsTaken) {
  std::string why;
  auto taken = sockets::listenAt("localhost", 0, why);
  auto found = connectAll({{0, 2, "localhost", sockets::portOf(taken.get())}});
  ASSERT_FALSE(found[0]);
  EXPECT_THAT(found[0].error().message(),
              AllOf(HasSubstr("cannot wait for the others at localhost:"),
                    HasSubstr("Address already in use: another program has "
                              "this port")));
}

/// What a rank says that finds another program at rank 0's port, which answers
/// with \p words, or hangs up, or does nothing for a second.
std::string toldOfAStranger(const std::string &words, bool hangsUp) {
  std::string why;
  auto listener = sockets::listenAt("localhost", 0, why);
  std::thread program([&] {
    sockets::Descriptor caller;
    for (int look = 0; look < 20000 && !caller; ++look) {
      caller = sockets::Descriptor(accept(listener.get(), nullptr, nullptr));
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    ASSERT_TRUE(bool(caller));
    (void)!::send(caller.get(), words.data(), words.size(), MSG_NOSIGNAL);
    // The rank has given up by then, and closes its end.
    char said[1024];
    while (!hangsUp && recv(caller.get(), said, sizeof(said), 0) > 0)
      continue;
  });
  Meeting meeting{1, 2, "localhost", sockets::portOf(listener.get())};
  meeting.silence = 1;
  auto found = connectAll({meeting});
  program.join();
  EXPECT_FALSE(found[0]);
  return found[0] ? "" : found[0].error().message();
}

TEST(Meeting, NamesAnotherProgramAtRank0sPort) {
  const char *advice =
      "give each a port of its own (BAECHI_COORDINATOR), and a name "
      "(BAECHI_JOB) by which its processes know each other";
  EXPECT_THAT(toldOfAStranger("HTTP/1.1 400 Bad Request\r\n\r\n", false),
              AllOf(HasSubstr("is no rank 0 of this version, but another "
                              "program"),
                    HasSubstr(advice)));
  EXPECT_THAT(toldOfAStranger("", true),
              AllOf(HasSubstr("hangs up when it is called: another program"),
                    HasSubstr(advice)));
  EXPECT_THAT(toldOfAStranger("", false),
              AllOf(HasSubstr("says nothing for 1 s: another program"),
                    HasSubstr(advice)));
}

TEST(Meeting, TellsTwoJobsAtOnePortApart) {
  std::vector<Meeting> meetings = meetingsOf(3, 20);
  meetings[2].rank = 1;
  for (Meeting &each : meetings)
    each.job.clear();
  for (auto &each : connectAll(meetings)) {
    ASSERT_FALSE(each);
    EXPECT_THAT(
        each.error().message(),
        AllOf(StartsWith("two processes are rank 1; if another job uses "
                         "this port"),
              HasSubstr("BAECHI_JOB")));
  }
}

TEST(Meeting, ARankThatStopsMeanwhileIsNamedToAll) {
  std::vector<Meeting> meetings = meetingsOf(3, 20);
  for (Meeting &each : meetings)
    each.silence = 1;
  std::string why;
  auto listener = sockets::listenAt("localhost", 0, why);
  sockets::Descriptor stopped;
  std::thread caller([&] {
    stopped = callAsRank1(meetings[1], sockets::portOf(listener.get()));
  });
  auto found = connectAll({meetings[0], meetings[2]});
  caller.join();
  for (auto &each : found) {
    ASSERT_FALSE(each);
    EXPECT_THAT(each.error().message(),
                HasSubstr("rank 1 was lost: it has said nothing for 1 s"));
  }
}

TEST(Meeting, ARank0ThatStopsMeanwhileIsNamed) {
  std::string why;
  std::vector<Meeting> meetings = meetingsOf(2, 20);
  meetings[1].silence = 1;
  auto listener = sockets::listenAt("localhost", meetings[1].port, why);
  ASSERT_TRUE(bool(listener)) << why;
  std::thread rank0([&] {
    sockets::Descriptor caller;
    for (int look = 0; look < 20000 && !caller; ++look) {
      caller = sockets::Descriptor(accept(listener.get(), nullptr, nullptr));
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    sockets::Answer waiting{};
    std::memcpy(waiting.magic, sockets::magic, sizeof(waiting.magic));
    EXPECT_TRUE(sockets::writeAll(caller.get(), &waiting, sizeof(waiting),
                                  sockets::Deadline(20)));
    char said[1024];
    while (recv(caller.get(), said, sizeof(said), 0) > 0)
      continue;
  });
  auto found = connectAll({meetings[1]});
  rank0.join();
  ASSERT_FALSE(found[0]);
  EXPECT_THAT(found[0].error().message(),
              AllOf(StartsWith("rank 0 at localhost:"),
                    HasSubstr("was lost: it has said nothing for 1 s")));
}

TEST(RanksJoin, NamesWhatIsMissing) {
  Launch launch;
  launch.way = Launch::Way::Mpi;
  launch.meeting.size = 2;
  auto ranks = Ranks::join(launch, "/nowhere/libBaechiMpi.so");
  ASSERT_FALSE(ranks);
  EXPECT_THAT(ranks.error().message(),
              StartsWith("started as one of 2 processes by mpirun, but the MPI "
                         "transport cannot be loaded: /nowhere"));
}

} // namespace
