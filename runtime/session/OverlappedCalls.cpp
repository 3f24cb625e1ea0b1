//===- OverlappedCalls.cpp - Calls without a barrier ----------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "session/OverlappedCalls.h"
#include "ranks/RankCalls.h"
#include "session/SessionImplementation.h"

#include <algorithm>

using namespace baechi::runtime;

const char *OverlappedCalls::copyIn(SessionState &state, size_t device,
                                    const CallSource::Places &places) const {
  const Program &program = state.program;
  for (size_t i = 0; i < program.arguments.size(); ++i) {
    const ArgumentInfo &argument = program.arguments[i];
    bool isMine = argument.lendable && size_t(argument.device) == device;
    // No other device asks where it lies.
    if (isMine)
      state.exchange.lendArgument(i, nullptr);
    if (!places.arguments[i]) {
      if (isMine && state.missing[i])
        return "an argument has no value: a call before read it where its "
               "caller had it; give it with this call";
      continue;
    }
    if (isMine && places.lent && places.lent[i] &&
        isReadThere(state, argument, places.arguments[i])) {
      state.exchange.lendArgument(i, places.arguments[i]);
      state.missing[i] = true;
      continue;
    }
    if (!writeOwnParts(state, device, argument,
                       static_cast<const char *>(places.arguments[i])))
      return "an argument cannot be copied";
    if (isMine)
      state.missing[i] = false;
  }
  return nullptr;
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

void OverlappedCalls::end(int64_t call) {
  {
    std::lock_guard<std::mutex> guard(mutex);
    if (++ends[call] < parties)
      return;
    ends.erase(call);
  }
  // Each ends its calls in their order, so these end in theirs.
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
    if (const char *reason = copyIn(state, device, places))
      return (void)exchange.fail(context, {reason});
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
  return implementation->whySeparate();
}

Error Session::overlapCalls(int64_t first, CallSource &source,
                            int64_t *failed) {
  if (first < 0)
    return Error("the number of the first call is negative");
  if (std::string why = whySeparate(); !why.empty())
    return Error("calls " + why + " do not overlap: run them one by one");
  return implementation->overlapCalls(first, source, failed);
}

int32_t Session::Implementation::workingHere() const {
  int32_t working = 0;
  for (size_t i = 0; i < state->drivers.size(); ++i)
    working += !state->exchange.context(i).idle && !state->isElsewhere(i);
  return working;
}

Error Session::Implementation::overlapCalls(int64_t first, CallSource &source,
                                            int64_t *failed) {
  if (failed)
    *failed = -1;
  hasResults = false;
  if (std::string why = whyUnable(); !why.empty())
    return Error(why);
  int32_t others = options.ranks ? options.ranks->size() - 1 : 0;
  auto made =
      std::make_shared<OverlappedCalls>(first, source, workingHere() + others);
  if (!state->relay)
    return runCalls(std::move(made), first, failed);
  led = std::make_shared<LedCalls>(
      state->program, *state->relay, options.ranks->size(), state->exchange,
      first, source, [made](int64_t call) { made->end(call); });
  for (int32_t rank = 1; rank <= others; ++rank)
    if (Error error = options.ranks->send(
            rank, Command(Command::Calls, 0, first).bytes()))
      return unreached(error);
  state->relay->reset(first, led);
  Error error = runCalls(std::move(made), first, failed);
  led.reset();
  return error;
}

/// Another rank than 0.
Error Session::Implementation::followCalls(int64_t first) {
  hasResults = false;
  if (std::string why = whyUnable(); !why.empty())
    return Error(why);
  int32_t working = workingHere();
  auto followed = std::make_shared<FollowedCalls>(state->program, first,
                                                  /*isIdle=*/working == 0);
  state->relay->reset(first, followed);
  return runCalls(std::make_shared<OverlappedCalls>(first, *followed, working),
                  first, /*failed=*/nullptr);
}

Error Session::Implementation::runCalls(std::shared_ptr<OverlappedCalls> given,
                                        int64_t first, int64_t *failed) {
  Exchange &exchange = state->exchange;
  exchange.setOverlapped(true);
  exchange.reset(first); // An error then names the call.
  state->calls = std::move(given);
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
    exchange.takeArgumentsBack();
  }
  return error;
}
