//===- LookAhead.cpp - What a group brings to its device --------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Placers/LookAhead.h"

#include <algorithm>
#include <utility>

using namespace baechi::placement;
using namespace baechi::placement::placers;

LookAhead::LookAhead(const Model &model, const PartialSchedule &schedule)
    : model(model), schedule(schedule), work(model.numDevices, 0),
      mark(model.numTensors, 0) {}

int64_t LookAhead::unitTime(Unit u, int32_t d) const {
  int64_t sum = 0;
  for (int32_t i : model.members[u])
    sum += std::max<int64_t>(0, model.timeOf(i, d));
  return sum;
}

/// All transfers between the unit on \p d and units that are decided.
int64_t LookAhead::traffic(Unit u, int32_t d) {
  int64_t sum = 0;
  ++stamp;
  std::vector<int32_t> homes;
  auto elsewhere = [&](int32_t node) {
    int32_t home = schedule.deviceOfUnit(model.unit[node]);
    return model.unit[node] != u && home >= 0 && home != d ? home : -1;
  };
  for (int32_t i : model.members[u]) {
    for (int32_t t : model.operands[i]) {
      int32_t home = elsewhere(model.producer[t]);
      if (home >= 0 && model.reaches(home, d) &&
          std::exchange(mark[t], stamp) != stamp)
        sum += model.routeNs(t, home, d);
    }
    auto [begin, end] = model.tensorsOf(i);
    for (int32_t t = begin; t < end; ++t) {
      homes.clear();
      for (int32_t user : model.users[t]) {
        int32_t home = elsewhere(user);
        if (home < 0 || !model.reaches(d, home) ||
            std::find(homes.begin(), homes.end(), home) != homes.end())
          continue;
        homes.push_back(home);
        sum += model.routeNs(t, d, home);
      }
    }
  }
  return sum;
}

int64_t LookAhead::cost(Unit u, int32_t d) {
  int64_t least = 0;
  for (int32_t i : model.members[u])
    least += model.minTime(i);
  // Of what the device has yet to run about half is in the way.
  return work[d] / 2 + unitTime(u, d) - least + traffic(u, d);
}

void LookAhead::placed(int32_t node, int32_t d) {
  work[d] -= std::max<int64_t>(0, model.timeOf(node, d));
}
