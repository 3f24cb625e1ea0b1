//===- RankCalls.cpp - Calls of several ranks that overlap ----------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ranks/RankCalls.h"
#include "ranks/RankSteps.h"

#include <algorithm>
#include <chrono>
#include <cstring>

using namespace baechi::runtime;

/// Calls that other ranks are told of before all have answered an earlier one:
/// devices are a step ahead of each other at most, and texts take their time.
static constexpr int64_t callsAhead = 4;
/// How long a thread waits before it looks after other things.
static constexpr std::chrono::milliseconds look(2);

static constexpr const char *notUnderstood =
    "says what is not understood here: the ranks are of different versions";

//===----------------------------------------------------------------------===//
// Texts
//===----------------------------------------------------------------------===//

void RankTexts::put(std::string text) {
  std::lock_guard<std::mutex> guard(mutex);
  waiting.push_back(std::move(text));
}

bool RankTexts::hasSentAll() const {
  std::lock_guard<std::mutex> guard(mutex);
  return waiting.empty() && out.next == nothing;
}

void RankTexts::drop(Transport &transport) {
  for (Way *way : {&out, &in})
    if (way->ticket.busy)
      transport.abandon(way->ticket);
}

Problem RankTexts::moveOut(Transport &transport, bool &moved) {
  for (;;) {
    if (out.ticket.busy) {
      if (Problem problem = transport.poll(out.ticket))
        return problem;
      if (out.ticket.busy)
        return Problem();
      moved = true;
    }
    Problem problem;
    if (out.next == nothing) {
      std::lock_guard<std::mutex> guard(mutex);
      if (waiting.empty())
        return Problem();
      out.text = std::move(waiting.front());
      waiting.pop_front();
      out.size = int64_t(out.text.size());
      out.next = 0;
      problem = transport.send(out.ticket, peer, tags::Calls, &out.size,
                               sizeof(out.size));
    } else if (out.next == out.size) {
      out.next = nothing;
    } else {
      int64_t bytes = std::min(out.size - out.next, tags::chunkBytes);
      problem = transport.send(out.ticket, peer, tags::Calls,
                               out.text.data() + out.next, bytes);
      out.next += bytes;
    }
    if (problem)
      return problem;
  }
}

Problem RankTexts::moveIn(Transport &transport, bool wanted,
                          std::optional<std::string> &arrived, bool &moved) {
  for (;;) {
    if (in.ticket.busy) {
      if (Problem problem = transport.poll(in.ticket))
        return problem;
      if (in.ticket.busy)
        return Problem();
      moved = true;
    }
    Problem problem;
    if (in.next == nothing) {
      if (!wanted)
        return Problem();
      in.next = aSize;
      problem = transport.receive(in.ticket, peer, tags::Calls, &in.size,
                                  sizeof(in.size));
    } else if (in.next == aSize) {
      if (in.size < 0)
        return {notUnderstood};
      in.text.resize(size_t(in.size));
      in.next = 0;
    } else if (in.next == in.size) {
      in.next = nothing;
      arrived = std::move(in.text);
      return Problem();
    } else {
      int64_t bytes = std::min(in.size - in.next, tags::chunkBytes);
      problem = transport.receive(in.ticket, peer, tags::Calls,
                                  in.text.data() + in.next, bytes);
      in.next += bytes;
    }
    if (problem)
      return problem;
  }
}

Problem RankTexts::move(Transport &transport, bool wanted,
                        std::optional<std::string> &arrived, bool &moved) {
  if (Problem problem = moveOut(transport, moved))
    return problem;
  return moveIn(transport, wanted, arrived, moved);
}

//===----------------------------------------------------------------------===//
// Rank 0
//===----------------------------------------------------------------------===//

LedCalls::LedCalls(const Program &program, const RankRelay &relay,
                   int32_t ranks, const Exchange &exchange, int64_t first,
                   CallSource &source, std::function<void(int64_t)> ended)
    : program(program), relay(relay), exchange(exchange), first(first),
      source(source), ended(std::move(ended)) {
  for (int32_t rank = 1; rank < ranks; ++rank)
    others.try_emplace(rank, rank);
}

std::string LedCalls::describe(const CallSource::Places &places,
                               int32_t rank) const {
  const std::vector<ArgumentInfo> &arguments = program.arguments;
  const std::vector<BufferInfo> &results = program.results;
  int64_t kind = 1;
  std::string text(reinterpret_cast<const char *>(&kind), sizeof(kind));
  for (size_t i = 0; i < arguments.size(); ++i)
    text += char(!places.arguments[i]                 ? 0
                 : !liesOn(arguments[i], relay, rank) ? 1
                                                      : 2);
  for (size_t k = 0; k < results.size(); ++k)
    text += char(places.results[k] && liesOn(results[k], relay, rank));
  for (size_t i = 0; i < arguments.size(); ++i)
    if (text[sizeof(kind) + i] == 2)
      text.append(static_cast<const char *>(places.arguments[i]),
                  size_t(arguments[i].bytes));
  return text;
}

