//===- StepQueue.cpp - Steps that run while Python goes on ------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "StepQueue.h"

#include <algorithm>

#include <unistd.h>

using namespace baechi::python;

using State = QueuedCall::State;

/// Whether a call that was given cannot be run: what it takes has failed.
static const QueuedCall *failedBefore(const QueuedCall &call) {
  for (const auto &earlier : call.after)
    if (earlier->state > State::Ended)
      return earlier.get();
  return nullptr;
}

int OpenedStep::run(QueuedCall &places) const {
  int failed = lending
                   ? lending(step, places.arguments.data(), places.lent.data(),
                             places.results.data())
                   : call(step, places.arguments.data(), places.results.data());
  places.isLeftBehind = failed && isLeftBehind();
  return failed;
}

int OpenedStep::runOverlapped(int64_t first, const CallGiver &giver,
                              const unsigned char *(*lent)(void *, int64_t),
                              int64_t &failed) const {
  return overlapLending ? overlapLending(step, first, &giver, lent, &failed)
                        : overlap(step, first, &giver, &failed);
}

std::shared_ptr<StepQueue> StepQueue::create(const OpenedStep &opened) {
  return {new StepQueue(opened), [](StepQueue *queue) {
            if (!queue->isOfOtherProcess())
              delete queue;
          }};
}

StepQueue::~StepQueue() {
  {
    std::lock_guard lock(mutex);
    isEnding = true;
  }
  changed.notify_all();
  if (worker.joinable())
    worker.join();
}

bool StepQueue::isOfOtherProcess() const {
  return worker.joinable() && process != getpid();
}

void StepQueue::hold() {
  mutex.lock();
  while (!calls.empty() || isRunning) {
    mutex.unlock();
    waitForAll(std::chrono::hours(1));
    mutex.lock();
  }
}

bool StepQueue::waitForRoom(Milliseconds limit) {
  return waitUntil([&] { return calls.size() < mostCalls(); }, limit, false);
}

void StepQueue::give(std::shared_ptr<QueuedCall> call) {
  {
    std::lock_guard lock(mutex);
    calls.push_back(std::move(call));
    if (!worker.joinable()) {
      process = getpid();
      worker = std::thread([this] { work(); });
    }
  }
  changed.notify_all();
}

bool StepQueue::waitFor(const QueuedCall &call, Milliseconds limit) {
  return waitUntil([&] { return call.hasEnded(); }, limit, true);
}

bool StepQueue::waitForAll(Milliseconds limit) {
  return waitUntil([&] { return calls.empty() && !isRunning; }, limit, true);
}

QueuedCall::State StepQueue::stateOf(const QueuedCall &call) const {
  std::lock_guard lock(mutex);
  return call.state;
}

template <typename Reached>
bool StepQueue::waitUntil(Reached reached, Milliseconds limit, bool mayRun) {
  auto end = std::chrono::steady_clock::now() + limit;
  std::unique_lock lock(mutex);
  while (!reached()) {
    if (mayRun && !isRunning)
      runFirst(lock, calls.size() > 1);
    else if (changed.wait_until(lock, end) == std::cv_status::timeout)
      return reached();
  }
  return true;
}

/// The first call is over.
void StepQueue::dropFirst(State state) {
  QueuedCall &call = *calls.front();
  call.state = state;
  call.after.clear();
  call.reads.clear();
  call.copies.clear();
  calls.pop_front();
  ++firstNumber;
  changed.notify_all();
}

void StepQueue::runFirst(std::unique_lock<std::mutex> &lock, bool mayOverlap) {
  QueuedCall &call = *calls.front();
  if (const QueuedCall *failed = failedBefore(call)) {
    call.error = failed->error;
    dropFirst(State::NotRun);
    return;
  }
  isRunning = true;
  if (opened.overlap && mayOverlap)
    runOverlapped(lock);
  else
    runAlone(call, lock);
  isRunning = false;
  changed.notify_all();
}

