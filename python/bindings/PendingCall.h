//===- PendingCall.h - A call of a step that may still run -----*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A call that was given to a queue, as Python holds it: with what it reads and
/// writes.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_PYTHON_PENDINGCALL_H
#define BAECHI_PYTHON_PENDINGCALL_H

#include "StepQueue.h"

#include <nanobind/nanobind.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace baechi::python {

/// The views of a call, given back at its end.
class Views {
public:
  explicit Views(size_t most) { views.reserve(most); }
  ~Views() { release(); }
  Views(Views &&other) noexcept { views.swap(other.views); }
  Views &operator=(Views &&) = delete;

  void release() {
    std::vector<Py_buffer> given; // another thread may come in meanwhile
    given.swap(views);
    for (Py_buffer &view : given)
      PyBuffer_Release(&view);
  }

  /// They are never given back: somebody may still read.
  void abandon() { views.clear(); }

  /// Null where \p object gives none of so many bytes in C's order.
  Py_buffer *take(PyObject *object, int flags, Py_ssize_t bytes) {
    Py_buffer view;
    if (PyObject_GetBuffer(object, &view, flags) != 0) {
      PyErr_Clear(); // the longer way says what is wrong, if anything is
      return nullptr;
    }
    views.push_back(view);
    return view.len == bytes ? &views.back() : nullptr;
  }

private:
  std::vector<Py_buffer> views;
};

/// Until \p reached says so, without the interpreter's lock. Raises what a
/// signal's handler raises.
void waitFor(const std::function<bool(StepQueue::Milliseconds)> &reached);

/// A call that was given to a queue, with what it reads and writes.
class PendingCall {
public:
  PendingCall(std::shared_ptr<StepQueue> queue,
              std::shared_ptr<QueuedCall> call, Views views)
      : queue(std::move(queue)), call(std::move(call)),
        views(std::move(views)) {}
  PendingCall(PendingCall &&) = default;
  ~PendingCall() {
    if (!queue)
      return;
    if (!hasEnded()) {
      nanobind::gil_scoped_release release; // its places are about to go
      while (!queue->waitFor(*call, StepQueue::Milliseconds(1000)))
        ;
    }
    if (call->isLeftBehind)
      views.abandon();
  }

  bool hasEnded() const { return queue->stateOf(*call) >= State::Ended; }
  bool hasFailed() const { return queue->stateOf(*call) > State::Ended; }
  bool wasRun() const { return queue->stateOf(*call) != State::NotRun; }

  /// Also gives back what the call has read.
  void wait() {
    if (!hasEnded())
      waitFor([&](auto limit) { return queue->waitFor(*call, limit); });
    if (call->isLeftBehind)
      views.abandon();
    views.release();
  }
  /// Of a call that has ended.
  int64_t wallNs() const { return call->wallNs; }
  std::string error() const { return call->error; }

  bool isOf(const StepQueue &other) const { return queue.get() == &other; }
  const std::shared_ptr<QueuedCall> &queued() const { return call; }

private:
  using State = QueuedCall::State;

  std::shared_ptr<StepQueue> queue;
  std::shared_ptr<QueuedCall> call;
  Views views;
};

/// The classes `StepQueue` and `PendingCall`, for
/// python/baechi/jax/dispatch.py.
void definePendingCall(nanobind::module_ &m);

} // namespace baechi::python

#endif // BAECHI_PYTHON_PENDINGCALL_H
