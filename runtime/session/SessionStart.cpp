//===- SessionStart.cpp - Devices' threads, queues and ranks are started --===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Runtime/Machine.h"
#include "Baechi/Runtime/Rules.h"
#include "core/Attention.h"
#include "session/Admission.h"
#include "session/SessionImplementation.h"

#include <algorithm>
#include <exception>
#include <optional>
#include <system_error>

using namespace baechi::runtime;

/// What a slow machine fills with zeros in a second.
static constexpr double startBytesPerSecond = 256 << 20;

Error Session::Implementation::start(const std::vector<int> &processors) {
  size_t count = state->drivers.size();
  state->startErrors.resize(count);
  pinnedTo.resize(count, -1);
  state->running.store(int32_t(count), std::memory_order_relaxed);
  Error refused;
  try {
    for (size_t i = 0; i < count; ++i) {
      std::optional<int> processor;
      if (const DriverKind *kind = findDriver(state->program.devices[i].kind);
          options.pinThreads && !state->isElsewhere(i) && computes(*kind))
        processor = pinnedTo[i] = processors[i % processors.size()];
      if (state->exchange.injected(Call::StartThread))
        throw std::system_error(
            std::make_error_code(std::errc::resource_unavailable_try_again),
            "injected fault");
      threads.emplace_back(runDevice, state, i, processor);
    }
  } catch (const std::exception &error) {
    refused = Error("cannot start a thread for device " +
                    state->program.devices[threads.size()].name + ": " +
                    error.what());
    state->running.fetch_sub(int32_t(count - threads.size()),
                             std::memory_order_relaxed);
  }
  Error late = waitForStart();
  if (refused)
    return refused;
  return late ? std::move(late) : connectDevices();
}

/// Gives the queues that memcpy cannot serve their movers.
Error Session::Implementation::connectDevices() {
  const std::vector<QueueInfo> &queues = state->program.queues;
  for (size_t i = 0; i < queues.size(); ++i) {
    if (state->exchange.channels()[i].reach != Reach::Here)
      continue;
    auto memoryOf = [&](int32_t device) {
      return findDriver(state->program.devices[device].kind)->memory;
    };
    Memory from = memoryOf(queues[i].from), to = memoryOf(queues[i].to);
    if (from == Memory::None || to == Memory::None ||
        (from == Memory::Host && to == Memory::Host))
      continue;
    Driver *sender = state->drivers[queues[i].from].get();
    Driver *receiver = state->drivers[queues[i].to].get();
    const std::vector<MessageInfo> &messages = queues[i].messages;
    // Copies into a device are ordered among its other work.
    Expected<std::unique_ptr<Mover>> mover =
        to == Memory::Own ? receiver->connect(*sender, true, messages)
                          : sender->connect(*receiver, false, messages);
    if (!mover)
      return Error("queue " + std::to_string(i) + " (" +
                   state->program.devices[queues[i].from].name + " to " +
                   state->program.devices[queues[i].to].name +
                   "): " + mover.error().message());
    state->exchange.setMover(i, std::move(*mover));
  }
  return Error();
}

/// By all ranks: gives the queues between them their ports, where one is
/// needed. All know alike whether one is.
Error Session::Implementation::connectRanks() {
  const Program &program = state->program;
  const std::vector<int32_t> &owners = state->relay->deviceOwners();
  std::vector<const DriverKind *> kinds;
  for (const QueueInfo &queue : program.queues)
    for (int32_t end : {queue.from, queue.to}) {
      const DriverKind *kind = findDriver(program.devices[end].kind);
      if (owners[queue.from] != owners[queue.to] && kind &&
          kind->connectRanks &&
          std::find(kinds.begin(), kinds.end(), kind) == kinds.end())
        kinds.push_back(kind);
    }
  for (const DriverKind *kind : kinds) {
    Expected<RankConnections> made =
        kind->connectRanks({*options.ranks, program, owners, state->shares,
                            state->drivers, inventories});
    if (!made)
      return made.takeError();
    for (RankConnections::Connection &connection : made->ports) {
      state->relay->setPort(connection.queue, *connection.port);
      state->exchange.setMover(connection.queue, std::move(connection.port));
    }
    state->relay->setFabric(std::move(made->fabric));
  }
  return Error();
}

Error Session::Implementation::waitForStart() {
  int64_t largest = 0;
  for (const DeviceInfo &device : state->program.devices)
    largest = std::max(largest, device.arenaBytes);
  double seconds =
      options.watchdogSeconds + double(largest) / startBytesPerSecond;
  Attention waited;
  while (!state->waitForAll(tick)) {
    waited.look();
    if (options.watchdogSeconds <= 0 || !waited.exceeds(seconds))
      continue;
    usable = false;
    std::string late;
    for (size_t i = 0; i < threads.size(); ++i)
      if (!state->exchange.context(i).finished.load(std::memory_order_acquire))
        late += (late.empty() ? "" : ", ") + state->program.devices[i].name;
    return Error("not all devices started within the watchdog's time; left "
                 "behind: " +
                 late);
  }
  for (Error &error : state->startErrors)
    if (error)
      return std::move(error);
  return Error();
}

