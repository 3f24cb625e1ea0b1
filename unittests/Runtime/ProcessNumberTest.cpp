//===- ProcessNumberTest.cpp - Forked processes have another number -------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/ProcessNumber.h"

#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <thread>
#include <vector>

#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace baechi::runtime;

namespace {

/// Whether \p holds is true in a process that \p fork makes.
template <typename Fork, typename Holds>
bool inChild(Fork fork, const Holds &holds) {
  auto child = static_cast<pid_t>(fork());
  if (child == 0)
    _exit(holds() ? 0 : 1);
  int status = -1;
  return child > 0 && waitpid(child, &status, 0) == child &&
         WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(ProcessNumber, StaysInAProcessAndItsThreads) {
  uint64_t number = processNumber();
  EXPECT_NE(0u, number);
  std::atomic<int> same = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] { same += processNumber() == number; });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(4, same.load());
}

TEST(ProcessNumber, IsAnotherOneInChildrenAndTheirs) {
  uint64_t own = processNumber();
  EXPECT_TRUE(inChild(::fork, [&] {
    uint64_t child = processNumber();
    return child != own && child == processNumber() && inChild(::fork, [&] {
             return processNumber() != own && processNumber() != child;
           });
  }));
  EXPECT_EQ(own, processNumber());
}

TEST(ProcessNumber, SeesForksThatTellNoLibrary) {
  uint64_t own = processNumber();
  EXPECT_TRUE(inChild([] { return syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0); },
                      [&] { return processNumber() != own; }));
}

} // namespace