bool LedCalls::tell() {
  if (!isOpen() || exchange.aborted())
    return false;
  int64_t call = known();
  {
    std::unique_lock<std::mutex> lock(mutex);
    if (!changed.wait_for(lock, look,
                          [&] { return call < answered + callsAhead; }))
      return true;
  }
  CallSource::Places places;
  CallSource::Next next = source.next(first + call, places);
  if (next == CallSource::Next::Later)
    return true;
  if (next == CallSource::Next::End) {
    int64_t end = 0;
    for (auto &[rank, other] : others)
      other.texts.put({reinterpret_cast<const char *>(&end), sizeof(end)});
    open.store(false, std::memory_order_release);
    tellListener();
    return false;
  }
  {
    std::lock_guard<std::mutex> guard(mutex);
    given.push_back(places);
  }
  for (auto &[rank, other] : others)
    other.texts.put(describe(places, rank));
  count.fetch_add(1, std::memory_order_acq_rel);
  tellListener();
  return true;
}

bool LedCalls::take(int32_t rank, const std::string &answer) {
  Other &other = others.at(rank);
  CallSource::Places places;
  {
    std::lock_guard<std::mutex> guard(mutex);
    places = given[size_t(other.answers - answered)];
  }
  size_t at = 0;
  for (size_t k = 0; k < program.results.size(); ++k) {
    const BufferInfo &result = program.results[k];
    if (!places.results[k] || !liesOn(result, relay, rank))
      continue;
    if (answer.size() - at < size_t(result.bytes))
      return false;
    takeParts(result, relay, rank, answer.data() + at,
              static_cast<char *>(places.results[k]));
    at += size_t(result.bytes);
  }
  if (at != answer.size())
    return false;
  // The places may be gone after that.
  ended(first + other.answers++);
  std::lock_guard<std::mutex> guard(mutex);
  while (std::all_of(others.begin(), others.end(), [&](const auto &entry) {
    return entry.second.answers > answered;
  })) {
    given.pop_front();
    ++answered;
  }
  changed.notify_one();
  return true;
}

Problem LedCalls::move(Transport &transport, int32_t peer, bool &moved) {
  Other &other = others.at(peer);
  for (;;) {
    std::optional<std::string> arrived;
    if (Problem problem = other.texts.move(transport, other.answers < known(),
                                           arrived, moved))
      return problem;
    if (!arrived)
      return Problem();
    if (!take(peer, *arrived))
      return {notUnderstood};
  }
}

bool LedCalls::isIdle() const {
  return std::all_of(others.begin(), others.end(), [&](const auto &entry) {
    return entry.second.texts.hasSentAll() && entry.second.answers == known();
  });
}

void LedCalls::drop(Transport &transport) {
  for (auto &[rank, other] : others)
    other.texts.drop(transport);
}

//===----------------------------------------------------------------------===//
// Another rank
//===----------------------------------------------------------------------===//

CallSource::Next FollowedCalls::next(int64_t call, Places &places) {
  std::unique_lock<std::mutex> lock(mutex);
  auto isKnown = [&] { return calls.count(call) > 0 || !isOpen(); };
  if (!isKnown() && !changed.wait_for(lock, look, isKnown))
    return Next::Later;
  auto found = calls.find(call);
  if (found == calls.end())
    return Next::End;
  places = {found->second.arguments.data(), found->second.results.data()};
  return Next::Call;
}

void FollowedCalls::ended(int64_t call) {
  std::string answer;
  {
    std::lock_guard<std::mutex> guard(mutex);
    auto found = calls.find(call);
    for (const std::string &values : found->second.values)
      answer += values;
    calls.erase(found);
  }
  texts.put(std::move(answer));
  tellListener();
}

/// False where it is not understood.
bool FollowedCalls::hear(std::string text) {
  int64_t kind = 0;
  if (text.size() < sizeof(kind))
    return false;
  std::memcpy(&kind, text.data(), sizeof(kind));
  if (kind == 0) {
    std::lock_guard<std::mutex> guard(mutex);
    open.store(false, std::memory_order_release);
    changed.notify_all();
    return text.size() == sizeof(kind);
  }
  const std::vector<ArgumentInfo> &arguments = program.arguments;
  const std::vector<BufferInfo> &results = program.results;
  size_t at = sizeof(kind) + arguments.size() + results.size();
  if (kind != 1 || text.size() < at)
    return false;
  std::unique_lock<std::mutex> lock(mutex);
  int64_t call = first + known();
  Told &told = calls[call]; // whose places point into it
  told.text = std::move(text);
  const char *how = told.text.data() + sizeof(kind);
  for (const ArgumentInfo &argument : arguments) {
    // What is set elsewhere is not read here, but known to be set.
    const void *place = *how ? told.text.data() : nullptr;
    if (*how++ == 2) {
      if (told.text.size() - at < size_t(argument.bytes))
        return false;
      place = told.text.data() + at;
      at += size_t(argument.bytes);
    }
    told.arguments.push_back(place);
  }
  if (at != told.text.size())
    return false;
  told.values.reserve(results.size()); // places stay
  for (const BufferInfo &result : results) {
    bool isWanted = *how++ != 0;
    if (isWanted)
      told.values.emplace_back(size_t(result.bytes), '\0');
    told.results.push_back(isWanted ? told.values.back().data() : nullptr);
  }
  count.fetch_add(1, std::memory_order_acq_rel);
  changed.notify_all();
  lock.unlock();
  if (isIdleHere)
    ended(call);
  return true;
}

Problem FollowedCalls::move(Transport &transport, int32_t, bool &moved) {
  for (;;) {
    std::optional<std::string> arrived;
    if (Problem problem = texts.move(transport, isOpen(), arrived, moved))
      return problem;
    if (!arrived)
      return Problem();
    if (!hear(std::move(*arrived)))
      return {notUnderstood};
  }
}
