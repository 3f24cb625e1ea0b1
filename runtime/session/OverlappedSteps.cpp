//===- OverlappedSteps.cpp - Steps without a barrier ----------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ranks/RankSteps.h"
#include "session/SessionImplementation.h"

#include <algorithm>

using namespace baechi::runtime;

Error Session::steps(int64_t count, std::span<const Feed> feeds,
                     std::span<const Fetch> fetches) {
  const Program &program = implementation->state->program;
  if (count < 1)
    return Error("the number of steps must be positive, not " +
                 std::to_string(count));
  for (const Feed &feed : feeds)
    if (feed.argument >= program.arguments.size())
      return Error("argument " + std::to_string(feed.argument) +
                   " does not exist: the program has " +
                   std::to_string(program.arguments.size()));
  for (const Feed &feed : feeds)
    if (program.arguments[feed.argument].hasCopies())
      return Error("argument " + std::to_string(feed.argument) + " '" +
                   program.arguments[feed.argument].name +
                   "' has copies that each step brings up to date: set it "
                   "before the steps, it cannot be fed");
  for (const Fetch &fetch : fetches)
    if (fetch.result >= program.results.size())
      return Error("result " + std::to_string(fetch.result) +
                   " does not exist: the program has " +
                   std::to_string(program.results.size()));
  if (Error error = implementation->checkArguments(feeds))
    return error;
  Error error = implementation->overlap(count, feeds, fetches);
  if (!error)
    for (const Feed &feed : feeds)
      implementation->state->missing[feed.argument] = false;
  return error;
}

/// Why steps cannot overlap; empty when they can. What moves messages of GPUs
/// and of pools knows of one step at a time, and a host program's functions
/// would be called in another order.
std::string Session::Implementation::whySeparate() const {
  const Exchange &exchange = state->exchange;
  if (std::string why = state->relay ? state->relay->whySeparate() : "";
      !why.empty())
    return why;
  if (exchange.callsHost())
    return "with functions of the host program";
  for (const DeviceInfo &device : state->program.devices)
    if (device.kind != "host")
      return "with a device of kind '" + device.kind + "' ('" + device.name +
             "')";
  return "";
}

Error Session::Implementation::overlap(int64_t count,
                                       std::span<const Feed> feeds,
                                       std::span<const Fetch> fetches) {
  if (std::string why = whySeparate(); !why.empty())
    return Error("steps " + why + " do not overlap: run them one by one");
  hasResults = false;
  if (std::string why = whyUnable(); !why.empty())
    return Error(why);
  if (state->relay) {
    if (options.ranks->leads())
      if (Error error = sendSteps(*options.ranks, state->program, *state->relay,
                                  count, feeds, fetches))
        return unreached(error);
    state->relay->reset(count, /*overlap=*/true);
  }
  state->exchange.setOverlapped(true);
  state->exchange.reset();
  state->overlap = {count, feeds, fetches};
  Error error = runReleased(/*own=*/std::nullopt);
  // Where a device was left behind in a kernel it may still look at them.
  if (usable) {
    state->overlap = {};
    state->exchange.setOverlapped(false);
  }
  // All was delivered, and what was lent was given back.
  if (!error)
    for (size_t q = 0; q < state->exchange.channels().size(); ++q) {
      const Channel &channel = state->exchange.channels()[q];
      for (const Slot &slot : channel.slots) {
        DeviceRecord &sender = timeline.devices[size_t(channel.from)];
        sender.bytesSent += slot.bytes;
        sender.bytesLent += slot.lent ? slot.bytes : 0;
      }
    }
  if (!error && state->relay && options.ranks->leads())
    if (Error failed = receiveFetched(*options.ranks, state->program,
                                      *state->relay, count, fetches))
      return unreached(failed);
  return error;
}

/// Another rank than 0.
Error Session::Implementation::followSteps(const Command &command) {
  if (command.kind == Command::Calls)
    return followCalls(command.offset);
  Expected<ToldSteps> told =
      receiveSteps(*options.ranks, state->program, command);
  if (!told)
    return told.takeError();
  Error error = overlap(told->count, told->feeds, told->fetches);
  return error ? error : sendFetched(*options.ranks, *told);
}
