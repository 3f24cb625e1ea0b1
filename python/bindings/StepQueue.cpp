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

/// Calls that were given and have not ended: one that runs, one that waits.
static constexpr size_t mostCalls = 2;

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
  while (!calls.empty()) {
    mutex.unlock();
    waitForAll(std::chrono::hours(1));
    mutex.lock();
  }
}

bool StepQueue::waitForRoom(Milliseconds limit) {
  return waitUntil([&] { return calls.size() < mostCalls; }, limit, false);
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
  return waitUntil([&] { return calls.empty(); }, limit, true);
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
      runFirst(lock);
    else if (changed.wait_until(lock, end) == std::cv_status::timeout)
      return reached();
  }
  return true;
}

void StepQueue::runFirst(std::unique_lock<std::mutex> &lock) {
  std::shared_ptr<QueuedCall> call = calls.front();
  using State = QueuedCall::State;
  auto failed = std::find_if(
      call->after.begin(), call->after.end(),
      [](const auto &earlier) { return earlier->state > State::Ended; });
  if (failed != call->after.end()) {
    call->state = State::NotRun;
    call->error = (*failed)->error;
  } else {
    isRunning = true;
    call->state = State::Running;
    lock.unlock();
    bool isWrong = opened.call(opened.step, call->arguments.data(),
                               call->results.data()) != 0;
    int64_t ns = opened.wallNs(opened.step);
    std::string text = isWrong ? opened.error(opened.step) : "";
    lock.lock();
    isRunning = false;
    call->wallNs = ns;
    call->error = std::move(text);
    call->state = isWrong ? State::Failed : State::Ended;
  }
  call->after.clear();
  call->copies.clear();
  calls.pop_front();
  changed.notify_all();
}

void StepQueue::work() {
  std::unique_lock lock(mutex);
  while (true) {
    changed.wait(lock, [&] {
      return (!calls.empty() && !isRunning) || (calls.empty() && isEnding);
    });
    if (calls.empty())
      return;
    runFirst(lock);
  }
}
