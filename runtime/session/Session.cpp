//===- Session.cpp - Steps of a program that is ready ---------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Runtime/Denormals.h"
#include "core/Attention.h"
#include "ranks/RankCalls.h"
#include "session/SessionImplementation.h"

#include <sched.h>

#include <utility>

using namespace baechi::runtime;

Error Session::follow() {
  if (!implementation->following || implementation->options.ranks->leads())
    return Error("only a session of several ranks has a leader to follow");
  // What went wrong in a step is rank 0's to tell.
  return followLeader(
      *implementation->options.ranks, implementation->state->drivers,
      [&] { return implementation->step(); },
      [&](const Command &command) {
        return implementation->followSteps(command);
      });
}

Session::Session(std::unique_ptr<Implementation> implementation)
    : implementation(std::move(implementation)) {}
Session::~Session() = default;

const Program &Session::program() const {
  return implementation->state->program;
}

void Session::setHostCalls(HostCalls calls) {
  implementation->state->exchange.setHostCalls(calls);
}
Error Session::step() {
  if (Error error = implementation->checkArguments())
    return error;
  return implementation->step();
}
int64_t Session::stagingBytes() const {
  int64_t bytes = 0;
  for (const Channel &channel : implementation->state->exchange.channels())
    bytes += channel.mover ? channel.mover->stagingBytes() : 0;
  return bytes;
}
int64_t Session::besideArena(size_t device) const {
  return implementation->state->drivers[device]->besideArena();
}
bool Session::usable() const { return implementation->usable; }
const Timeline &Session::timeline() const { return implementation->timeline; }
void Session::recordTimes(bool wanted) {
  implementation->state->exchange.recordTimes(wanted);
}
void Session::repeatOperators() {
  const auto &drivers = implementation->state->drivers;
  if (drivers.size() == 1)
    drivers.front()->repeatOperators();
}

Session::Implementation::~Implementation() {
  // Where the ranks still hear each other, the others end their part too.
  if (following && options.ranks->leads() && !options.ranks->broken() &&
      !options.ranks->dismissed())
    (void)bool(commandAll(*options.ranks, Command::Close));
  state->stop();
  bool relayEnded = state->relay != nullptr;
  for (size_t i = 0; i < threads.size(); ++i)
    if (!isForked() && (usable || state->exchange.context(i).finished.load(
                                      std::memory_order_acquire))) {
      threads[i].join();
    } else {
      threads[i].detach();
      // It may still look at its messages, and releases them when it is gone.
      relayEnded = relayEnded && int32_t(i) != state->relay->runBy();
    }
  if (relayEnded)
    state->relay->release();
}

namespace {
/// Gives up a step in which nothing happens.
class Watchdog final : public Attendant {
public:
  Watchdog(Exchange &exchange, double seconds)
      : exchange(exchange), seconds(seconds), progress(exchange.progress()) {}

  void look() override {
    idle.look();
    if (exchange.progress() != progress) {
      progress = exchange.progress();
      idle.restart();
    }
    std::string reason;
    if (exchange.deadlocked())
      reason = "deadlock: ";
    else if (seconds > 0 && idle.exceeds(seconds))
      reason = "no device made progress within the watchdog's time: ";
    else
      return;
    exchange.abort(reason + exchange.describeDevices());
  }

private:
  Exchange &exchange;
  const double seconds;
  uint64_t progress;
  Attention idle;
};
} // namespace

bool Session::Implementation::isForked() const {
  return processNumber() != process;
}

/// The device whose part of a step the calling thread runs itself: to wake
/// another thread and to be woken by it takes longer than a small step. Nobody
/// looks after that part while it computes, so it must surely end, and be
/// predicted to do so before the coordinator would have looked at all.
std::optional<size_t> Session::Implementation::ownDevice() const {
  const Program &program = state->program;
  bool isShort = program.predicted.stepNs > 0 &&
                 std::chrono::nanoseconds(program.predicted.stepNs) <= tick;
  if (!program.ends || !isShort || state->relay)
    return std::nullopt;
  int processor = options.pinThreads ? sched_getcpu() : -1;
  std::optional<size_t> own;
  for (size_t i = 0; i < state->drivers.size(); ++i) {
    if (state->exchange.context(i).idle || !state->drivers[i]->runsAnywhere())
      continue;
    // Its thread would have to wait for this one's processor.
    if (pinnedTo[i] == processor)
      return i;
    if (!own)
      own = i;
  }
  return own;
}

void Session::Implementation::runHere(size_t device) {
  baechi_context &context = state->exchange.context(device);
  Watchdog watchdog(state->exchange, options.watchdogSeconds);
  WithoutDenormals asDevicesCompute;
  baechi_context *outer = std::exchange(thisDevice, &context);
  context.attendant = &watchdog;
  runPart(*state, device);
  context.attendant = nullptr;
  thisDevice = outer;
}

