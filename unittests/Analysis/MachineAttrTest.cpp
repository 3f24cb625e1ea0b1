//===- MachineAttrTest.cpp - Machines as attributes ----------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/MachineAttr.h"
#include "gtest/gtest.h"

using namespace baechi;
using namespace mlir;

TEST(MachineAttr, AttributeRoundTrip) {
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
