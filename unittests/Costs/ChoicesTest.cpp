//===- ChoicesTest.cpp - The code that programs stay with -------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Costs/Profile.h"
#include "llvm/Support/FileSystem.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace baechi;
using testing::HasSubstr;

namespace {
class Choices : public testing::Test {
protected:
  void SetUp() override {
    ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("choices", folder));
    path = (folder + "/profile.json").str();
  }
  void TearDown() override { llvm::sys::fs::remove_directories(folder); }

  /// Of a process that measured \p implementation.
  static Profile measured(const std::string &implementation) {
    return {{{"k", "aa", implementation, "host", 10, 1, 3, 64}}, "here", ""};
  }
  static ProgramChoice choiceOf(const std::string &implementation) {
    return {"p", {{"aa", implementation}}};
  }
  ProgramChoice keep(const std::string &implementation,
                     const ProgramChoice *replaced = nullptr) {
    Profile profile = measured(implementation);
    return llvm::cantFail(
        keepChoice(path, profile, choiceOf(implementation), replaced));
  }

  llvm::SmallString<128> folder;
  std::string path;
};

TEST_F(Choices, TheFirstOneStays) {
  EXPECT_EQ(keep("openblas"), choiceOf("openblas"));
  Profile second = measured("generated");
  EXPECT_EQ(
      llvm::cantFail(keepChoice(path, second, choiceOf("generated"), nullptr)),
      choiceOf("openblas"));
  // With what its code takes, and the scratch that it needs.
  ASSERT_EQ(second.rows.size(), 2u);
  EXPECT_EQ(second.rows[1].implementation, "openblas");
  EXPECT_EQ(second.rows[1].scratchBytes, 64);
  // Rows that are added leave it.
  EXPECT_EQ(llvm::toString(addToProfile(path, measured("onednn"))), "");
  Profile read = llvm::cantFail(readProfile(path));
  EXPECT_EQ(read.rows.size(), 3u);
  ASSERT_NE(read.findChoice("p"), nullptr);
  EXPECT_EQ(*read.findChoice("p"), choiceOf("openblas"));
  EXPECT_EQ(read.findChoice("q"), nullptr);
}

TEST_F(Choices, OnlyWhatWasReadIsReplaced) {
  ProgramChoice first = keep("openblas");
  ASSERT_EQ(keep("generated", &first), choiceOf("generated"));
  // Another process has replaced it meanwhile.
  EXPECT_EQ(keep("onednn", &first), choiceOf("generated"));
}

TEST_F(Choices, OfAnotherCompilerStayBeside) {
  keep("openblas");
  Profile other = measured("generated");
  other.compiler = "another";
  EXPECT_EQ(
      llvm::cantFail(keepChoice(path, other, choiceOf("generated"), nullptr)),
      choiceOf("generated"));
}

TEST_F(Choices, ProcessesAndThreadsAgree) {
  const char *names[] = {"generated", "openblas", "onednn"};
  constexpr int rounds = 20;
  for (int round = 0; round < rounds; ++round) {
    llvm::sys::fs::remove(path);
    pid_t child = fork();
    if (child == 0) {
      bool agrees = keep("openblas") == keep("generated");
      _exit(agrees ? 0 : 1);
    }
    ASSERT_GT(child, 0);
    ProgramChoice found[3];
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i)
      threads.emplace_back([&, i] { found[i] = keep(names[i]); });
    for (std::thread &thread : threads)
      thread.join();
    int status = 1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    ProgramChoice kept = *llvm::cantFail(readProfile(path)).findChoice("p");
    for (const ProgramChoice &each : found)
      EXPECT_EQ(each, kept);
  }
}

TEST_F(Choices, KeepTheirRowsWhereTheOldestGo) {
  keep("openblas");
  Profile many;
  many.target = "here";
  for (size_t i = 0; i <= kMostProfileRows; ++i)
    many.rows.push_back(
        {"k", std::to_string(i), "generated", "host", 10, 1, 3, 64});
  EXPECT_EQ(llvm::toString(addToProfile(path, many)), "");
  Profile read = llvm::cantFail(readProfile(path));
  // Rows that a choice names are not counted: others still have room.
  EXPECT_EQ(read.rows.size(), kMostProfileRows + 1);
  EXPECT_NE(read.find("aa", "host", "openblas"), nullptr);
  EXPECT_EQ(read.find("0", "host", "generated"), nullptr);
  EXPECT_NE(read.find("1", "host", "generated"), nullptr);
  EXPECT_EQ(read.rows.back().hash, std::to_string(kMostProfileRows));
}

TEST_F(Choices, AreReadAsTheyAreWritten) {
  Profile written = measured("openblas");
  written.choices = {{"p", {{"aa", "openblas"}, {"bb", "generated"}}},
                     {"q", {}}};
  ASSERT_FALSE(llvm::errorToBool(writeProfile(path, written)));
  EXPECT_EQ(llvm::cantFail(readProfile(path)).choices, written.choices);
  auto errorOf = [](const std::string &choices) {
    auto profile =
        parseProfile(R"({"format": "baechi-profile", "version": 1, "rows": [],)"
                     R"( "choices": )" +
                         choices + "}",
                     "p.json");
    return profile ? "" : llvm::toString(profile.takeError());
  };
  EXPECT_EQ(errorOf(R"([{"program": "p", "kernels": {}}])"), "");
  EXPECT_EQ(errorOf("3"), "p.json: 'choices' is no list");
  for (const char *wrong :
       {R"([3])", R"([{"kernels": {}}])", R"([{"program": "p"}])",
        R"([{"program": "p", "kernels": {"aa": 3}}])"})
    EXPECT_EQ(errorOf(wrong),
              "p.json: choices[0] "
              "needs 'program', a string, and 'kernels', an object of strings");
  EXPECT_THAT(errorOf(R"([{"program": "p", "kernels": {}},)"
                      R"( {"program": "p", "kernels": {}}])"),
              HasSubstr("choices[1] repeats program 'p'"));
}
} // namespace
