//===- StoreFaultTest.cpp - Lost workers, wrong uses and files of a store -*-
// C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Runtime/ParameterStore.h"
#include "store/Checksum.h"

#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <future>
#include <sstream>

using namespace baechi::store;
using testing::HasSubstr;

namespace {

template <typename Call> std::string errorOf(Call &&call) {
  try {
    call();
  } catch (const StoreError &error) {
    return error.what();
  }
  return "";
}

StoreOptions twoWorkers() {
  StoreOptions options;
  options.workers = 2;
  return options;
}

std::string errorOfOptions(StoreOptions options) {
  return errorOf([&] { ParameterStore({{"w", 4, 2}}, options); });
}

TEST(StoreFaults, AStoppedWorkerIsNamed) {
  StoreOptions options = twoWorkers();
  options.staleness = 1;
  options.patience = 0.05;
  ParameterStore store({{"w", 4, 2}}, options);
  float value[2];
  store.clock(0);
  store.get(0, 0, 0, value); // the bound allows one clock
  store.clock(0);
  std::string error = errorOf([&] { store.get(0, 0, 0, value); });
  EXPECT_THAT(error, HasSubstr("worker 0 at clock 2 waited"));
  EXPECT_THAT(error, HasSubstr("for worker 1, which is at clock 0 since"));
  EXPECT_THAT(error, HasSubstr("look after that worker"));
  // It comes back, and all goes on.
  store.clock(1);
  store.clock(1);
  store.get(1, 0, 0, value);
  store.get(0, 0, 0, value);
}

TEST(StoreFaults, ALostWorkerEndsThoseWhoWaitForIt) {
  StoreOptions options = twoWorkers();
  options.patience = std::numeric_limits<double>::infinity();
  ParameterStore store({{"w", 4, 2}}, options);
  store.clock(0);
  auto waits = std::async(std::launch::async, [&] {
    float value[2];
    return errorOf([&] { store.get(0, 0, 0, value); });
  });
  store.lose(1, "killed by signal 9");
  EXPECT_EQ(waits.get(), "worker 1 is lost: killed by signal 9");
  float update[2] = {1, 1};
  EXPECT_EQ(errorOf([&] { store.inc(0, 0, 0, update); }),
            "worker 1 is lost: killed by signal 9");
  EXPECT_EQ(errorOf([&] { store.clock(0); }),
            "worker 1 is lost: killed by signal 9");
}

TEST(StoreFaults, ALostWorkerKeepsTheOthersWaitingWhereThatIsAsked) {
  StoreOptions options = twoWorkers();
  options.whenLost = WhenLost::Wait;
  options.patience = 300;
  ParameterStore store({{"w", 4, 2}}, options);
  float update[2] = {1, 2};
  store.inc(1, 0, 3, update);
  store.lose(1, "killed");
  store.clock(0);
  auto waits = std::async(std::launch::async, [&] {
    float value[2] = {0, 0};
    store.get(0, 0, 3, value);
    return value[1];
  });
  // Another thread does the lost worker's work.
  store.inc(1, 0, 3, update);
  store.clock(1);
  EXPECT_EQ(waits.get(), 4);
}

TEST(StoreFaults, PatienceEndsWaitingForALostWorker) {
  StoreOptions options = twoWorkers();
  options.whenLost = WhenLost::Wait;
  options.patience = 0.05;
  ParameterStore store({{"w", 4, 2}}, options);
  store.lose(1, "killed");
  store.clock(0);
  float value[2];
  EXPECT_THAT(errorOf([&] { store.get(0, 0, 3, value); }),
              HasSubstr("(worker 1 is lost: killed)"));
}

TEST(StoreFaults, NumbersThatAreNotFiniteStopTheirWorker) {
  ParameterStore store({{"w", 4, 2}}, twoWorkers());
  float update[2] = {1, NAN}, value[2];
  EXPECT_EQ(errorOf([&] { store.inc(1, 0, 2, update); }),
            "worker 1 at clock 0 adds a number that is not finite to row 2 of "
            "table 'w': take smaller steps, less staleness or a larger budget");
  store.drain();
  store.read(0, 2, value);
  EXPECT_EQ(value[0], 0);
}

TEST(StoreFaults, WrongOptions) {
  StoreOptions options;
  options.workers = 0;
  EXPECT_EQ(errorOfOptions(options),
            "the number of workers is 0: give 1 to 4096, as each has memory "
            "and, unless processes are fewer, a thread");
  options.workers = 1'000'000'000;
  EXPECT_THAT(errorOfOptions(options),
              HasSubstr("the number of workers is 1000000000: give 1 to 4096"));
  options = twoWorkers();
  options.staleness = 1'000'000'000;
  EXPECT_THAT(errorOfOptions(options), HasSubstr("at most 1048576"));
  options = twoWorkers();
  options.processes = 3;
  EXPECT_THAT(errorOfOptions(options),
              HasSubstr("the number of processes is 3: give at most one"));
  options = twoWorkers();
  options.staleness = -1;
  EXPECT_THAT(errorOfOptions(options), HasSubstr("the staleness is -1: give"));
  options = twoWorkers();
  options.tolerance = -1;
  EXPECT_THAT(errorOfOptions(options), HasSubstr("the tolerance is -1: give"));
  options = twoWorkers();
  options.patience = 0;
  EXPECT_THAT(errorOfOptions(options), HasSubstr("the patience is 0.000000"));
  options = twoWorkers();
  options.budget = 19;
  EXPECT_THAT(errorOfOptions(options),
              HasSubstr("is below one row of table 'w' a second: give at "
                        "least 20"));
  EXPECT_THAT(errorOf([] { ParameterStore({}, {}); }),
              HasSubstr("the store has no table"));
  EXPECT_THAT(errorOf([] {
                ParameterStore({{"w", 4, 2, UpdateRule::AdaptiveRevision, 0}},
                               {});
              }),
              HasSubstr("table 'w' is revised with steps of 0.000000: give"));
  EXPECT_THAT(errorOf([] { ParameterStore({{"w", 0, 2}}, {}); }),
              HasSubstr("table 'w' has 0 rows of 2 numbers"));
}

TEST(StoreFaults, WrongCalls) {
  ParameterStore store({{"w", 4, 2}}, twoWorkers());
  float value[2] = {0, 0};
  EXPECT_EQ(errorOf([&] { store.get(2, 0, 0, value); }),
            "there is no worker 2 of 2");
  EXPECT_EQ(errorOf([&] { store.get(0, 1, 0, value); }),
            "there is no table 1 of 1");
  EXPECT_EQ(errorOf([&] { store.get(0, 0, 4, value); }),
            "table 'w' has 4 rows, no row 4");
  store.get(0, 0, 1, value);
  EXPECT_THAT(errorOf([&] { store.set(0, 1, value); }),
              HasSubstr("row 1 of table 'w' was read already"));
}

class StoreFile : public testing::Test {
protected:
  StoreFile()
      : file(testing::TempDir() + "baechi-store-" +
             testing::UnitTest::GetInstance()->current_test_info()->name()) {}
  ~StoreFile() override { std::filesystem::remove(file); }

