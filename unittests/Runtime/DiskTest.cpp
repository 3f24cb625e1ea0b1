//===- DiskTest.cpp - Devices whose memory is a file ----------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TestPrograms.h"

#include <gmock/gmock.h>

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

using namespace baechi::runtime;
using namespace baechi::runtime::test;
using testing::HasSubstr;

namespace {

constexpr int64_t bytes = 3'000'000, place = 4'000'000;

class Disk : public testing::Test {
protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "baechi-disk-test-XXXXXX";
    ASSERT_TRUE(mkdtemp(name.data()));
    folder = name;
    setenv("BAECHI_DISK", name.c_str(), 1);
    program = makeProgram(2, 2 * place);
    program.devices[1].kind = "disk";
    program.devices[1].name = "disk0";
    addQueue(program, 0, 1, {bytes});
    addQueue(program, 1, 0, {bytes});
    addArgument(program, 0, 0, bytes);
    addResult(program, 0, place, bytes);
    bodies[0] = [](Context context, char *arena) {
      return baechi_send(context, 0, 0, arena) ||
             baechi_recv(context, 1, 0, arena + place) ||
             baechi_await_send(context, 0, 0) ||
             baechi_await_recv(context, 1, 0);
    };
    // What came is copied on and sent back.
    bodies[1] = [](Context context, char *arena) {
      return baechi_recv(context, 0, 0, arena) ||
             baechi_await_recv(context, 0, 0) ||
             baechi_disk_copy(context, arena + place, arena, bytes) ||
             baechi_send(context, 1, 0, arena + place) ||
             baechi_await_send(context, 1, 0);
    };
  }
  void TearDown() override {
    unsetenv("BAECHI_DISK");
    std::filesystem::remove_all(folder);
  }

  void expectRightBytes(Session &session, char seed) {
    std::vector<char> value(bytes), got(bytes);
    for (int64_t i = 0; i < bytes; ++i)
      value[i] = static_cast<char>(i * seed % 127);
    ASSERT_FALSE(session.setArgument(0, value.data(), bytes));
    Error error = session.step();
    ASSERT_FALSE(error) << error.message();
    ASSERT_FALSE(session.getResult(0, got.data(), bytes));
    EXPECT_EQ(value, got);
  }

  /// The descriptor of the file without a name.
  int openFile() const {
    for (const auto &each :
         std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code failed;
      std::string target =
          std::filesystem::read_symlink(each.path(), failed).string();
      if (target.starts_with(folder.string()))
        return std::stoi(each.path().filename().string());
    }
    return -1;
  }

  Program program;
  std::filesystem::path folder;
};

TEST_F(Disk, KeepsWhatWaitsAndLeavesNoFile) {
  auto session = Session::create(program, resolveBody);
  ASSERT_TRUE(session) << session.error().message();
  expectRightBytes(**session, 3);
  expectRightBytes(**session, 5);
  // As much is left when the process is killed.
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

TEST_F(Disk, AFailedReadIsAnErrorAndTheNextStepRuns) {
  auto session = Session::create(program, resolveBody);
  ASSERT_TRUE(session) << session.error().message();
  int file = openFile();
  ASSERT_GE(file, 0);
  auto whole = bodies[1];
  bodies[1] = [&](Context context, char *arena) {
    return baechi_recv(context, 0, 0, arena) ||
           baechi_await_recv(context, 0, 0) || ftruncate(file, 0) != 0 ||
           baechi_send(context, 1, 0, arena + place) ||
           baechi_await_send(context, 1, 0);
  };
  EXPECT_THAT((*session)->step().message(),
              HasSubstr("what waits on disk cannot be read"));
  bodies[1] = whole;
  ASSERT_EQ(ftruncate(file, 2 * place), 0);
  expectRightBytes(**session, 7);
}

TEST_F(Disk, AFullFileSystemIsAnError) {
  program.devices[1].arenaBytes = program.devices[1].memory = int64_t(1) << 60;
  auto session = Session::create(program, resolveBody);
  ASSERT_FALSE(session);
  EXPECT_THAT(session.error().message(),
              HasSubstr("cannot reserve 1152921504606846976 bytes of a file"));
  EXPECT_THAT(session.error().message(), HasSubstr("BAECHI_DISK names"));
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

TEST_F(Disk, AFolderThatIsNoneIsAnError) {
  setenv("BAECHI_DISK", "/nowhere/at/all", 1);
  auto session = Session::create(program, resolveBody);
  ASSERT_FALSE(session);
  EXPECT_THAT(session.error().message(),
              HasSubstr("cannot make a file in '/nowhere/at/all'"));
}

} // namespace
