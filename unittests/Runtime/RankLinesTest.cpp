//===- RankLinesTest.cpp - Threads of ranks that talk ---------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RankThreads.h"

#include "Baechi/Runtime/RankLines.h"

#include <gmock/gmock.h>

#include <limits>

using namespace baechi::runtime;
using namespace baechi::runtime::test;
using testing::HasSubstr;

namespace {

constexpr double forEver = std::numeric_limits<double>::infinity();
/// The owners of six lines of three ranks.
const std::vector<int32_t> owners = {0, 0, 1, 1, 2, 2};

std::string hear(RankLines &lines, size_t line) {
  bool late = false;
  auto said = lines.hear(line, forEver, late);
  return said ? *said : "error: " + said.error().message();
}

/// Every line asks rank 0 for the sum of what it has said so far, in texts of
/// many sizes.
void talk(Ranks &ranks) {
  RankLines lines(ranks, owners);
  std::vector<std::thread> threads;
  for (size_t line = 0; line < owners.size(); ++line) {
    bool leads = ranks.leads();
    if (owners[line] == 0 || (!leads && owners[line] != ranks.rank()))
      continue;
    threads.emplace_back([&, line, leads] {
      size_t sum = 0;
      for (size_t i = 0; i < 50; ++i) {
        size_t bytes = i * i * (line + 1);
        sum += bytes;
        if (leads) {
          EXPECT_EQ(hear(lines, line), std::string(bytes, char('a' + line)));
          lines.say(line, std::to_string(sum));
        } else {
          lines.say(line, std::string(bytes, char('a' + line)));
          EXPECT_EQ(hear(lines, line), std::to_string(sum));
        }
      }
    });
  }
  for (std::thread &thread : threads)
    thread.join();
  lines.close();
}

void runAll(RankThreads &threads, const std::function<void(Ranks &)> &each) {
  std::vector<std::thread> running;
  for (auto &member : threads.members)
    running.emplace_back([&each, &member = *member] { each(member); });
  for (std::thread &thread : running)
    thread.join();
}

TEST(RankLines, EachLineIsForItself) {
  for (bool sockets : {false, true}) {
    RankThreads threads;
    sockets ? threads.buildOverSockets(3) : threads.build(3);
    threads.hub->longestDelay = sockets ? 0 : 5;
    // And between them what ranks say otherwise.
    for (int round = 0; round < 2; ++round)
      runAll(threads, [](Ranks &ranks) {
        talk(ranks);
        auto all = ranks.gather(std::to_string(ranks.rank()));
        ASSERT_TRUE(all) << all.error().message();
        EXPECT_EQ(*all, (std::vector<std::string>{"0", "1", "2"}));
      });
    runAll(threads, [](Ranks &ranks) { ranks.close(); });
  }
}

TEST(RankLines, SilenceAndLossesAreTold) {
  RankThreads threads;
  threads.build(2);
  RankLines lines(*threads.members[0], {0, 1});
  bool late = false;
  EXPECT_FALSE(lines.hear(1, 0.01, late));
  EXPECT_TRUE(late);
  threads.hub->killed = 1;
  EXPECT_EQ(hear(lines, 1), "error: rank 1 was lost: its process has ended");
  EXPECT_TRUE(threads.members[0]->broken());
  // Nobody is waited for.
  lines.close();
}

} // namespace
