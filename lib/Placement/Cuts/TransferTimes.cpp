//===- TransferTimes.cpp - What moving between layouts takes ----*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Cuts/TransferTimes.h"
#include "Model/Boxes.h"

#include <algorithm>
#include <set>
#include <tuple>

using namespace baechi::placement;
using namespace baechi::placement::cuts;

int64_t baechi::placement::cuts::bounded(double value) {
  return value >= static_cast<double>(costly) ? costly
                                              : static_cast<int64_t>(value);
}

static double ratio(int64_t part, int64_t all) {
  return static_cast<double>(part) / static_cast<double>(all);
}

int32_t TransferTimes::numberOf(const Maker &maker) {
  const OutputCut &made = maker.made;
  std::vector<int64_t> key{maker.bytes,    maker.pieces,
                           made.cut.along, made.isPartial,
                           made.extra,     std::ssize(maker.shape)};
  key.insert(key.end(), maker.shape.begin(), maker.shape.end());
  key.insert(key.end(), made.cut.sizes.begin(), made.cut.sizes.end());
  auto [it, isNew] =
      makerNumbers.emplace(std::move(key), static_cast<int32_t>(makers.size()));
  if (isNew)
    makers.push_back(maker);
  return it->second;
}

int32_t TransferTimes::numberOf(const Reader &reader) {
  std::vector<int64_t> key{reader.pieces, reader.cut.along, reader.extra};
  key.insert(key.end(), reader.cut.sizes.begin(), reader.cut.sizes.end());
  auto [it, isNew] = readerNumbers.emplace(
      std::move(key), static_cast<int32_t>(readers.size()));
  if (isNew)
    readers.push_back(reader);
  return it->second;
}

int64_t TransferTimes::ns(int32_t maker, int32_t reader) {
  uint64_t key = static_cast<uint64_t>(maker) << 32 |
                 static_cast<uint64_t>(static_cast<uint32_t>(reader));
  auto [it, isNew] = known.emplace(key, 0);
  if (isNew)
    it->second = compute(makers[maker], readers[reader]);
  return it->second;
}

/// Of all devices together where links exclude each other, else of the one that
/// waits longest.
int64_t TransferTimes::compute(const Maker &maker, const Reader &reader) const {
  Layout lies(maker.made.cut, maker.shape, maker.pieces),
      wanted(reader.cut, maker.shape, reader.pieces);
  int64_t volume = Box::whole(maker.shape).volume();
  auto lanes = static_cast<int32_t>(devices.size());
  std::vector<double> waits(devices.size(), 0);
  std::set<std::tuple<int32_t, int32_t, int32_t>> fetched;
  for (int32_t q = 0; q < reader.pieces; ++q) {
    int32_t here = q % lanes;
    const Box &box = wanted.box(wanted.sliceOf(q));
    auto fetch = [&](int32_t p, double share) {
      int32_t there = p % lanes;
      if (there == here || !fetched.emplace(p, here, wanted.sliceOf(q)).second)
        return;
      const auto &link = machine.link(devices[there], devices[here]);
      if (!link) {
        waits[here] = static_cast<double>(costly);
        return;
      }
      waits[here] += ratio(
          link->transferNs(static_cast<int64_t>(ratio(maker.bytes, 1) * share) +
                           maker.made.extra + reader.extra),
          1);
    };
    if (maker.made.isPartial) {
      for (int32_t p = 0; p < maker.pieces; ++p)
        fetch(p, ratio(box.volume(), volume));
      continue;
    }
    for (int32_t s = 0; s < lies.slices(); ++s) {
      if (!lies.box(s).meets(box))
        continue;
      int64_t common = 1;
      for (size_t d = 0; d < box.ranges.size(); ++d)
        common *= std::min(box.ranges[d].second, lies.box(s).ranges[d].second) -
                  std::max(box.ranges[d].first, lies.box(s).ranges[d].first);
      fetch(lies.holder(s, q), ratio(common, volume));
    }
  }
  double sum = 0, longest = 0;
  for (double wait : waits) {
    sum += wait;
    longest = std::max(longest, wait);
  }
  if (objective == Objective::MaxLoad)
    return bounded(2 * sum / ratio(lanes, 1));
  bool isShared = machine.linkModel == LinkModel::Sequential;
  return bounded(isShared ? sum : longest);
}
