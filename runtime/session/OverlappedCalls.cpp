//===- OverlappedCalls.cpp - Calls without a barrier ----------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "session/OverlappedCalls.h"
#include "session/SessionImplementation.h"

#include <algorithm>

using namespace baechi::runtime;

bool OverlappedCalls::copyIn(SessionState &state, size_t device,
                             const CallSource::Places &places) const {
  const Program &program = state.program;
  for (size_t i = 0; i < program.arguments.size(); ++i)
    if (places.arguments[i] &&
        !writeOwnParts(state, device, program.arguments[i],
                       static_cast<const char *>(places.arguments[i])))
      return false;
  return true;
}

bool OverlappedCalls::copyOut(SessionState &state, size_t device,
                              const CallSource::Places &places) const {
  const Program &program = state.program;
  for (size_t k = 0; k < program.results.size(); ++k)
    if (places.results[k] &&
        !readOwnParts(state, device, program.results[k],
                      static_cast<char *>(places.results[k])))
      return false;
  return true;
}

/// Whether a call sets arguments that other devices keep, too: the last one's
/// values must not arrive after that.
bool OverlappedCalls::setsCopies(const SessionState &state,
                                 const CallSource::Places &places) const {
  const std::vector<ArgumentInfo> &arguments = state.program.arguments;
  for (size_t i = 0; i < arguments.size(); ++i)
    if (places.arguments[i] && arguments[i].hasCopies())
      return true;
  return false;
}

/// A device has ended a call; the last one tells.
void OverlappedCalls::end(int64_t call) {
  {
    std::lock_guard<std::mutex> guard(mutex);
    if (++ends[call] < devices)
      return;
    ends.erase(call);
  }
  // Each device ends its calls in their order, so these end in theirs.
  source.ended(call);
}

void OverlappedCalls::run(SessionState &state, size_t device) {
  Exchange &exchange = state.exchange;
  baechi_context &context = exchange.context(device);
  for (int64_t call = first;; ++call) {
    CallSource::Places places;
    CallSource::Next next;
    while ((next = source.next(call, places)) == CallSource::Next::Later)
      if (exchange.aborted())
        return;
    if (next == CallSource::Next::End)
      return (void)exchange.awaitCarriedByLast(context);
    ++parts;
    if (setsCopies(state, places) && exchange.awaitCarriedByLast(context))
      return;
    if (!copyIn(state, device, places))
      return (void)exchange.fail(context, {"an argument cannot be copied"});
    // Which call is the last is not known before the next one comes.
    if (!runStep(state, device) ||
        exchange.leaveStep(context, /*isLast=*/false))
      return;
    if (!copyOut(state, device, places))
      return (void)exchange.fail(context, {"a result cannot be copied"});
    --parts;
    end(call);
  }
}

std::string Session::whySeparate() const {
  return implementation->state->relay ? "of several processes"
                                      : implementation->whySeparate();
}

Error Session::overlapCalls(int64_t first, CallSource &source,
                            int64_t *failed) {
  if (first < 0)
    return Error("the number of the first call is negative");
  if (std::string why = whySeparate(); !why.empty())
    return Error("calls " + why + " do not overlap: run them one by one");
  return implementation->overlapCalls(first, source, failed);
}

Error Session::Implementation::overlapCalls(int64_t first, CallSource &source,
                                            int64_t *failed) {
  if (failed)
    *failed = -1;
  hasResults = false;
  if (std::string why = whyUnable(); !why.empty())
    return Error(why);
  Exchange &exchange = state->exchange;
  exchange.setOverlapped(true);
  exchange.reset(first); // An error then names the call.
  int32_t devices = 0;
  for (size_t i = 0; i < state->drivers.size(); ++i)
    devices += !exchange.context(i).idle;
  state->calls = std::make_shared<OverlappedCalls>(first, source, devices);
  Error error = runReleased(/*own=*/std::nullopt);
  for (size_t i = 0; i < state->drivers.size() && error && failed && usable;
       ++i)
    if (const Failure &failure = exchange.context(i).failure; *failure.reason)
      *failed = std::max(*failed, failure.step);
  if (error && state->calls->hasEndedAll())
    lost = error.message();
  // A device that was left behind in a kernel may still look at them.
  if (usable) {
    state->calls.reset();
    exchange.setOverlapped(false);
  }
  return error;
}
