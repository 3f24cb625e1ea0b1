//===- RemoteState.cpp - State that another process has -------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Replicas/RemoteState.h"
#include "StateMessages.h"
#include "StateRows.h"

#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>

using namespace baechi::replicas;
using namespace baechi::store;

namespace {

constexpr double forEver = std::numeric_limits<double>::infinity();
/// Of a bandwidth: how often its thread looks for rows that wait, which its
/// messages without any may take a twentieth of.
constexpr double lookSeconds = 0.002, lookShare = 0.05, lookBytes = 512;
/// A clock that comes after all others.
constexpr int64_t lastClock = int64_t(1) << 62;
/// Of a message without rows.
const size_t emptyBytes = SentRows().text().size();

std::string_view bytesOf(const auto &numbers) {
  return {reinterpret_cast<const char *>(numbers.data()),
          numbers.size() * sizeof(numbers[0])};
}

bool isPaced(const StoreOptions &options) {
  return options.budget && std::isfinite(*options.budget);
}

} // namespace

std::unique_ptr<RemoteState>
RemoteState::create(const std::vector<SharedArray> &arrays,
                    const StoreOptions &options, int replica, Ask ask,
                    std::string &error) {
  std::unique_ptr<RemoteState> made;
  error = guarded([&] {
    made.reset(new RemoteState(arrays, options, replica, std::move(ask)));
  });
  return made;
}

RemoteState::RemoteState(const std::vector<SharedArray> &arrays,
                         const StoreOptions &options, int replica, Ask given)
    : arrays(arrays), asks(std::move(given)), fetched(arrays.size()) {
  int64_t fresh = ask({}, "");
  cache = std::make_unique<ProcessCache>(tablesOf(arrays), options, replica,
                                         /*clock=*/0, fresh);
  if (!options.budget)
    return;
  idleSeconds =
      std::max(lookSeconds, lookBytes / (lookShare * *options.budget));
  carrier = std::thread([this] { carry(); });
}

RemoteState::~RemoteState() { stop(); }

int64_t RemoteState::ask(const StateQuestion &question, std::string_view more,
                         std::string *made) {
  std::string text(reinterpret_cast<const char *>(&question), sizeof(question));
  std::string error, said = asks(text.append(more), error);
  StateAnswer answer;
  if (error.empty() && said.size() < sizeof(answer))
    error = "the store answers as another version of Baechi does";
  if (!error.empty())
    throw StoreError(error);
  std::memcpy(&answer, said.data(), sizeof(answer));
  said.erase(0, sizeof(answer));
  if (answer.failed)
    throw StoreError(said);
  if (made)
    *made = std::move(said);
  return answer.number;
}

bool RemoteState::round(bool all, int64_t sent, uint64_t room) {
  std::string taken = cache->take(all).text(), made;
  StateQuestion question;
  question.kind = StateQuestion::Sync;
  question.sent = all ? sent : cache->sent();
  question.clock = cache->clock();
  question.room = room;
  int64_t through = ask(question, taken, &made);
  cache->add(SentRows::parse(made), through);
  return std::max(taken.size(), made.size()) > emptyBytes;
}

bool RemoteState::round() {
  std::lock_guard talks(talking);
  return round(/*all=*/false, 0, cache->room());
}

void RemoteState::await(int64_t need) {
  double waited = 0;
  while (cache->fresh() < need) {
    round();
    if (cache->fresh() >= need)
      return;
    bool paced = isPaced(cache->options());
    auto began = std::chrono::steady_clock::now();
    StateQuestion question;
    question.kind = StateQuestion::Wait;
    question.clock = need;
    // What a budget has held back has to go in between.
    question.limit = paced ? std::max(cache->pause(), idleSeconds) : forEver;
    question.waited = waited;
    bool isThere;
    {
      std::lock_guard talks(talking);
      isThere = ask(question, "") != 0;
    }
    if (isThere && paced)
      std::this_thread::sleep_for(
          std::chrono::duration<double>(cache->pause()));
    waited +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - began)
            .count();
  }
}

/// All rows at once, as a step reads all of them.
void RemoteState::fetch(size_t array) {
  if (fetched[array])
    return;
  std::lock_guard talks(talking);
  StateQuestion question;
  question.kind = StateQuestion::Fetch;
  question.array = int32_t(array);
  std::string made;
  ask(question, "", &made);
  size_t width = cache->numbersOf(array), rows = cache->tables()[array].rows;
  std::vector<float> numbers(rows * width);
  if (made.size() != numbers.size() * sizeof(float))
    throw StoreError("the store's array '" + arrays[array].name +
                     "' has another size than the replica's");
  std::memcpy(numbers.data(), made.data(), made.size());
  for (size_t row = 0; row < rows; ++row)
    cache->put(array, row, numbers.data() + row * width);
  fetched[array] = true;
}

std::string RemoteState::see(int, size_t array, std::vector<float> &values) {
  return guarded([&] {
    check();
    await(cache->needed());
    fetch(array);
    bool checked = cache->options().checked;
    auto workers = size_t(cache->options().workers);
    std::vector<float> counts(checked ? workers * cache->tables()[array].rows
                                      : 0);
    getRows(arrays[array], values, [&](size_t row, float *whole) {
      cache->get(array, row, whole,
                 checked ? counts.data() + row * workers : nullptr);
    });
    if (!checked)
      return;
    std::lock_guard talks(talking);
    StateQuestion question;
    question.kind = StateQuestion::Check;
    question.array = int32_t(array);
    question.clock = cache->clock();
    ask(question, bytesOf(counts));
  });
}

std::string RemoteState::change(int, size_t array,
                                const std::vector<float> &before,
                                const std::vector<float> &after) {
  return guarded([&] {
    check();
    setRows(
        arrays[array],
        changeOf(arrays[array], before, after, cache->options().workers),
        [&](size_t row, const float *whole) { cache->inc(array, row, whole); });
  });
}

std::string RemoteState::end(int) {
  return guarded([&] {
    check();
    cache->tick();
    round();
  });
}

std::string RemoteState::finish(int) {
  return guarded([&] {
    stop();
    check();
    std::lock_guard talks(talking);
    round(/*all=*/true, lastClock, 0);
    StateQuestion question;
    question.kind = StateQuestion::Finish;
    ask(question, bytesOf(cache->readsByStaleness()));
  });
}

void RemoteState::lose(int, const std::string &why) {
  stop();
  StateQuestion question;
  question.kind = StateQuestion::Lose;
  std::lock_guard talks(talking);
  // The store may be what is gone.
  (void)guarded([&] { ask(question, why); });
}

void RemoteState::carry() {
  std::string why = guarded([&] {
    bool moved = false;
    std::unique_lock lock(mutex);
    for (;;) {
      std::chrono::duration<double> pause(
          std::max(cache->pause(), moved ? 0 : idleSeconds));
      if (changed.wait_for(lock, pause, [&] { return stopping; }))
        return;
      lock.unlock();
      moved = round();
      lock.lock();
    }
  });
  std::lock_guard lock(mutex);
  failed = std::move(why);
}

void RemoteState::stop() {
  {
    std::lock_guard lock(mutex);
    stopping = true;
    changed.notify_all();
  }
  if (carrier.joinable())
    carrier.join();
}

void RemoteState::check() const {
  std::lock_guard lock(mutex);
  if (!failed.empty())
    throw StoreError(failed);
}
