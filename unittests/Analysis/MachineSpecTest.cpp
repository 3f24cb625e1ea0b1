//===- MachineSpecTest.cpp - Machines: names, sizes, attributes -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/MachineSpec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace baechi;
using namespace mlir;
using testing::HasSubstr;

namespace {
std::string errorOf(StringRef spec) {
  std::string error;
  EXPECT_FALSE(readMachineSpec(spec, error)) << spec.str();
  return error;
}

placement::Machine machineOfSpec(StringRef spec) {
  std::string error;
  std::optional<placement::Machine> machine = readMachineSpec(spec, error);
  EXPECT_TRUE(machine) << error;
  return machine.value_or(placement::Machine());
}
} // namespace

TEST(MachineSpec, ShortForm) {
  placement::Machine machine = machineOfSpec("cuda:3@2GiB");
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

TEST(MachineSpec, ErrorsNameWhatIsWrongAndTheMend) {
  for (const char *spec : {"host:0", "host:-1", "host:4097", "host:", "host:x",
                           "host:2x", "host:99999999999999999999"})
    EXPECT_THAT(errorOf(spec),
                HasSubstr("is not a number of devices from 1 to 4096; write "
                          "KIND:N or KIND:N@SIZE, like host:2"));
  for (const char *spec : {"host:2@", "host:2@x", "host:2@-1GiB", "host:2@nan",
                           "host:2@1e30", "host:2@1gb", "host:2@1GBB"})
    EXPECT_THAT(errorOf(spec), HasSubstr("is not a size"));
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

TEST(MachineSpec, Bytes) {
  EXPECT_EQ(parseBytes("4096"), 4096);
  EXPECT_EQ(parseBytes("1.5GiB"), int64_t(3) << 29);
  EXPECT_EQ(parseBytes("512 KiB"), 512 << 10);
  EXPECT_EQ(parseBytes("2TiB"), int64_t(2) << 40);
  EXPECT_EQ(parseBytes("0"), 0);
  EXPECT_EQ(parseBytes("1.5GB"), 1'500'000'000);
  EXPECT_EQ(parseBytes("20 MB"), 20'000'000);
  EXPECT_EQ(parseBytes("7B"), 7);
  for (const char *text :
       {"", "GiB", "GB", "-1", "1KiBMiB", "1KBB", "inf", "nan"})
    EXPECT_FALSE(parseBytes(text)) << text;
  EXPECT_EQ(formatBytes(0), "0 B");
  EXPECT_EQ(formatBytes(1023), "1023 B");
  EXPECT_EQ(formatBytes(1536), "1.50 KiB");
  EXPECT_EQ(formatBytes(int64_t(5) << 40), "5.00 TiB");
}

TEST(MachineSpec, AttributeRoundTrip) {
  MLIRContext context;
  context.loadDialect<BaechiDialect>();
  placement::Machine machine;
  machine.devices = {{"a", "host", 100}, {"b", "cuda", 200}, {"c", "host", 0}};
  machine.links.resize(9);
  auto expectSame = [&] {
    placement::Machine back = fromAttr(toAttr(&context, machine));
    ASSERT_EQ(back.devices.size(), 3u);
    EXPECT_EQ(back.linkModel, machine.linkModel);
    for (int from = 0; from < 3; ++from) {
      EXPECT_EQ(back.devices[from].name, machine.devices[from].name);
      EXPECT_EQ(back.devices[from].kind, machine.devices[from].kind);
      EXPECT_EQ(back.devices[from].memory, machine.devices[from].memory);
      for (int to = 0; to < 3; ++to) {
        const auto &link = machine.link(from, to), &other = back.link(from, to);
        ASSERT_EQ(link.has_value(), other.has_value()) << from << " " << to;
        if (!link)
          continue;
        EXPECT_EQ(link->latencyNs, other->latencyNs);
        EXPECT_EQ(link->bytesPerUs, other->bytesPerUs);
      }
    }
  };
  // Nobody can talk.
  expectSame();
  EXPECT_FALSE(toAttr(&context, machine).getLinkDefault());
  // Some can, each link its own.
  machine.links[1] = placement::Link{10, 1000};
  machine.links[3] = placement::Link{20, 2000};
  machine.links[5] = placement::Link{10, 1000};
  machine.linkModel = placement::LinkModel::Duplex;
  expectSame();
  EXPECT_EQ(toAttr(&context, machine).getLinks().size(), 3u);
  // All alike.
  for (int i = 0; i < 9; ++i)
    if (i % 4)
      machine.links[i] = placement::Link{30, 3000};
  machine.linkModel = placement::LinkModel::Unlimited;
  expectSame();
  EXPECT_TRUE(toAttr(&context, machine).getLinks().empty());
  // All but one alike.
  machine.links[7]->latencyNs = 31;
  expectSame();
}