/// Threads that may all spin without taking each other's core.
static int32_t spinsFor(size_t threads, const HostInfo &host) {
  return threads <= size_t(host.cores) ? spinsBeforeSleep : 0;
}

Expected<std::unique_ptr<Session::Implementation>>
Session::Implementation::create(Program program, const SymbolResolver &resolve,
                                SessionOptions options,
                                std::vector<std::string> inventories) try {
  if (Error error = program.check())
    return error;
  std::vector<const DriverKind *> kinds;
  std::vector<bool> holdsData;
  Ranks *ranks = options.ranks.get();
  size_t count = program.devices.size(), here = 0;
  if (ranks && size_t(ranks->size()) > count)
    return Error("the program has " + std::to_string(count) +
                 (count == 1 ? " device" : " devices") + " for " +
                 std::to_string(ranks->size()) +
                 " ranks: start no more ranks than devices");
  for (const DeviceInfo &device : program.devices) {
    bool elsewhere =
        ranks && ranks->ownerOf(kinds.size(), count) != ranks->rank();
    here += !elsewhere;
    kinds.push_back(elsewhere ? &remoteKind : findDriver(device.kind));
    if (!kinds.back())
      return Error("device " + device.name + ": no driver for kind '" +
                   device.kind +
                   "' in this build, which has: " + driverNames());
    holdsData.push_back(kinds.back()->memory == Memory::Host);
  }
  HostInfo host = queryHost();
  if (Error error = checkProcessor(program, kinds, host))
    return error;
  if (Error error =
          checkMemory(program, kinds, options.memoryLimits, host.memoryBytes))
    return error;
  std::vector<Entry> entries(program.devices.size(), nullptr);
  for (size_t i = 0; i < entries.size(); ++i) {
    const DeviceInfo &device = program.devices[i];
    if (!kinds[i]->runsEntry)
      continue;
    entries[i] =
        reinterpret_cast<Entry>(resolve ? resolve(device.entry) : nullptr);
    if (!entries[i])
      return Error("device " + device.name + ": the program has no symbol '" +
                   device.entry + "'");
  }

  // A relay looks at its messages all the time, too.
  size_t threads =
      ranks ? (here + 1) * size_t(ranks->transport().ranksHere()) : here;
  auto state = std::make_shared<SessionState>(
      std::move(program), kinds, holdsData, entries, spinsFor(threads, host),
      options, inventories);
  if (state->relay)
    if (Error error = state->relay->check())
      return error;
  auto implementation =
      std::make_unique<Implementation>(std::move(state), std::move(options));
  implementation->inventories = std::move(inventories);
  if (Error error = implementation->start(host.processors))
    return error;
  return implementation;
} catch (const std::exception &error) {
  return Error(std::string("the session cannot be created: ") + error.what());
}

/// What the devices of a program can lie on here, for the other ranks.
static std::string describeInventory(const Program &program) {
  std::string text;
  std::vector<const DriverKind *> told;
  for (const DeviceInfo &device : program.devices) {
    const DriverKind *kind = findDriver(device.kind);
    if (!kind || !kind->inventory ||
        std::find(told.begin(), told.end(), kind) != told.end())
      continue;
    told.push_back(kind);
    text += kind->inventory();
  }
  return text;
}

Expected<std::unique_ptr<Session>>
Session::create(Program program, const SymbolResolver &resolve,
                SessionOptions options) {
  std::shared_ptr<Ranks> ranks = options.ranks;
  std::string same = ranks ? describeProgram(program) : "";
  std::vector<std::string> inventories;
  if (ranks) {
    if (Error error = ranks->renew())
      return error;
    Expected<std::vector<std::string>> told =
        ranks->gather(describeInventory(program));
    if (!told)
      return told.takeError();
    inventories = std::move(*told);
  }
  auto made = Implementation::create(
      std::move(program), resolve, std::move(options), std::move(inventories));
  // What fails on one rank fails on all.
  if (ranks)
    if (Error refused = ranks->agree(made ? Error() : made.error(), same))
      return refused;
  if (!made)
    return made.takeError();
  if (ranks)
    if (Error refused = (*made)->connectRanks())
      return refused;
  (*made)->following = ranks != nullptr;
  return std::unique_ptr<Session>(new Session(std::move(*made)));
}

Error Session::decline(Ranks &ranks, const Error &why) {
  if (Error error = ranks.renew())
    return error;
  Expected<std::vector<std::string>> told = ranks.gather("");
  return told ? ranks.agree(why, "") : told.takeError();
}
