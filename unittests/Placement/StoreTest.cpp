//===- StoreTest.cpp - Files that appear whole and grow together ----------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Io/Store.h"
#include "Baechi/Placement/Io/Files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <thread>

using namespace baechi::placement;
namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

/// In a folder of its own, which nobody else may write.
class StoreTest : public testing::Test {
protected:
  void SetUp() override {
    std::string name = testing::TempDir() + "/store-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder = name;
    file = folder / "file";
  }
  void TearDown() override { fs::remove_all(folder); }

  static std::string contents(const fs::path &path) {
    std::ifstream stream(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(stream), {});
  }
  static mode_t mode(const fs::path &path) {
    struct stat there;
    return ::stat(path.c_str(), &there) == 0 ? there.st_mode & 0777 : 0;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto &entry : fs::directory_iterator(folder))
      found.push_back(entry.path().filename());
    std::sort(found.begin(), found.end());
    return found;
  }

  fs::path folder, file;
};

TEST_F(StoreTest, IsNeverSeenInParts) {
  ASSERT_EQ(writeWhole(file, std::string(1 << 20, 'a')), "");
  std::atomic<bool> done{false};
  std::thread writer([&] {
    for (int i = 0; i < 50; ++i)
      EXPECT_EQ(writeTextFile(file, std::string(1 << 20, char('b' + i % 20))),
                "");
    done = true;
  });
  while (!done) {
    std::string text = contents(file);
    ASSERT_EQ(text.size(), size_t(1) << 20);
    ASSERT_EQ(text.front(), text.back());
  }
  writer.join();
  EXPECT_THAT(names(), ElementsAre("file"));
}

TEST_F(StoreTest, IsNeverWritableByEverybody) {
  mode_t before = ::umask(0);
  EXPECT_EQ(writeWhole(file, "1"), "");
  EXPECT_EQ(mode(file), 0644u);
  fs::path made = folder / "made";
  {
    StagedFile stage(made);
    std::ofstream(stage.temporary()) << "1";
    EXPECT_EQ(mode(stage.temporary()), 0666u);
    EXPECT_EQ(stage.place(), "");
  }
  EXPECT_EQ(mode(made), 0664u);
  ::umask(077);
  fs::path own = folder / "own";
  EXPECT_EQ(writeWhole(own, "1"), "");
  EXPECT_EQ(mode(own), 0600u);
  ::umask(before);
  // A file keeps what it has, but for that.
  fs::permissions(file, fs::perms(0757));
  EXPECT_EQ(writeWhole(file, "2"), "");
  EXPECT_EQ(mode(file), 0755u);
}

TEST_F(StoreTest, LinksArePreserved) {
  fs::create_directory(folder / "elsewhere");
  fs::path target = folder / "elsewhere" / "target";
  fs::create_symlink(target, file);
  EXPECT_EQ(writeWhole(file, "1"), "");
  EXPECT_TRUE(fs::is_symlink(file));
  EXPECT_EQ(contents(target), "1");
}

TEST_F(StoreTest, DevicesAndPipesAreWrittenDirectly) {
  EXPECT_EQ(writeWhole("/dev/null", "1"), "");
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
  std::thread reader([&] { EXPECT_EQ(contents(file), "through"); });
  EXPECT_EQ(writeWhole(file, "through"), "");
  reader.join();
  // They have no place that a file could be put into.
  StagedFile stage(file);
  EXPECT_EQ(stage.write("1"), "");
  EXPECT_EQ(stage.place(), "it is not a regular file");
}

TEST_F(StoreTest, FailuresLeaveNothingBehind) {
  EXPECT_EQ(writeWhole(folder / "no" / "file", "1"),
            "No such file or directory");
  EXPECT_EQ(writeWhole(folder, "1"), "Is a directory");
  {
    StagedFile stage(file);
    EXPECT_EQ(stage.write("1"), "");
    EXPECT_EQ(stage.write("1"), "File exists");
  }
  EXPECT_THAT(names(), ElementsAre());
  EXPECT_EQ(StagedFile(file).place(), "No such file or directory");
}

TEST_F(StoreTest, TrustsWhatOthersCannotWrite) {
  EXPECT_EQ(whyUntrusted(file), "");
  ASSERT_EQ(writeWhole(file, "1"), "");
  EXPECT_EQ(whyUntrusted(file), "");
  fs::permissions(file, fs::perms(0646));
  EXPECT_THAT(whyUntrusted(file), HasSubstr("everybody may write it;"));
  fs::permissions(file, fs::perms(0664));
  EXPECT_EQ(whyUntrusted(file), "");

  fs::permissions(folder, fs::perms(0777));
  EXPECT_THAT(whyUntrusted(file), HasSubstr("everybody may write its folder;"));
  EXPECT_THAT(whyUntrusted(folder / "new"),
              HasSubstr("everybody may write its folder;"));
  fs::permissions(folder, fs::perms(01777));
  EXPECT_EQ(whyUntrusted(file), "");
  EXPECT_EQ(whyUntrusted("/dev/null"), "");
}

TEST_F(StoreTest, DistrustsFilesOfOtherUsers) {
  if (::geteuid() != 0)
    GTEST_SKIP() << "only the administrator can make files of other users";
  ASSERT_EQ(writeWhole(file, "1"), "");
  fs::permissions(folder, fs::perms(0755));
  ASSERT_EQ(::chown(file.c_str(), 12345, 12345), 0);
  // The administrator meets files of others everywhere.
  EXPECT_EQ(whyUntrusted(file), "");
  ASSERT_EQ(::seteuid(12346), 0);
  std::string ofAnother = whyUntrusted(file);
  ASSERT_EQ(::seteuid(0), 0);
  EXPECT_THAT(ofAnother, HasSubstr("it belongs to another user;"));

  ASSERT_EQ(::chown(file.c_str(), 0, 0), 0);
  ASSERT_EQ(::chown(folder.c_str(), 12345, 12345), 0);
  ASSERT_EQ(::seteuid(12346), 0);
  std::string inAnothers = whyUntrusted(file);
  ASSERT_EQ(::seteuid(0), 0);
  EXPECT_THAT(inAnothers, HasSubstr("its folder belongs to another user;"));
}

TEST_F(StoreTest, LocksKeepEachOtherOut) {
  // Not one operation, so that two at once lose a count.
  std::atomic<int> value{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int k = 0; k < 10; ++k) {
        StoreLock lock(file);
        ASSERT_EQ(lock.error(), "");
        int seen = value;
        std::this_thread::yield();
        value = seen + 1;
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(value, 40);
  EXPECT_EQ(mode(folder / "file.lock"), 0600u);
}

TEST_F(StoreTest, LocksAreNotWaitedForForever) {
  {
    StoreLock first(file);
    EXPECT_EQ(StoreLock(file, 0.05).error(),
              "another process has held its lock for 0.05 seconds");
  }
  EXPECT_EQ(StoreLock(file, 0.05).error(), "");
  EXPECT_THAT(StoreLock(folder / "no" / "file").error(),
              HasSubstr("cannot lock it: No such file"));
  fs::remove(folder / "file.lock");
  fs::create_symlink("/etc/passwd", folder / "file.lock");
  EXPECT_THAT(StoreLock(file).error(), HasSubstr("cannot lock it"));
}

} // namespace