  void write(const std::string &text) {
    std::ofstream(file, std::ios::binary) << text;
  }
  std::string read() {
    std::ostringstream text;
    text << std::ifstream(file, std::ios::binary).rdbuf();
    return text.str();
  }
  std::string errorOfRestore() {
    return errorOf([&] { ParameterStore::restore(file, twoWorkers()); });
  }
  void saveOne() {
    ParameterStore store({{"the weights", 4, 2}, {"bias", 1, 3}}, twoWorkers());
    float update[3] = {1, 2, 3};
    store.inc(0, 0, 3, update);
    store.inc(1, 1, 0, update); // that no clock has sent
    store.clock(0);
    store.clock(0);
    store.clock(1);
    store.save(file);
  }
  std::string file;
};

TEST_F(StoreFile, AStoreGoesOnFromItsFile) {
  saveOne();
  auto store = ParameterStore::restore(file, twoWorkers());
  ASSERT_EQ(store->tables().size(), 2u);
  EXPECT_EQ(store->tables()[0].name, "the weights");
  EXPECT_THAT(store->report().clocks, testing::ElementsAre(2, 1));
  float value[3];
  store->get(1, 0, 3, value);
  EXPECT_EQ(value[1], 2);
  store->get(1, 1, 0, value);
  EXPECT_EQ(value[2], 3);
  StoreOptions three;
  three.workers = 3;
  EXPECT_THAT(ParameterStore::restore(file, three)->report().clocks,
              testing::ElementsAre(1, 1, 1));
  StoreOptions asSaved;
  asSaved.workers = 0;
  auto same = ParameterStore::restore(file, asSaved);
  EXPECT_EQ(same->options().workers, 2);
  EXPECT_THAT(same->report().clocks, testing::ElementsAre(2, 1));
}

/// Who was done before is not waited for after.
TEST_F(StoreFile, FinishedWorkersStayFinished) {
  {
    ParameterStore store({{"w", 4, 2}}, twoWorkers());
    store.finish(1);
    store.save(file);
  }
  auto store = ParameterStore::restore(file, twoWorkers());
  float value[2];
  store->clock(0);
  store->get(0, 0, 0, value);
}

TEST_F(StoreFile, WhatIsSavedAgainIsTheSame) {
  saveOne();
  std::string first = read();
  ParameterStore::restore(file, twoWorkers())->save(file);
  EXPECT_EQ(read(), first);
}

TEST_F(StoreFile, MalformedFilesAreRefused) {
  EXPECT_THAT(errorOfRestore(), HasSubstr("cannot be read"));
  write("");
  EXPECT_THAT(errorOfRestore(), HasSubstr("ends within its header"));
  write("zip");
  EXPECT_THAT(errorOfRestore(), HasSubstr("is no saved store"));
  write("baechi-store 3\n2 1\n0\n0\n4 2 0 w\n");
  EXPECT_THAT(errorOfRestore(), HasSubstr("has 1 clocks of 2 workers"));
  write("baechi-store 3\n1 1\n0\n\n4 2 0 w\n");
  EXPECT_THAT(errorOfRestore(), HasSubstr("does not say of each worker"));
  write("baechi-store 3\n1 1\n0\n0\n4 w\n");
  EXPECT_THAT(errorOfRestore(), HasSubstr("table 0 has no rows, width"));
  write("baechi-store 3\n1 1\n0\n0\n4000000000 2000000 0 w\n");
  EXPECT_THAT(errorOfRestore(), HasSubstr("has not as many numbers"));
  saveOne();
  write(read().substr(0, read().size() - 1));
  EXPECT_THAT(errorOfRestore(), HasSubstr("has not as many numbers"));
}

TEST_F(StoreFile, OtherVersionsAreRefusedByName) {
  write("baechi-store 2\n1 1\n0\n0\n4 2 0 w\n");
  EXPECT_THAT(errorOfRestore(),
              HasSubstr("is of another version, 'baechi-store 2'"));
}

TEST_F(StoreFile, EachFlippedBitIsFound) {
  saveOne();
  const std::string whole = read();
  for (size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string damaged = whole;
    damaged[bit / 8] = char(damaged[bit / 8] ^ 1 << bit % 8);
    write(damaged);
    EXPECT_THAT(errorOfRestore(), HasSubstr(file)) << "bit " << bit;
  }
  std::string number = whole; // in no word of its header
  number[whole.size() - 12] ^= 1;
  write(number);
  EXPECT_THAT(errorOfRestore(), HasSubstr("is damaged, its checksum"));
  write(whole);
  EXPECT_EQ(errorOfRestore(), "");
}

TEST(StoreChecksum, IsZlibs) {
  Checksum checksum;
  EXPECT_EQ(checksum.value(), 0u);
  checksum.add("1234");
  checksum.add("56789");
  EXPECT_EQ(checksum.value(), 0xcbf43926u); // as the catalogues of CRCs have it
}

TEST_F(StoreFile, AFolderThatIsNotThere) {
  ParameterStore store({{"w", 4, 2}}, twoWorkers());
  EXPECT_THAT(errorOf([&] { store.save("/nowhere/at/all"); }),
              HasSubstr("cannot be written"));
}

} // namespace
