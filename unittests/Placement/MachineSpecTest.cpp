//===- MachineSpecTest.cpp - Machines by a short form, and sizes ----------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Io/Files.h"
#include "Baechi/Placement/Model/Pool.h"
#include "Baechi/Placement/Model/Text.h"
#include "Baechi/Placement/Session/Place.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace baechi::placement;
using testing::HasSubstr;

namespace {
std::string errorOf(const std::string &spec) {
  Machine machine;
  std::string error = readMachineSpec(spec, machine);
  EXPECT_NE(error, "") << spec;
  return error;
}

Machine machineOfSpec(const std::string &spec) {
  Machine machine;
  EXPECT_EQ(readMachineSpec(spec, machine), "");
  return machine;
}
} // namespace

TEST(MachineSpec, ShortForm) {
  Machine machine = machineOfSpec("cuda:3@2GiB");
  ASSERT_EQ(machine.devices.size(), 3u);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(machine.devices[i].name, "cuda" + std::to_string(i));
    EXPECT_EQ(machine.devices[i].kind, "cuda");
    EXPECT_EQ(machine.devices[i].memory, int64_t(2) << 30);
  }
  EXPECT_TRUE(machine.link(0, 2) && machine.link(2, 0));
}

TEST(MachineSpec, WithoutASizeDevicesShareTheMemory) {
  int64_t whole = machineOfSpec("host:1").devices[0].memory;
  EXPECT_GT(whole, 0);
  EXPECT_EQ(machineOfSpec("host:4").devices[3].memory, whole / 4);
}

TEST(MachineSpec, AMemoryBesideDevices) {
  Machine machine = machineOfSpec("host:2@1GiB+pool:4GiB");
  ASSERT_EQ(machine.devices.size(), 3u);
  EXPECT_EQ(machine.devices[2].name, "pool0");
  EXPECT_EQ(machine.devices[2].memory, int64_t(4) << 30);
  EXPECT_EQ(poolsOf(machine), std::vector<int32_t>{2});
  EXPECT_TRUE(machine.link(0, 1)->lends);
  EXPECT_FALSE(machine.link(0, 2)->lends || machine.link(2, 1)->lends);
  Machine rest = withoutPools(machine);
  EXPECT_EQ(rest.devices.size(), 2u);
  EXPECT_TRUE(rest.link(1, 0)->lends);
  for (const char *spec :
       {"host:1+pool", "host:1+pool:much", "host:1+ram:1GiB"})
    EXPECT_THAT(errorOf(spec), HasSubstr("is no memory beside devices"))
        << spec;
  EXPECT_THAT(errorOf("pool:4GiB"), HasSubstr("a pool alone computes nothing"));
}

TEST(MachineSpec, ADiskBehindAPool) {
  Machine machine = machineOfSpec("host:1+pool:4GiB+disk:40GiB");
  ASSERT_EQ(machine.devices.size(), 3u);
  EXPECT_EQ(machine.devices[2].name, "disk0");
  EXPECT_EQ(machine.devices[2].kind, kDisk);
  EXPECT_EQ(poolsOf(machine), (std::vector<int32_t>{1, 2}));
  EXPECT_LT(machine.link(0, 2)->bytesPerUs, machine.link(0, 1)->bytesPerUs);
  EXPECT_EQ(machineOfSpec("host:1+disk:1GiB").devices[1].kind, kDisk);
  for (const char *spec :
       {"host:1+pool:1GiB+pool:1GiB", "host:1+disk:1GiB+pool:1GiB",
        "host:1+pool:1GiB+disk:1GiB+disk:1GiB"})
    EXPECT_THAT(errorOf(spec), HasSubstr("stands behind another memory"))
        << spec;
  EXPECT_THAT(errorOf("disk:4GiB"), HasSubstr("a disk alone computes nothing"));
}

