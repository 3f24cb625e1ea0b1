//===- FakeEngine.cpp - Streams that run in any order that is allowed -*- C++
//-*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FakeEngine.h"

#include <algorithm>
#include <cstdlib>

#include <sys/mman.h>

using namespace fakecuda;

thread_local FakeContext *Engine::current = nullptr;
thread_local FakeStream *Engine::capturing = nullptr;

Engine &Engine::get() {
  // Never destroyed: its thread may outlive the program's main function.
  static Engine *engine = new Engine();
  return *engine;
}

Engine::Engine() : thread([this] { loop(); }) {
  thread.detach();
  // Programs that know nothing of the fake have a machine, too.
  reset(FakeOptions());
}

void Engine::reset(const FakeOptions &given) {
  std::lock_guard<std::mutex> guard(mutex);
  options = given;
  random.seed(given.seed);
  checker = Checker();
  calls = loads = launches = graphLaunches = longestChain = 0;
  for (const auto &context : contexts) {
    context->peers.clear();
    context->broken = 0;
    context->legacy = nullptr; // deleted with the others
  }
  for (FakeStream *stream : streams)
    delete stream;
  for (FakeEvent *event : events)
    delete event;
  for (FakeModule *module : modules)
    delete module;
  for (FakeGraph *graph : graphs)
    delete graph;
  for (FakeExecutable *executable : executables)
    delete executable;
  streams.clear();
  events.clear();
  modules.clear();
  graphs.clear();
  executables.clear();
  dropCommunicators(*this);
  retired.clear();
  functions.clear();
  registered.clear();
  for (auto [begin, bytes] : mappings)
    munmap(begin, bytes);
  mappings.clear();
  allocations.clear();
  usedBytes = 0;
  hanging = false;
}

void *Engine::map(size_t bytes) {
  void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    std::abort();
  mappings.emplace_back(memory, bytes);
  return memory;
}

void Engine::unmap(uintptr_t begin, size_t bytes) {
  mprotect(reinterpret_cast<void *>(begin), bytes, PROT_NONE);
}

int Engine::deviceOf(uintptr_t address) const {
  auto it = allocations.upper_bound(address);
  if (it == allocations.begin())
    return host;
  --it;
  return address < it->first + it->second.bytes ? it->second.device : host;
}

bool Engine::reaches(const FakeContext &context, uintptr_t address,
                     const std::string &who) {
  int device = deviceOf(address);
  if (device == host || device == context.device || context.peers.count(device))
    return true;
  checker.blame(who + " of GPU " + std::to_string(context.device) +
                " uses memory of GPU " + std::to_string(device) +
                " without access to it");
  return false;
}

void Engine::enqueue(FakeStream &stream, Work work) {
  stream.work.push_back(std::move(work));
  wake.notify_one();
}

void Engine::release() {
  std::lock_guard<std::mutex> guard(mutex);
  hanging = false;
  options.hangLaunch = 0;
  wake.notify_one();
}

/// A stream whose next work may run: any of them.
FakeStream *Engine::pick() {
  if (hanging)
    return nullptr;
  std::vector<FakeStream *> able;
  auto look = [&](FakeStream *stream) {
    if (stream->work.empty())
      return;
    const Work &next = stream->work.front();
    if (!next.waitsFor || next.waitsFor->reached >= next.record)
      able.push_back(stream);
  };
  for (FakeStream *stream : streams) {
    look(stream);
    for (const auto &lane : stream->lanes)
      look(lane.get());
  }
  if (able.empty())
    return nullptr;
  // Sets of pointers have an order of their own; timelines do not change.
  std::sort(able.begin(), able.end(), [](FakeStream *a, FakeStream *b) {
    return a->timeline < b->timeline;
  });
  return able[random() % able.size()];
}

void Engine::fallBehind(std::unique_lock<std::mutex> &lock) {
  auto delay = std::chrono::microseconds(
      options.longestDelay ? 30 + random() % uint64_t(options.longestDelay)
                           : 30);
  lock.unlock();
  std::this_thread::sleep_for(delay);
  lock.lock();
}

void Engine::loop() {
  std::unique_lock<std::mutex> lock(mutex);
  uint64_t failedAttempts = 0;
  while (true) {
    FakeStream *stream = pick();
    if (!stream) {
      wake.wait(lock);
      continue;
    }
    // Now and then the device falls behind the host.
    if (random() % 16 == 0) {
      fallBehind(lock);
      continue;
    }
    if (auto &attempt = stream->work.front().attempt) {
      if (attempt())
        stream->work.pop_front();
      else if (++failedAttempts % 64 == 0) // Nothing else may be able to run.
        fallBehind(lock);
      continue;
    }
    Work work = std::move(stream->work.front());
    stream->work.pop_front();
    if (work.run)
      work.run();
  }
}
