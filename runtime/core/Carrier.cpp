//===- Carrier.cpp - A simulated network ----------------------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/Carrier.h"

#include <pthread.h>
#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <tuple>

using namespace baechi::runtime;

static constexpr int64_t never = std::numeric_limits<int64_t>::max();

bool Carrier::isNeeded(const Program &program) {
  return std::any_of(program.queues.begin(), program.queues.end(),
                     [](const QueueInfo &queue) { return bool(queue.link); });
}

Carrier::Carrier(const Program &program, Exchange &exchange)
    : program(program), exchange(exchange) {
  size_t messages = 0;
  for (const QueueInfo &queue : program.queues) {
    messages += queue.messages.size();
    steps.emplace_back(queue.messages.size());
  }
  // So that an offer allocates nothing; of two steps, where they overlap.
  waiting.reserve(2 * messages);
  moving.reserve(2 * messages);
  freeNs.resize(exchange.lanes().size());
  backlogs.resize(exchange.lanes().size());
  thread = std::thread([this] { work(); });
}

Carrier::~Carrier() {
  {
    std::lock_guard<std::mutex> guard(mutex);
    isEnding = true;
  }
  changed.notify_all();
  thread.join();
}

void Carrier::offered(int32_t queue, int32_t seq, bool odd) {
  const MessageInfo &message = program.queues[size_t(queue)].messages[seq];
  {
    std::lock_guard<std::mutex> guard(mutex);
    int64_t now = exchange.elapsedNs();
    int64_t step = steps[size_t(queue)][size_t(seq)]++;
    waiting.push_back(
        {step, now, message.startNs, message.priority, queue, seq, odd});
    for (int32_t lane : program.queues[size_t(queue)].link->lanes)
      if (Backlog &backlog = backlogs[size_t(lane)]; ++backlog.messages == 1)
        backlog.sinceNs = now;
    // Else the thread looks when what has its lanes has arrived.
    if (!moving.empty() && beginOf(waiting.back()) > now)
      return;
  }
  changed.notify_all();
}

void Carrier::drop() {
  std::unique_lock<std::mutex> lock(mutex);
  waiting.clear();
  moving.clear();
  std::fill(freeNs.begin(), freeNs.end(), 0);
  std::fill(backlogs.begin(), backlogs.end(), Backlog());
  for (std::vector<int64_t> &ofQueue : steps)
    std::fill(ofQueue.begin(), ofQueue.end(), 0);
  isDropped = true;
  changed.wait(lock, [&] { return !isCopying; });
  isDropped = false;
}

/// Bytes of the slice that is its turn.
int64_t Carrier::sliceOf(const Message &message) const {
  int64_t left =
      program.queues[size_t(message.queue)].messages[message.seq].bytes -
      message.movedBytes;
  return program.exchange && program.exchange->sliceBytes
             ? std::min(left, *program.exchange->sliceBytes)
             : left;
}

/// When its lanes are free, and it there.
int64_t Carrier::beginOf(const Message &message) const {
  int64_t begin = message.movedBytes ? message.endNs : message.offeredNs;
  for (int32_t lane : program.queues[size_t(message.queue)].link->lanes)
    begin = std::max(begin, freeNs[size_t(lane)]);
  return begin;
}

void Carrier::boardOne(std::vector<Message>::iterator message, int64_t begin) {
  const SimulatedLink &link = *program.queues[size_t(message->queue)].link;
  message->beginNs = begin;
  if (message->movedBytes == 0)
    message->firstNs = begin;
  message->endNs = begin + link.transferNs(sliceOf(*message)) -
                   (message->movedBytes ? link.latencyNs : 0);
  for (int32_t lane : link.lanes)
    freeNs[size_t(lane)] = message->endNs;
  moving.push_back(*message);
}