Error Session::Implementation::superviseStep() {
  Exchange &exchange = state->exchange;
  Watchdog watchdog(exchange, options.watchdogSeconds);
  std::optional<Attention> aborted;
  // All ranks tell the same.
  auto why = [&] {
    return state->relay && !state->relay->verdict().empty()
               ? state->relay->verdict()
               : exchange.describeFailure();
  };
  double grace = options.abortGraceSeconds + (state->relay ? 1 : 0);

  while (!state->waitForAll(led && led->tell() ? decltype(tick)(0) : tick)) {
    if (exchange.aborted()) {
      if (!aborted)
        aborted.emplace();
      aborted->look();
      if (!aborted->exceeds(grace))
        continue;
      usable = false;
      return Error(why() + describeLeft());
    }
    watchdog.look();
  }
  if (exchange.aborted())
    return Error(why());
  if (exchange.isOverlapped())
    return Error(); // Each device has seen to its own messages.
  if (std::string undelivered = exchange.describeUndelivered();
      !undelivered.empty())
    return Error(undelivered);
  return Error();
}

/// What has not stopped, after an error's text.
std::string Session::Implementation::describeLeft() const {
  if (std::string devices = state->exchange.describeDevices(); !devices.empty())
    return "; left behind: " + devices;
  // All devices of this process have ended, but not what talks to the others.
  return state->relay ? "; not all other ranks have answered" : "";
}

Error Session::Implementation::step() {
  hasResults = false;
  if (std::string why = whyUnable(); !why.empty())
    return Error(why);
  if (state->relay) {
    if (options.ranks->leads())
      if (Error error = commandAll(*options.ranks, Command::Step))
        return unreached(error);
    state->relay->reset();
  }
  state->exchange.reset();
  return runReleased(ownDevice());
}

/// Another rank could not be told, or has not answered.
Error Session::Implementation::unreached(const Error &error) {
  usable = hasResults = false;
  if (!options.ranks->broken())
    return Error(error.message());
  return Error(error.message() +
               state->relay->describeHeld(options.ranks->lostRank()));
}

std::string Session::Implementation::whyUnable() const {
  if (!usable)
    return "an earlier step left a device inside a kernel, or a device "
           "failed for good, or the step of several ranks failed, so "
           "this session cannot run another: create a new one";
  if (isForked())
    return "this process was forked after the session was created, whose "
           "threads are its parent's: create one here";
  if (!lost.empty())
    return "values that the last calls sent did not reach all devices, so this "
           "session cannot run another step: create a new one (" +
           lost + ")";
  return "";
}

/// Lets the devices go, but for the one that the calling thread runs, and waits
/// for them.
Error Session::Implementation::runReleased(std::optional<size_t> own) {
  state->release(own);
  if (own)
    runHere(*own);
  Error error = superviseStep();
  if (state->carrier)
    state->carrier->drop();
  for (const auto &driver : state->drivers)
    usable = usable && driver->usable();
  if (error && usable)
    awaitMovers();
  record();
  if (state->relay) {
    if (usable) // else the relay's thread may still be receiving them
      state->relay->addTimes(timeline);
    // Messages of a failed step may still be on their way: they must not meet
    // those of another.
    usable = usable && !error;
  }
  hasResults = !error;
  return error;
}

/// Copies that a failed step had begun must not meet the next one.
void Session::Implementation::awaitMovers() {
  Attention waited;
  for (const Channel &channel : state->exchange.channels())
    while (channel.mover && usable && !channel.mover->isIdle()) {
      std::this_thread::sleep_for(std::chrono::microseconds(100));
      waited.look();
      usable = !waited.exceeds(options.abortGraceSeconds);
    }
}

void Session::Implementation::record() {
  Exchange &exchange = state->exchange;
  timeline.wallNs = exchange.elapsedNs();
  timeline.lanes = exchange.lanes();
  for (size_t i = 0; i < timeline.devices.size(); ++i) {
    DeviceRecord &device = timeline.devices[i];
    device.busyNs = device.bytesSent = device.bytesLent = 0;
    if (usable)
      device.operators.swap(exchange.context(i).operators);
    else // A thread may still be writing there.
      device.operators.assign(device.operators.size(), Interval());
    for (const Interval &interval : device.operators)
      device.busyNs += interval.durationNs();
  }
  for (size_t q = 0; q < timeline.queues.size(); ++q) {
    const Channel &channel = exchange.channels()[q];
    for (size_t seq = 0; seq < channel.slots.size(); ++seq) {
      const Slot &slot = channel.slots[seq];
      // Slots of steps that overlap are new again, unless one failed.
      bool done =
          !exchange.isOverlapped() &&
          (slot.state.load(std::memory_order_acquire) & Slot::Done) != 0;
      timeline.queues[q][seq] = done ? slot.copy : CopyRecord();
      if (done && channel.mover && !channel.mover->copiesAtOnce() &&
          exchange.keepsTimeline())
        static_cast<Interval &>(timeline.queues[q][seq]) =
            channel.mover->timeOf(int32_t(seq));
      if (done)
        timeline.devices[channel.from].bytesSent += slot.bytes;
      if (done && slot.lent)
        timeline.devices[channel.from].bytesLent += slot.bytes;
    }
  }
}
