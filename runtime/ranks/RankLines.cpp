//===- RankLines.cpp - Threads of ranks that talk to rank 0 ---------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Runtime/RankLines.h"
#include "ranks/RankCalls.h"

#include <chrono>
#include <cmath>
#include <cstring>
#include <thread>

using namespace baechi::runtime;

namespace {

using Clock = std::chrono::steady_clock;

/// A text is its line's number and what was said; of a rank that has nothing to
/// say any more this number alone.
constexpr uint64_t farewell = UINT64_MAX;

std::string textOf(uint64_t line, std::string_view said) {
  std::string text(reinterpret_cast<const char *>(&line), sizeof(line));
  return text.append(said);
}

} // namespace

struct RankLines::State {
  State(Ranks &ranks, std::vector<int32_t> peers)
      : ranks(ranks), silence(ranks.silence()), peers(std::move(peers)),
        heard(this->peers.size()) {
    for (int32_t other = 0; other < ranks.size(); ++other)
      if (ranks.leads() ? other != 0 : other == 0)
        others.try_emplace(other, other);
    // Who hears says how long it waits.
    ranks.setSilence(0);
  }
  ~State() { ranks.setSilence(silence); }

  struct Other {
    explicit Other(int32_t rank) : texts(rank) {}
    RankTexts texts;
    bool listens = true;
    std::string lost; ///< why it cannot be reached any more
  };

  /// The one that a line leads to.
  Other &at(size_t line) { return others.at(ranks.leads() ? peers[line] : 0); }

  void move();
  bool moveOf(int32_t rank, Other &other);
  void lose(int32_t rank, Other &other, std::string why);
  bool isDone();

  Ranks &ranks;
  const double silence;
  const std::vector<int32_t> peers;
  std::map<int32_t, Other> others;
  std::mutex mutex; ///< of `heard`, `lost` and `listens`
  std::condition_variable changed;
  std::vector<std::deque<std::string>> heard; ///< a line each
  std::atomic<bool> closing{false}, dropping{false};
  std::thread thread;
};

void RankLines::State::lose(int32_t rank, Other &other, std::string why) {
  other.texts.drop(ranks.transport());
  ranks.setLost(rank);
  std::lock_guard guard(mutex);
  other.lost = std::move(why);
  other.listens = false;
  changed.notify_all();
}

/// Whether anything has moved.
bool RankLines::State::moveOf(int32_t rank, Other &other) {
  bool moved = false;
  std::optional<std::string> arrived;
  if (Problem problem =
          other.texts.move(ranks.transport(), other.listens, arrived, moved)) {
    lose(rank, other,
         ranks.findLost() == rank
             ? ranks.describeLost(rank)
             : Ranks::name(rank) + " cannot be reached: " + problem.reason +
                   (problem.detail ? std::string(": ") + problem.detail : ""));
    return true;
  }
  if (!arrived)
    return moved;
  uint64_t line = farewell;
  std::memcpy(&line, arrived->data(), std::min(sizeof(line), arrived->size()));
  std::lock_guard guard(mutex);
  if (line < heard.size() && arrived->size() >= sizeof(line))
    heard[line].push_back(arrived->substr(sizeof(line)));
  else
    other.listens = false;
  changed.notify_all();
  return true;
}

/// Everybody has said farewell, and what was said here has left. Who was given
/// up is not waited for.
bool RankLines::State::isDone() {
  return closing && std::ranges::all_of(others, [&](const auto &each) {
           const Other &other = each.second;
           return !other.lost.empty() || ranks.lostRank() == each.first ||
                  (!other.listens && other.texts.hasSentAll());
         });
}

void RankLines::State::move() {
  for (int64_t idle = 0; !dropping && !isDone();) {
    bool moved = false;
    for (auto &[rank, other] : others)
      if (other.lost.empty() && (other.listens || !other.texts.hasSentAll()))
        moved |= moveOf(rank, other);
    if (moved) {
      idle = 0;
      continue;
    }
    // Devices compute meanwhile, on cores that this thread would take.
    ++idle;
    if (idle < 50)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(
          std::chrono::microseconds(idle < 1000 ? 20 : 200));
    if (idle < 50)
      continue;
    int32_t gone = ranks.findLost();
    auto it = others.find(gone);
    // Rank 0 tells the others of each other.
    if (it != others.end() && it->second.lost.empty() && it->second.listens)
      lose(gone, it->second, ranks.describeLost(gone));
  }
  if (dropping)
    for (auto &[rank, other] : others)
      if (other.lost.empty())
        other.texts.drop(ranks.transport());
}

RankLines::RankLines(Ranks &ranks, std::vector<int32_t> peers)
    : state(std::make_unique<State>(ranks, std::move(peers))) {
  state->thread = std::thread([this] { state->move(); });
}

RankLines::~RankLines() {
  state->dropping = true;
  if (state->thread.joinable())
    state->thread.join();
}

void RankLines::say(size_t line, const std::string &text) {
  state->at(line).texts.put(textOf(line, text));
}

Expected<std::string> RankLines::hear(size_t line, double seconds, bool &late) {
  State::Other &other = state->at(line);
  std::deque<std::string> &heard = state->heard[line];
  std::unique_lock guard(state->mutex);
  auto isThere = [&] { return !heard.empty() || !other.lost.empty(); };
  late = false;
  if (std::isinf(seconds))
    state->changed.wait(guard, isThere);
  else
    late = !state->changed.wait_for(
        guard, std::chrono::duration<double>(seconds), isThere);
  if (late)
    return Error("nothing was heard for so long");
  if (heard.empty())
    return Error(other.lost);
  std::string text = std::move(heard.front());
  heard.pop_front();
  return text;
}

void RankLines::close() {
  for (auto &[rank, other] : state->others)
    other.texts.put(textOf(farewell, ""));
  state->closing = true;
  if (state->thread.joinable())
    state->thread.join();
}
