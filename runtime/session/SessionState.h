//===- SessionState.h - What device threads share ---------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_SESSION_SESSIONSTATE_H
#define BAECHI_RUNTIME_SESSION_SESSIONSTATE_H

#include "Baechi/Runtime/Session.h"
#include "core/Carrier.h"
#include "core/Driver.h"
#include "core/Exchange.h"
#include "ranks/RemoteDriver.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <vector>

namespace baechi::runtime {

class OverlappedCalls;

/// Owned by the session and by each device thread: a thread that had to be left
/// behind inside a kernel keeps what it may still touch.
struct SessionState {
  /// `inventories`: of each rank, see DriverKind.
  SessionState(Program program, const std::vector<const DriverKind *> &kinds,
               const std::vector<bool> &holdsData,
               const std::vector<Entry> &entries, int32_t spins,
               const SessionOptions &options,
               const std::vector<std::string> &inventories)
      : program(std::move(program)), faults(options.faults),
        rehearses(options.rehearse),
        exchange(this->program, holdsData, spins, options.timeline,
                 this->faults.get()),
        missing(this->program.arguments.size()),
        releases(this->program.devices.size()) {
    if (exchange.injected(Call::Create))
      throw std::bad_alloc();
    const std::vector<DeviceInfo> &devices = this->program.devices;
    if (options.ranks) {
      relay =
          std::make_unique<RankRelay>(options.ranks, this->program, exchange,
                                      options.abortGraceSeconds, spins > 0);
      std::vector<bool> elsewhere;
      for (size_t i = 0; i < devices.size(); ++i)
        elsewhere.push_back(relay->isElsewhere(int32_t(i)));
      exchange.setRelay(relay.get(), elsewhere, relay->runBy());
    }
    if (Carrier::isNeeded(this->program)) {
      carrier = std::make_unique<Carrier>(this->program, exchange);
      exchange.setCarrier(carrier.get());
    }
    for (size_t i = 0; i < devices.size(); ++i) {
      shares.push_back(shareOf(i, inventories));
      drivers.push_back(
          isElsewhere(i) ? makeRemoteDriver(options.ranks, *relay, int32_t(i))
                         : kinds[i]->make(devices[i], entries[i], shares[i]));
    }
  }

  // Movers use the drivers, and ports what they share.
  ~SessionState() {
    carrier.reset();
    exchange.dropMovers();
    if (relay)
      relay->dropFabric();
  }

  /// Among the devices of its kind, of this process and of those that told the
  /// same as the process that it is of.
  Share shareOf(size_t device,
                const std::vector<std::string> &inventories) const {
    Share share{0, 0, {}};
    for (size_t i = 0; i < program.devices.size(); ++i) {
      if (program.devices[i].kind != program.devices[device].kind)
        continue;
      if (relay) {
        int32_t mine = relay->ownerOf(int32_t(device)),
                its = relay->ownerOf(int32_t(i));
        if (mine != its &&
            (inventories[size_t(its)].empty() ||
             inventories[size_t(mine)] != inventories[size_t(its)]))
          continue;
      }
      share.ordinal += i < device;
      ++share.count;
      share.arenas.push_back(program.devices[i].arenaBytes);
    }
    return share;
  }

  bool isElsewhere(size_t device) const {
    return relay && relay->isElsewhere(int32_t(device));
  }

  /// Lets every device that has something to do go on to its next step, but for
  /// the one that the caller runs.
  void release(std::optional<size_t> apart) {
    auto wakes = [&](size_t i) {
      return !exchange.context(i).idle && apart != i;
    };
    int32_t busy = 0;
    for (size_t i = 0; i < drivers.size(); ++i)
      busy += wakes(i);
    running.store(busy, std::memory_order_relaxed);
    for (size_t i = 0; i < drivers.size(); ++i)
      if (wakes(i))
        wake(i);
  }

  /// Lets every device thread end.
  void stop() {
    stopping.store(true, std::memory_order_release);
    stopping.notify_all();
    for (size_t i = 0; i < drivers.size(); ++i)
      wake(i);
  }

  /// A device thread has ended what it was released for.
  void arrive() {
    if (running.fetch_sub(1, std::memory_order_acq_rel) != 1)
      return;
    // Under the lock, so that it cannot fall between the coordinator's look and
    // its sleep.
    std::lock_guard<std::mutex> guard(mutex);
    allArrived.notify_one();
  }

  /// Waits for all of them; false after `timeout`.
  template <typename Duration> bool waitForAll(Duration timeout) {
    std::unique_lock<std::mutex> lock(mutex);
    return allArrived.wait_for(lock, timeout, [&] {
      return running.load(std::memory_order_acquire) == 0;
    });
  }

  const Program program;
  const std::shared_ptr<FaultInjector> faults;
  const bool rehearses;
  Exchange exchange;
  /// Null: all devices are of this process.
  std::unique_ptr<RankRelay> relay;
  /// Null: no link is simulated.
  std::unique_ptr<Carrier> carrier;
  std::vector<std::unique_ptr<Driver>> drivers;
  std::vector<Share> shares;
  std::vector<Error> startErrors;
  /// Of each argument whether its place lacks the value that was given last, as
  /// that was read where the caller had it. Such a one is of one device, whose
  /// thread may change this in calls that overlap.
  std::vector<uint8_t> missing;
  /// What devices do when they are released: one step, or several that overlap.
  struct Overlap {
    int64_t steps = 0; ///< 0: one, which ends everywhere before the next begins
    std::span<const Feed> feeds;
    std::span<const Fetch> fetches;
  };
  Overlap overlap;
  /// Calls that overlap, in the place of steps; null: there are none.
  std::shared_ptr<OverlappedCalls> calls;

  /// Counts a device's releases; its thread waits for it to change.
  struct alignas(cacheLineBytes) Releases {
    std::atomic<uint32_t> count{0};
  };
  std::vector<Releases> releases;
  std::atomic<bool> stopping{false};
  /// Device threads that have not arrived yet.
  alignas(cacheLineBytes) std::atomic<int32_t> running{0};
  std::mutex mutex;
  std::condition_variable allArrived;

private:
  void wake(size_t device) {
    releases[device].count.fetch_add(1, std::memory_order_release);
    releases[device].count.notify_one();
  }
};

/// Runs a device's part of a step, or of all steps that overlap, on its own
/// thread or, where its driver can, on another.
void runPart(SessionState &state, size_t device);

/// Copies of all of an argument's values what \p device holds of it into its
/// arena, or out of that of a result's; false where a driver fails. By the
/// device's own thread, between its steps.
bool writeOwnParts(const SessionState &state, size_t device,
                   const BufferInfo &buffer, const char *values);
bool readOwnParts(const SessionState &state, size_t device,
                  const BufferInfo &buffer, char *values);

/// Whether a host device reads an argument that is lent where the caller has
/// it; else it is copied.
bool isReadThere(const SessionState &state, const ArgumentInfo &argument,
                 const void *memory);

/// A device's part of one step; false when it was aborted or failed.
bool runStep(SessionState &state, size_t device);

/// A device thread from its start to its end. It stays on `processor`, if
/// given, and arrives once when it is ready and once after each step.
void runDevice(const std::shared_ptr<SessionState> &state, size_t device,
               std::optional<int> processor);

} // namespace baechi::runtime

#endif // BAECHI_RUNTIME_SESSION_SESSIONSTATE_H
