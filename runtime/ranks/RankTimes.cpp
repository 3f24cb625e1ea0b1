//===- RankTimes.cpp - Times of the devices of other ranks -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ranks/RankRelay.h"

#include <algorithm>

using namespace baechi::runtime;

static int64_t clockNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void RankRelay::collectTimes() {
  if (times.empty())
    return;
  int64_t *at = times.data();
  *at++ = clockNs() - exchange.elapsedNs();
  auto add = [&](const Interval &interval) {
    *at++ = interval.beginNs;
    *at++ = interval.endNs;
  };
  for (size_t i = 0; i < owners.size(); ++i)
    if (!isElsewhere(int32_t(i)))
      for (const Interval &interval : exchange.context(i).operators)
        add(interval);
  for (const Channel &channel : exchange.channels())
    if (channel.reach != Reach::Elsewhere)
      for (size_t seq = 0; seq < channel.slots.size(); ++seq)
        add(channel.mover && !channel.mover->copiesAtOnce()
                ? channel.mover->timeOf(int32_t(seq))
                : Interval(channel.slots[seq].copy));
  for (const LaneRecord &lane : exchange.lanes()) {
    *at++ = lane.usedNs;
    *at++ = lane.waitedNs;
  }
}

void RankRelay::addTimes(Timeline &timeline) const {
  if (times.empty() || !ranks->leads())
    return;
  for (const Peer &peer : peers) {
    if (!peer.talks || !peer.ended)
      continue;
    const int64_t *at = peer.times.data();
    // Where both have one clock, times are told from this rank's beginning.
    int64_t shift = *at++ - times.front();
    if (!transport.sharesClock(peer.rank))
      shift = 0;
    auto take = [&] {
      Interval interval{at[0], at[1]};
      at += 2;
      if (interval.happened()) {
        interval.beginNs = std::max<int64_t>(0, interval.beginNs + shift);
        interval.endNs = std::max(interval.beginNs, interval.endNs + shift);
      }
      return interval;
    };
    for (size_t i = 0; i < owners.size(); ++i) {
      if (owners[i] != peer.rank)
        continue;
      DeviceRecord &device = timeline.devices[i];
      device.busyNs = 0;
      for (Interval &interval : device.operators) {
        interval = take();
        device.busyNs += interval.durationNs();
      }
    }
    for (size_t q = 0; q < program.queues.size(); ++q) {
      bool sends = owners[program.queues[q].from] == peer.rank;
      bool receives = owners[program.queues[q].to] == peer.rank;
      if (!sends && !receives)
        continue;
      // A copy begins where it is sent, and ends where it is received: the
      // receiver may have been ready long before.
      for (CopyRecord &copy : timeline.queues[q]) {
        Interval part = take();
        if (sends)
          copy.beginNs = part.beginNs;
        if (receives)
          copy.endNs = part.endNs;
        copy.byReceiver = true;
        copy.endNs = std::max(copy.beginNs, copy.endNs);
      }
    }
    // Each process's links have lanes of their own.
    for (LaneRecord &lane : timeline.lanes) {
      lane.usedNs += *at++;
      lane.waitedNs += *at++;
    }
  }
}
