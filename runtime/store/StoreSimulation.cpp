//===- StoreSimulation.cpp - A parameter store in simulated time -*- C++
//-*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Workers, carriers and a network as events in simulated time, in one thread:
/// the same calls, the same times and the same bits. Which rows a round takes,
/// when a budget lets it begin and what a clock needs are the carriers' rules
/// (StoreCarrier.cpp). New is that rows travel: a round holds a cable for its
/// bytes, and arrives a latency after its last one.
///
//===----------------------------------------------------------------------===//

#include "store/StoreState.h"

#include <algorithm>

using namespace baechi::store;

void ParameterStore::State::depart(size_t process, bool up, int64_t through,
                                   Round round) {
  auto flight = std::make_shared<Flight>(
      Flight{process, up, through, std::move(round.rows), {}});
  flight->sums.resize(flight->rows.size() * widest);
  size_t bytes = 0;
  for (size_t i = 0; i < flight->rows.size(); ++i) {
    Candidate &row = flight->rows[i];
    size_t stripe = row.row % stripes, at = row.row / stripes;
    float *sum = flight->sums.data() + i * widest;
    UpdateLog &log = up ? processes[process]->tables[row.table][stripe]->log
                        : server[row.table][stripe]->logs[process];
    row.clock = log.take(at, sum);
    bytes += row.bytes;
  }
  Cable &cable = simulation->cables[process];
  Time::time_point &free = up ? cable.upFree : cable.downFree;
  free = now() + simulation->takes(bytes);
  simulation->flights.push_back(flight);
  simulation->at(free + std::chrono::nanoseconds(simulation->network.latencyNs),
                 Happening::Arrives, process, std::move(flight));
}

void ParameterStore::State::arrive(Flight &flight) {
  if (flight.there)
    return;
  flight.there = true;
  auto own = std::ranges::find(simulation->flights, &flight,
                               [](const auto &other) { return other.get(); });
  std::shared_ptr<Flight> kept = std::move(*own); // while it is used
  simulation->flights.erase(own);
  for (size_t i = 0; i < flight.rows.size(); ++i) {
    const float *sum = flight.sums.data() + i * widest;
    const Candidate &row = flight.rows[i];
    if (flight.up)
      addAtServer(flight.process, row, row.clock, sum);
    else
      addAtCache(flight.process, row, sum);
  }
  if (flight.up)
    reachedServer(flight.process, flight.through);
  else
    reachedCache(flight.process, flight.through);
  // With a budget, what came is offered to all who read it.
  if (flight.up && options.budget)
    wakeAll();
}

void ParameterStore::State::addFlights(size_t process, size_t table, size_t row,
                                       RowValues &values) {
  for (const auto &flight : simulation->flights)
    for (size_t i = 0; i < flight->rows.size(); ++i)
      if (flight->up && flight->process == process &&
          flight->rows[i].table == table && flight->rows[i].row == row)
        values.add(row / stripes, flight->sums.data() + i * widest,
                   SendOrder::Magnitude);
}

bool ParameterStore::State::mayRead(int worker) const {
  const Process &process = *processes[size_t(worker) % processes.size()];
  return process.fresh >= workers[size_t(worker)]->clock - options.staleness;
}

void ParameterStore::State::carryAt(size_t process, Time::time_point time) {
  Cable &cable = simulation->cables[process];
  if (cable.carries <= time)
    return;
  cable.carries = time;
  simulation->at(time, Happening::Carries, process);
}

void ParameterStore::State::carryNow(size_t process) {
  Process &own = *processes[process];
  Cable &cable = simulation->cables[process];
  auto way = [&](Direction &direction, Time::time_point &free,
                 auto &&carryOne) {
    Time::time_point next = std::max(free, direction.pace.next());
    if (next > now())
      return carryAt(process, next);
    // Time in which nothing waited is not saved (Pace.h).
    if (direction.idle)
      direction.pace.sent(0, now());
    direction.idle = carryOne(process) == 0;
    if (!direction.idle)
      carryAt(process, std::max(free, direction.pace.next()));
  };
  way(own.up, cable.upFree, [&](size_t it) { return carryUp(it); });
  way(own.down, cable.downFree, [&](size_t it) { return carryDown(it); });
}

std::optional<int> ParameterStore::State::nextWorker() {
  Simulation &simulated = *simulation;
  for (;;) {
    checkLosses();
    for (auto [worker, since] : simulated.waiting) {
      if (mayRead(worker)) {
        std::chrono::duration<double> waited = now() - since;
        workers[size_t(worker)]->waited.fetch_add(waited.count());
        simulated.waiting.erase(worker);
        simulated.turn = worker;
        return worker;
      }
      std::chrono::duration<double> waited = now() - since;
      if (waited.count() > options.patience)
        refuseToWait(worker, waited.count());
    }
    if (simulated.events.empty()) {
      if (simulated.waiting.empty())
        return std::nullopt;
      auto [worker, since] = *simulated.waiting.begin();
      std::chrono::duration<double> waited = now() - since;
      refuseToWait(worker, waited.count());
    }
    Event event = simulated.events.top();
    simulated.events.pop();
    simulated.now = event.at;
    switch (event.what) {
    case Happening::Arrives:
      arrive(*event.flight);
      break;
    case Happening::GoesOn:
      simulated.waiting.emplace(int(event.who), now());
      break;
    case Happening::Carries:
      // An earlier one was asked for since, which asks again.
      if (simulated.cables[event.who].carries != event.at)
        break;
      simulated.cables[event.who].carries = Time::time_point::max();
      carryNow(event.who);
      break;
    }
  }
}

std::optional<int> ParameterStore::next() {
  if (!state->simulation)
    throw StoreError("the store's time is not simulated: give it a network");
  if (std::optional<int> turn = state->simulation->turn)
    throw StoreError("worker " + std::to_string(*turn) +
                     " had its turn and neither computes nor is finished");
  return state->nextWorker();
}

void ParameterStore::compute(int worker, double seconds) {
  if (!state->simulation)
    throw StoreError("the store's time is not simulated: give it a network");
  state->checkWorker(worker);
  Simulation &simulated = *state->simulation;
  if (simulated.turn != worker)
    throw StoreError("it is not the turn of worker " + std::to_string(worker));
  if (!(seconds >= 0) || !(seconds < 1e9))
    throw StoreError("worker " + std::to_string(worker) + " computes for " +
                     std::to_string(seconds) + " s: give 0 or more");
  simulated.turn.reset();
  auto length = std::chrono::duration_cast<Time::duration>(
      std::chrono::duration<double>(seconds));
  if (size_t &bytes = simulated.fetched[size_t(worker)]) {
    length += simulated.takes(bytes) +
              std::chrono::nanoseconds(2 * simulated.network.latencyNs);
    bytes = 0;
  }
  simulated.at(state->now() + length, Happening::GoesOn, size_t(worker));
}

double ParameterStore::simulatedSeconds() const {
  std::chrono::duration<double> passed = state->now() - Time::time_point{};
  return state->simulation ? passed.count() : 0;
}