TEST(MachineSpec, ErrorsNameWhatIsWrongAndTheMend) {
  for (const char *spec : {"host:0", "host:-1", "host:4097", "host:", "host:x",
                           "host:2x", "host:99999999999999999999"})
    EXPECT_THAT(errorOf(spec),
                HasSubstr("is not a number of devices from 1 to 4096; write "
                          "KIND:N or KIND:N@SIZE, like host:2"));
  for (const char *spec : {"host:2@", "host:2@x", "host:2@-1GiB", "host:2@nan",
                           "host:2@1e30", "host:2@1gb", "host:2@1GBB"})
    EXPECT_THAT(errorOf(spec), HasSubstr("is not a size"));
  EXPECT_THAT(errorOf("host:2@0"), HasSubstr("hold nothing: give more"));
  EXPECT_THAT(errorOf("tpu:2"), HasSubstr("unknown kind 'tpu' (known: host"));
  EXPECT_THAT(errorOf("gpu:2@1GiB"),
              HasSubstr("unknown kind 'gpu' (known: host, cuda; did you mean "
                        "'cuda:2@1GiB'?)"));
  EXPECT_THAT(errorOf("hots:2"), HasSubstr("did you mean 'host:2'?"));
  EXPECT_THAT(errorOf("host2"), HasSubstr("no ':' before the number of devices "
                                          "(did you mean 'host:2'?)"));
  EXPECT_THAT(errorOf("no/such/machine.json"),
              HasSubstr("no/such/machine.json"));
}

TEST(MachineSpec, MemoryOfAllDevicesIsANumber) {
  Machine machine;
  EXPECT_EQ(readMachineSpec("host:2@1EiB+disk:1EiB", machine), "");
  EXPECT_THAT(errorOf("host:4@1EiB+disk:1EiB"),
              HasSubstr("the devices hold 5.00 EiB together, of at most "
                        "4.00 EiB"));
}

TEST(Text, SizesAreParsed) {
  EXPECT_EQ(parseBytes("4096"), 4096);
  EXPECT_EQ(parseBytes("1.5GiB"), int64_t(3) << 29);
  EXPECT_EQ(parseBytes("512 KiB"), 512 << 10);
  EXPECT_EQ(parseBytes("2TiB"), int64_t(2) << 40);
  EXPECT_EQ(parseBytes("0.5PiB"), int64_t(1) << 49);
  EXPECT_EQ(parseBytes("7EiB"), int64_t(7) << 60);
  EXPECT_EQ(parseBytes("2PB"), 2'000'000'000'000'000);
  EXPECT_FALSE(parseBytes("8EiB"));
  EXPECT_EQ(parseBytes("0"), 0);
  EXPECT_EQ(parseBytes("1.5GB"), 1'500'000'000);
  EXPECT_EQ(parseBytes("20 MB"), 20'000'000);
  EXPECT_EQ(parseBytes("7B"), 7);
  for (const char *text :
       {"", "GiB", "GB", "-1", "1KiBMiB", "1KBB", "inf", "nan"})
    EXPECT_FALSE(parseBytes(text)) << text;
}

TEST(Text, Bytes) {
  EXPECT_EQ(bytesText(0), "0 B");
  EXPECT_EQ(bytesText(-1023), "-1023 B");
  EXPECT_EQ(bytesText(1536), "1.5 KiB");
  EXPECT_EQ(bytesText(1536, 2), "1.50 KiB");
  EXPECT_EQ(bytesText(5 * 0x1p40, 2), "5.00 TiB");
  // Never "1024.0 KiB".
  EXPECT_EQ(bytesText(0x1p20 - 1), "1.0 MiB");
  EXPECT_EQ(bytesText(0x1p20 - 1, 2), "1.00 MiB");
}

TEST(MachineSpec, WhatIsNeededIsNotRoundedDown) {
  EXPECT_EQ(bytesTextUp(0), "0 B");
  EXPECT_EQ(bytesTextUp(1023), "1023 B");
  EXPECT_EQ(bytesTextUp(1024, 2), "1.00 KiB");
  EXPECT_EQ(bytesTextUp(1025, 2), "1.01 KiB");
  EXPECT_EQ(bytesTextUp(0x1p20 - 1, 2), "1.00 MiB");
  for (int64_t bytes : {1'101'005, 1'101'004, 5'515'264, 123'456'789})
    EXPECT_GE(*parseBytes(bytesTextUp(static_cast<double>(bytes), 2)), bytes);
}

TEST(Text, EditDistance) {
  EXPECT_EQ(editDistance("host", "hots", 5), 1u);
  EXPECT_EQ(editDistance("", "abc", 5), 3u);
  EXPECT_EQ(suggestion("mstc", placerNames()), " (did you mean 'msct'?)");
  EXPECT_EQ(suggestion("best", placerNames()), "");
  EXPECT_EQ(editDistance("msct", "metf", 2), 2u);
  EXPECT_EQ(editDistance("same", "same", 1), 0u);
}
