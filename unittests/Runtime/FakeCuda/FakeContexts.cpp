//===- FakeContexts.cpp - Contexts that die with their last use -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A context lives as long as it is retained, through resets of the fake too,
/// as the driver's do. When it goes, all that was made in it goes, and every
/// call of a thread that has it selected fails. Libraries keep code of their
/// own in it, so that giving up one that works is misuse.
///
//===----------------------------------------------------------------------===//

#include "FakeCalls.h"

#include <algorithm>

using namespace fakecuda;

FakeContext *Engine::contextOf(int device) {
  while (contexts.size() <= size_t(device))
    contexts.push_back(
        std::make_unique<FakeContext>(FakeContext{int(contexts.size())}));
  return contexts[size_t(device)].get();
}

/// Takes out of a set what belongs to `context`, and deletes it.
template <typename T>
static void deleteOf(std::set<T *> &all, const FakeContext *context) {
  std::erase_if(all, [&](T *one) {
    if (one->context != context)
      return false;
    delete one;
    return true;
  });
}

void Engine::endContext(FakeContext &context) {
  deleteOf(streams, &context);
  context.legacy = nullptr;
  deleteOf(modules, &context);
  deleteOf(graphs, &context);
  deleteOf(executables, &context);
  std::erase_if(events, [&](FakeEvent *event) {
    if (event->context != &context)
      return false;
    retired.emplace_back(event); // Others' streams may wait for it.
    return true;
  });
  std::erase_if(allocations, [&](const auto &allocation) {
    if (allocation.second.context != &context)
      return false;
    checker.drop(allocation.first);
    if (allocation.second.device != host)
      usedBytes -= allocation.second.bytes;
    return true;
  });
  std::erase_if(registered,
                [&](const auto &range) { return range.second == &context; });
  context.broken = contextDestroyed;
  std::unique_ptr<FakeContext> &place = contexts[size_t(context.device)];
  deadContexts.push_back(std::move(place));
  place = std::make_unique<FakeContext>(FakeContext{context.device});
}

FakeStream &Engine::legacyOf(FakeContext &context) {
  if (!context.legacy) {
    context.legacy = new FakeStream{&context, checker.addTimeline(), {}};
    streams.insert(context.legacy);
  }
  return *context.legacy;
}

extern "C" {

int cuDevicePrimaryCtxRetain(FakeContext **context, int device) {
  return call("cuDevicePrimaryCtxRetain", false, [&](Engine &engine) {
    *context = engine.contextOf(device);
    ++(*context)->retained;
    return success;
  });
}
int cuDevicePrimaryCtxRelease_v2(int device) {
  return call("cuDevicePrimaryCtxRelease", false, [&](Engine &engine) {
    FakeContext &context = *engine.contextOf(device);
    if (context.retained <= 0)
      return misuse(engine, "a context is released too often", invalidContext);
    if (--context.retained > 0)
      return success;
    if (!context.broken)
      engine.checker.blame("a context that works is given up, and with it what "
                           "libraries hold there");
    engine.endContext(context);
    return success;
  });
}
int cuCtxGetCurrent(FakeContext **context) {
  return call("cuCtxGetCurrent", false, [&](Engine &) {
    *context = Engine::current;
    return success;
  });
}
int cuCtxSetCurrent(FakeContext *context) {
  return call("cuCtxSetCurrent", false, [&](Engine &) {
    if (context && context->broken == contextDestroyed)
      return contextDestroyed;
    Engine::current = context;
    return success;
  });
}
int cuCtxSynchronize() {
  Engine &engine = Engine::get();
  std::unique_lock<std::mutex> lock(engine.mutex);
  FakeContext *context = Engine::current;
  if (int code = enter(engine, context, "cuCtxSynchronize"))
    return code;
  auto isBusy = [&] {
    return std::any_of(
        engine.streams.begin(), engine.streams.end(), [&](FakeStream *stream) {
          return stream->context == context && !stream->work.empty();
        });
  };
  while (isBusy()) {
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::microseconds(50));
    lock.lock();
  }
  for (FakeStream *stream : engine.streams)
    if (stream->context == context)
      engine.checker.order(Checker::host,
                           engine.checker.clocksOf(stream->timeline));
  return context->broken;
}
}