void StepQueue::runAlone(QueuedCall &call, std::unique_lock<std::mutex> &lock) {
  call.state = State::Running;
  lock.unlock();
  bool isWrong = opened.run(call) != 0;
  int64_t ns = opened.wallNs(opened.step);
  std::string text = isWrong ? opened.error(opened.step) : "";
  lock.lock();
  call.wallNs = ns;
  call.error = std::move(text);
  dropFirst(isWrong ? State::Failed : State::Ended);
}

/// From the first call on, as long as another one comes.
void StepQueue::runOverlapped(std::unique_lock<std::mutex> &lock) {
  isClosed = false;
  lastEnd = std::chrono::steady_clock::now();
  const CallGiver giver{
      this,
      [](void *self, int64_t number, auto arguments, auto results) {
        return static_cast<StepQueue *>(self)->next(number, arguments, results);
      },
      [](void *self, int64_t) { static_cast<StepQueue *>(self)->ended(); }};
  int64_t first = firstNumber, failed = -1;
  lock.unlock();
  auto lent = [](void *self, int64_t number) {
    return static_cast<const StepQueue *>(self)->lentOf(number);
  };
  bool isWrong = opened.runOverlapped(first, giver, lent, failed) != 0;
  std::string text = isWrong ? opened.error(opened.step) : "";
  bool isLeftBehind = isWrong && opened.isLeftBehind();
  lock.lock();
  if (!isWrong)
    return;
  // Where it is not known which call has failed it is the first that was left.
  failed = std::max(failed, firstNumber);
  while (!calls.empty() && firstNumber <= failed) {
    calls.front()->error = firstNumber == failed
                               ? text
                               : "it overlapped call " +
                                     std::to_string(failed + 1) +
                                     ", which failed: " + text;
    calls.front()->isLeftBehind = isLeftBehind;
    dropFirst(State::Failed);
  }
  // What is left takes nothing of these, or is not run; a device may have begun
  // it.
  for (const auto &call : calls) {
    call->isLeftBehind |= isLeftBehind && call->state == State::Running;
    call->state = State::Waiting;
  }
}

/// On a device's thread: the call that it asks for.
int StepQueue::next(int64_t number, const void *const **arguments,
                    void *const **results) {
  constexpr int there = 1, none = 0, later = -1;
  constexpr Milliseconds patience(5); // for a failure elsewhere
  auto end = std::chrono::steady_clock::now() + patience;
  std::unique_lock lock(mutex);
  while (true) {
    auto place = static_cast<size_t>(number - firstNumber);
    bool isGiven = place < calls.size() && !failedBefore(*calls[place]);
    // Once all have ended that were given, no more are taken.
    if (!isGiven && place == 0)
      isClosed = true;
    if (isClosed)
      return none;
    if (isGiven) {
      QueuedCall &call = *calls[place];
      if (std::all_of(call.reads.begin(), call.reads.end(),
                      [](const auto &each) { return each->hasEnded(); })) {
        if (call.state == State::Waiting) {
          call.state = State::Running;
          call.begun = std::chrono::steady_clock::now();
        }
        *arguments = call.arguments.data();
        *results = call.results.data();
        return there;
      }
    }
    if (changed.wait_until(lock, end) == std::cv_status::timeout)
      return later;
  }
}

/// On a device's thread, of a call that it was given.
const unsigned char *StepQueue::lentOf(int64_t number) const {
  std::lock_guard lock(mutex);
  return calls[static_cast<size_t>(number - firstNumber)]->lent.data();
}

/// On a device's thread: the first call has ended on all.
void StepQueue::ended() {
  auto now = std::chrono::steady_clock::now();
  std::lock_guard lock(mutex);
  QueuedCall &call = *calls.front();
  call.wallNs = std::chrono::duration_cast<std::chrono::nanoseconds>(
                    now - std::max(call.begun, lastEnd))
                    .count();
  lastEnd = now;
  dropFirst(State::Ended);
}

void StepQueue::work() {
  std::unique_lock lock(mutex);
  while (true) {
    changed.wait(lock, [&] {
      return (!calls.empty() && !isRunning) || (calls.empty() && isEnding);
    });
    if (calls.empty())
      return;
    runFirst(lock, true);
  }
}
