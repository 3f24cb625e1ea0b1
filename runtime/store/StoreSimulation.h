//===- StoreSimulation.h - A parameter store in simulated time --*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_STORE_STORESIMULATION_H
#define BAECHI_RUNTIME_STORE_STORESIMULATION_H

#include "Baechi/Runtime/ParameterStore.h"
#include "store/Pace.h"

#include <deque>
#include <map>
#include <memory>
#include <queue>
#include <tuple>

namespace baechi::store {

/// A round's rows on their way between a process and the server.
struct Flight {
  size_t process;
  bool up;
  int64_t through; ///< when it is there, all from before this clock is
  std::vector<Candidate> rows;
  std::vector<float> sums; ///< a row each, of the widest table's width
  bool there = false;
};

/// What happens at an instant, in this order: whatever arrives is there before
/// workers go on, and what they add is there before rows are chosen.
enum class Happening : uint8_t { Arrives, GoesOn, Carries };

struct Event {
  Time::time_point at;
  Happening what;
  uint64_t order;
  size_t who; ///< a worker or a process
  std::shared_ptr<Flight> flight;
  bool operator>(const Event &other) const {
    return std::tie(at, what, order) >
           std::tie(other.at, other.what, other.order);
  }
};

/// A process's cable to the server.
struct Cable {
  Time::time_point upFree, downFree; ///< when the last round is sent
  Time::time_point carries = Time::time_point::max(); ///< the next event
};

struct Simulation {
  Simulation(SimulatedNetwork network, size_t workers, size_t processes)
      : network(network), cables(processes), fetched(workers, 0) {}

  void at(Time::time_point time, Happening what, size_t who,
          std::shared_ptr<Flight> flight = nullptr) {
    events.push({time, what, orders++, who, std::move(flight)});
  }
  Time::duration takes(size_t bytes) const {
    return std::chrono::duration_cast<Time::duration>(
        std::chrono::duration<double>(double(bytes) / network.bytesPerSecond));
  }

  SimulatedNetwork network;
  Time::time_point now{};
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events;
  uint64_t orders = 0;
  std::vector<Cable> cables;
  std::deque<std::shared_ptr<Flight>> flights; ///< as they began
  std::map<int, Time::time_point> waiting;     ///< workers, and since when
  std::vector<size_t> fetched; ///< bytes of rows read first, by worker
  std::optional<int> turn;     ///< the worker that computes nothing yet
};

} // namespace baechi::store

#endif // BAECHI_RUNTIME_STORE_STORESIMULATION_H
