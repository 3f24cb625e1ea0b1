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
#include <ctime>
#include <limits>
#include <tuple>

using namespace baechi::runtime;

static constexpr int64_t never = std::numeric_limits<int64_t>::max();

static bool takes(const SimulatedLink &link, int32_t lane) {
  return std::find(link.lanes.begin(), link.lanes.end(), lane) !=
         link.lanes.end();
}

/// How long \p bytes have the link's lanes.
static int64_t bytesNs(const SimulatedLink &link, int64_t bytes) {
  return link.transferNs(bytes) - link.latencyNs;
}

bool Carrier::isNeeded(const Program &program) {
  return std::any_of(program.queues.begin(), program.queues.end(),
                     [](const QueueInfo &queue) { return bool(queue.link); });
}

Carrier::Carrier(const Program &program, Exchange &exchange)
    : program(program), exchange(exchange), wakesAtNs(never) {
  size_t messages = 0;
  for (const QueueInfo &queue : program.queues) {
    messages += queue.messages.size();
    steps.emplace_back(queue.messages.size());
  }
  // So that an offer allocates nothing; of two steps, where they overlap.
  waiting.reserve(2 * messages);
  moving.reserve(2 * messages);
  freeNs.resize(exchange.lanes().size());
  countedNs.resize(exchange.lanes().size());
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

int64_t Carrier::processorNs() {
  clockid_t clock{};
  timespec time{};
  if (pthread_getcpuclockid(thread.native_handle(), &clock) == 0)
    clock_gettime(clock, &time);
  return int64_t(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

const SimulatedLink &Carrier::linkOf(const Message &message) const {
  return *program.queues[size_t(message.queue)].link;
}

int64_t Carrier::bytesOf(const Message &message) const {
  return program.queues[size_t(message.queue)]
      .messages[size_t(message.seq)]
      .bytes;
}

void Carrier::offered(int32_t queue, int32_t seq, bool odd) {
  const MessageInfo &message =
      program.queues[size_t(queue)].messages[size_t(seq)];
  {
    std::lock_guard<std::mutex> guard(mutex);
    int64_t now = exchange.elapsedNs();
    int64_t step = steps[size_t(queue)][size_t(seq)]++;
    waiting.push_back(
        {step, now, message.startNs, message.priority, queue, seq, odd});
    // Else the thread looks early enough.
    if (leastArrivalNs(waiting.back(), /*isMoving=*/false) >= wakesAtNs)
      return;
  }
  changed.notify_all();
}

void Carrier::drop() {
  std::unique_lock<std::mutex> lock(mutex);
  waiting.clear();
  moving.clear();
  std::fill(freeNs.begin(), freeNs.end(), 0);
  std::fill(countedNs.begin(), countedNs.end(), 0);
  for (std::vector<int64_t> &ofQueue : steps)
    std::fill(ofQueue.begin(), ofQueue.end(), 0);
  wakesAtNs = never; // the next times are of another clock
  isDropped = true;
  changed.wait(lock, [&] { return !isCopying; });
  isDropped = false;
}

/// Bytes of the slice that is its turn.
int64_t Carrier::sliceOf(const Message &message) const {
  int64_t left = bytesOf(message) - message.movedBytes;
  return program.exchange && program.exchange->sliceBytes
             ? std::min(left, *program.exchange->sliceBytes)
             : left;
}

bool Carrier::isLastSlice(const Message &message) const {
  return message.movedBytes + sliceOf(message) == bytesOf(message);
}

/// When its lanes are free, and it there.
int64_t Carrier::beginOf(const Message &message) const {
  int64_t begin = message.movedBytes ? message.endNs : message.offeredNs;
  for (int32_t lane : linkOf(message).lanes)
    begin = std::max(begin, freeNs[size_t(lane)]);
  return begin;
}

/// When all of it has arrived, if nothing overtakes it from now on.
int64_t Carrier::leastArrivalNs(const Message &message, bool isMoving) const {
  const SimulatedLink &link = linkOf(message);
  int64_t left = bytesOf(message) - message.movedBytes;
  return isMoving ? message.endNs + link.transferNs(left - sliceOf(message))
                  : beginOf(message) + link.transferNs(left);
}

bool Carrier::isMoreUrgent(const Message &a, const Message &b) const {
  if (program.exchange)
    return std::tie(a.step, a.priority, a.offeredNs, a.queue, a.seq) <
           std::tie(b.step, b.priority, b.offeredNs, b.queue, b.seq);
  return std::tie(a.plannedNs, a.queue, a.seq, a.step) <
         std::tie(b.plannedNs, b.queue, b.seq, b.step);
}

void Carrier::boardOne(std::vector<Message>::iterator message, int64_t begin) {
  const SimulatedLink &link = linkOf(*message);
  message->beginNs = begin;
  if (message->movedBytes == 0)
    message->firstNs = begin;
  message->endNs = begin + bytesNs(link, sliceOf(*message));
  for (int32_t lane : link.lanes)
    freeNs[size_t(lane)] = message->endNs;
  moving.push_back(*message);
  // In any order: whose turn it is does not depend on it.
  *message = waiting.back();
  waiting.pop_back();
}

/// As time passed: what had its lanes first goes first, and of several that
/// did, the most urgent.
void Carrier::board(int64_t now) {
  for (;;) {
    auto next = waiting.end();
    int64_t first = now;
    for (auto each = waiting.begin(); each != waiting.end(); ++each)
      if (int64_t begin = beginOf(*each);
          begin < first || (begin == first && (next == waiting.end() ||
                                               isMoreUrgent(*each, *next))))
        next = each, first = begin;
    // A message whose next slice may be more urgent.
    auto more =
        std::find_if(moving.begin(), moving.end(), [&](const Message &message) {
          return message.endNs <= first && !isLastSlice(message);
        });
    if (more != moving.end()) {
      more->movedBytes += sliceOf(*more);
      waiting.push_back(*more);
      *more = moving.back();
      moving.pop_back();
    } else if (next != waiting.end()) {
      boardOne(next, first);
    } else {
      return;
    }
  }
}

bool Carrier::deliver(std::unique_lock<std::mutex> &lock, int64_t now) {
  auto arrives = [&](const Message &message) {
    return leastArrivalNs(message, /*isMoving=*/true);
  };
  auto first = std::min_element(
      moving.begin(), moving.end(), [&](const Message &a, const Message &b) {
        return std::make_tuple(arrives(a), a.queue, a.seq) <
               std::make_tuple(arrives(b), b.queue, b.seq);
      });
  // By then all slices but the last one were boarded.
  if (first == moving.end() || arrives(*first) > now || !isLastSlice(*first))
    return false;
  Message message = *first;
  *first = moving.back();
  moving.pop_back();
  copy(lock, message, bytesOf(message));
  if (isDropped)
    return true;
  noteArrival(message);
  isCopying = true;
  lock.unlock();
  exchange.arrive(message.queue, message.seq, message.odd,
                  {message.firstNs, arrives(message)});
  lock.lock();
  isCopying = false;
  changed.notify_all();
  return true;
}

bool Carrier::copyAhead(std::unique_lock<std::mutex> &lock) {
  // So little that what arrives meanwhile is hardly late.
  constexpr int64_t mostBytes = 256 << 10;
  auto next = moving.end();
  for (auto each = moving.begin(); each != moving.end(); ++each)
    if (exchange.channels()[size_t(each->queue)].moves &&
        each->copiedBytes < bytesOf(*each) &&
        (next == moving.end() || leastArrivalNs(*each, /*isMoving=*/true) <
                                     leastArrivalNs(*next, /*isMoving=*/true)))
      next = each;
  if (next == moving.end())
    return false;
  Message message = *next;
  copy(lock, message, mostBytes);
  // Offers add to those that wait alone.
  if (!isDropped)
    next->copiedBytes = message.copiedBytes;
  return true;
}

void Carrier::copy(std::unique_lock<std::mutex> &lock, Message &message,
                   int64_t mostBytes) {
  const Channel &channel = exchange.channels()[size_t(message.queue)];
  const Slot &slot = channel.slotsOf(message.odd)[size_t(message.seq)];
  int64_t before = message.copiedBytes,
          bytes = std::min(mostBytes, bytesOf(message) - before);
  if (!channel.moves || bytes <= 0)
    return;
  isCopying = true;
  lock.unlock();
  std::memcpy(static_cast<char *>(slot.destination) + before,
              static_cast<const char *>(slot.source) + before, size_t(bytes));
  lock.lock();
  isCopying = false;
  message.copiedBytes += bytes;
  changed.notify_all();
}

/// All of it.
void Carrier::noteArrival(const Message &message) {
  const SimulatedLink &link = linkOf(message);
  // So that how late the thread is counts, too.
  int64_t movedNs = exchange.elapsedNs() - link.latencyNs;
  for (int32_t lane : link.lanes) {
    int64_t sinceNs = message.offeredNs;
    for (const std::vector<Message> *others : {&waiting, &moving})
      for (const Message &other : *others) {
        // What is in its latency alone takes no lane.
        bool isMoved =
            others == &moving && isLastSlice(other) && other.endNs <= movedNs;
        if (!isMoved && takes(linkOf(other), lane))
          sinceNs = std::min(sinceNs, other.offeredNs);
      }
    LaneRecord &record = exchange.lanes()[size_t(lane)];
    int64_t &counted = countedNs[size_t(lane)];
    record.usedNs += bytesNs(link, bytesOf(message));
    record.waitedNs +=
        std::max<int64_t>(0, movedNs - std::max(sinceNs, counted));
    counted = std::max(counted, movedNs);
  }
}

int64_t Carrier::nextNs() const {
  int64_t next = never;
  for (const Message &message : moving)
    next = std::min(next, leastArrivalNs(message, /*isMoving=*/true));
  for (const Message &message : waiting)
    next = std::min(next, leastArrivalNs(message, /*isMoving=*/false));
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
      wakesAtNs = never;
      changed.wait(lock);
      wakesAtNs = 0;
      continue;
    }
    int64_t now = exchange.elapsedNs();
    board(now);
    if (deliver(lock, now) || copyAhead(lock))
      continue;
    wakesAtNs = nextNs();
    changed.wait_for(
        lock, std::chrono::nanoseconds(wakesAtNs - exchange.elapsedNs()));
    wakesAtNs = 0;
  }
}
