//===- Carrier.cpp - A simulated network within a process -----------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/Carrier.h"

#include <pthread.h>

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
  int32_t lanes = 0;
  for (const QueueInfo &queue : program.queues) {
    messages += queue.messages.size();
    if (queue.link)
      for (int32_t lane : queue.link->lanes)
        lanes = std::max(lanes, lane + 1);
  }
  // So that an offer allocates nothing; of two steps, where they overlap.
  waiting.reserve(2 * messages);
  moving.reserve(2 * messages);
  freeNs.resize(size_t(lanes));
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
    waiting.push_back({exchange.elapsedNs(), message.startNs, queue, seq, odd});
  }
  changed.notify_all();
}

void Carrier::drop() {
  std::unique_lock<std::mutex> lock(mutex);
  waiting.clear();
  moving.clear();
  std::fill(freeNs.begin(), freeNs.end(), 0);
  changed.wait(lock, [&] { return !isCopying; });
}

void Carrier::board(int64_t now) {
  std::sort(waiting.begin(), waiting.end(),
            [](const Message &a, const Message &b) {
              return std::tie(a.plannedNs, a.queue, a.seq) <
                     std::tie(b.plannedNs, b.queue, b.seq);
            });
  for (auto next = waiting.begin(); next != waiting.end();) {
    const QueueInfo &queue = program.queues[size_t(next->queue)];
    int64_t begin = next->offeredNs;
    for (int32_t lane : queue.link->lanes)
      begin = std::max(begin, freeNs[size_t(lane)]);
    if (begin > now) {
      ++next;
      continue;
    }
    next->beginNs = begin;
    next->endNs =
        begin + queue.link->transferNs(queue.messages[next->seq].bytes);
    for (int32_t lane : queue.link->lanes)
      freeNs[size_t(lane)] = next->endNs;
    moving.push_back(*next);
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
  if (channel.moves && slot.bytes > 0)
    std::memcpy(slot.destination, slot.source, size_t(slot.bytes));
  exchange.arrive(message.queue, message.seq, message.odd,
                  {message.beginNs, message.endNs});
  lock.lock();
  isCopying = false;
  changed.notify_all();
  return true;
}

int64_t Carrier::nextNs() const {
  int64_t next = never;
  for (const Message &message : moving)
    next = std::min(next, message.endNs);
  return next;
}

void Carrier::work() {
  pthread_setname_np(pthread_self(), "carrier");
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