/// As time passed: what had its lanes first goes first, and of several that
/// did, the most urgent.
void Carrier::boardByPriority(int64_t now) {
  auto urgency = [](const Message &message) {
    return std::tie(message.step, message.priority, message.offeredNs,
                    message.queue, message.seq);
  };
  for (;;) {
    auto next = waiting.end();
    int64_t first = never;
    for (auto each = waiting.begin(); each != waiting.end(); ++each)
      if (int64_t begin = beginOf(*each);
          begin < first ||
          (begin == first && begin != never && urgency(*each) < urgency(*next)))
        next = each, first = begin;
    // What moves may be there by then, and its next slice be more urgent.
    if (first > now || first >= nextNs())
      return;
    boardOne(next, first);
    // In any order: whose turn it is does not depend on it.
    *next = waiting.back();
    waiting.pop_back();
  }
}

void Carrier::board(int64_t now) {
  if (program.exchange)
    return boardByPriority(now);
  std::sort(waiting.begin(), waiting.end(),
            [](const Message &a, const Message &b) {
              return std::tie(a.plannedNs, a.queue, a.seq) <
                     std::tie(b.plannedNs, b.queue, b.seq);
            });
  for (auto next = waiting.begin(); next != waiting.end();) {
    int64_t begin = beginOf(*next);
    if (begin > now) {
      ++next;
      continue;
    }
    boardOne(next, begin);
    next = waiting.erase(next);
  }
}

bool Carrier::deliver(std::unique_lock<std::mutex> &lock, int64_t now) {
  auto first = std::min_element(moving.begin(), moving.end(),
                                [](const Message &a, const Message &b) {
                                  return std::tie(a.endNs, a.queue, a.seq) <
                                         std::tie(b.endNs, b.queue, b.seq);
                                });
  if (first == moving.end() || first->endNs > now)
    return false;
  Message message = *first;
  moving.erase(first);
  isCopying = true;
  lock.unlock();
  const Channel &channel = exchange.channels()[size_t(message.queue)];
  const Slot &slot = channel.slotsOf(message.odd)[size_t(message.seq)];
  int64_t bytes = sliceOf(message), before = message.movedBytes;
  if (channel.moves && bytes > 0)
    std::memcpy(static_cast<char *>(slot.destination) + before,
                static_cast<const char *>(slot.source) + before, size_t(bytes));
  message.movedBytes += bytes;
  bool isWhole = message.movedBytes == slot.bytes;
  // Before others know of it, who may look at the lanes then.
  if (isWhole) {
    noteArrival(message);
    exchange.arrive(message.queue, message.seq, message.odd,
                    {message.firstNs, message.endNs});
  }
  lock.lock();
  isCopying = false;
  if (!isWhole && !isDropped)
    waiting.push_back(message);
  changed.notify_all();
  return true;
}

/// All of it.
void Carrier::noteArrival(const Message &message) {
  const SimulatedLink &link = *program.queues[size_t(message.queue)].link;
  std::lock_guard<std::mutex> guard(mutex);
  int64_t now = exchange.elapsedNs();
  for (int32_t lane : link.lanes) {
    LaneRecord &record = exchange.lanes()[size_t(lane)];
    record.usedNs += link.transferNs(message.movedBytes) - link.latencyNs;
    Backlog &backlog = backlogs[size_t(lane)];
    if (!isDropped && --backlog.messages == 0)
      record.waitedNs += now - backlog.sinceNs;
  }
}

int64_t Carrier::nextNs() const {
  int64_t next = never;
  for (const Message &message : moving)
    next = std::min(next, message.endNs);
  return next;
}

void Carrier::work() {
  pthread_setname_np(pthread_self(), "carrier");
  // Short sleeps are meant to be short.
  prctl(PR_SET_TIMERSLACK, 1000UL);
  std::unique_lock<std::mutex> lock(mutex);
  while (!isEnding) {
    // Between steps the clock is set anew.
    if (waiting.empty() && moving.empty()) {
      changed.wait(lock);
      continue;
    }
    int64_t now = exchange.elapsedNs();
    board(now);
    if (deliver(lock, now))
      continue;
    int64_t next = nextNs(); // what waits needs a lane that something has
    changed.wait_for(lock,
                     std::chrono::nanoseconds(next - exchange.elapsedNs()));
  }
}
