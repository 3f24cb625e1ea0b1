//===- Downstream.cpp - The order of pipelines ------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Memory/Downstream.h"

#include <algorithm>

using namespace baechi::placement;
using namespace baechi::placement::memory;

std::vector<int64_t>
baechi::placement::memory::downstreamFirst(const Model &model,
                                           const Assignment &device) {
  std::vector<int64_t> behind(model.numNodes, 0);
  int64_t longest = 0;
  for (int32_t i : model.order) {
    int64_t end = behind[i] + model.timeOf(i, device[i]);
    longest = std::max(longest, end);
    auto [begin, last] = model.tensorsOf(i);
    for (int32_t t = begin; t < last; ++t)
      for (int32_t user : model.users[t])
        behind[user] = std::max(
            behind[user], end + model.routeNs(t, device[i], device[user]));
    for (int32_t user : model.controlUsers[i])
      behind[user] = std::max(behind[user], end);
  }
  // From the end: what leads to another device.
  std::vector<uint8_t> leads(model.numNodes, 0);
  for (int32_t k = model.numNodes; k-- > 0;) {
    int32_t i = model.order[k];
    auto look = [&](int32_t user) {
      if (leads[user] || device[user] != device[i])
        leads[i] = 1;
    };
    auto [begin, last] = model.tensorsOf(i);
    for (int32_t t = begin; t < last; ++t)
      for (int32_t user : model.users[t])
        look(user);
    for (int32_t user : model.controlUsers[i])
      look(user);
    if (leads[i])
      behind[i] += longest + 1;
  }
  return behind;
}
