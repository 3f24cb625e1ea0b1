//===- ExchangeText.cpp - Messages and devices in words -------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "core/Exchange.h"

using namespace baechi::runtime;

std::string Exchange::describeMessage(int32_t queue, int32_t seq) const {
  std::string text = "message " + std::to_string(seq);
  if (queue < 0 || size_t(queue) >= queues.size())
    return text + " of queue " + std::to_string(queue);
  const Channel &channel = queues[queue];
  if (seq >= 0 && size_t(seq) < channel.messages.size() &&
      !channel.messages[seq].name.empty())
    text += " '" + channel.messages[seq].name + "'";
  return text + " of queue " + std::to_string(queue) + " (" +
         program.devices[channel.from].name + " to " +
         program.devices[channel.to].name + ")";
}

std::string Exchange::describePlace(int32_t device, int32_t place) const {
  if (place == baechi_context::nowhere)
    return "before its first operator";
  int32_t op = place / 2;
  return std::string(place % 2 ? "after" : "in") + " operator " +
         std::to_string(op) + " '" +
         program.devices[device].operators[op].name + "'";
}

std::string Exchange::describeDevices() const {
  std::string text;
  for (const auto &context : contexts) {
    if (elsewhere[context->device] ||
        context->finished.load(std::memory_order_acquire))
      continue;
    text += (text.empty() ? "" : "; ") + program.devices[context->device].name;
    std::string place = describePlace(
        context->device, context->place.load(std::memory_order_relaxed));
    uint64_t wait = context->waitingFor.load(std::memory_order_acquire);
    if (wait == baechi_context::nothing) {
      text += " is " + place;
      continue;
    }
    int32_t queue = queueOf(wait), seq = seqOf(wait);
    bool sends = queues[queue].from == context->device;
    bool lent = queues[queue].messages[seq].lent;
    text += std::string(" waits to ") +
            (sends  ? lent ? "get back " : "send "
             : lent ? "borrow "
                    : "receive ") +
            describeMessage(queue, seq) + " " + place;
  }
  return text;
}

std::string Exchange::describeFailure() const {
  int32_t device = failed.load(std::memory_order_acquire);
  if (device == coordinator)
    return abortReason;
  const Failure &failure = contexts[device]->failure;
  std::string text = "device " + program.devices[device].name + ", " +
                     describePlace(device, failure.place);
  if (overlapped)
    text += " of step " + std::to_string(failure.step + 1);
  if (failure.culprit >= 0)
    text = "device " + program.devices[failure.culprit].name + " (seen by " +
           text + ")";
  text.append(": ").append(failure.reason);
  if (failure.detail)
    text.append(": ").append(failure.detail);
  if (failure.queue != -1 || failure.seq != -1)
    text += ": " + describeMessage(failure.queue, failure.seq);
  if (failure.code != 0)
    text.append(1, ' ').append(std::to_string(failure.code));
  return text;
}

std::string Exchange::describeUndelivered() const {
  for (size_t queue = 0; queue < queues.size(); ++queue)
    for (size_t seq = 0; seq < queues[queue].slots.size(); ++seq) {
      uint32_t state =
          queues[queue].slots[seq].state.load(std::memory_order_relaxed);
      if (state & Slot::Done)
        continue;
      if (queues[queue].slots[seq].lent && (state & Slot::Claimed))
        return describeMessage(int32_t(queue), int32_t(seq)) +
               " was borrowed but not given back";
      return describeMessage(int32_t(queue), int32_t(seq)) +
             ((state & Slot::Offered) == Slot::Offered
                  ? " was sent and received but not awaited"
              : state & Slot::Sent     ? " was sent but not received"
              : state & Slot::Received ? " was awaited but not sent"
                                       : " was neither sent nor received");
    }
  return "";
}
