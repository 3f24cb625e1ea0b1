//===- RankCalls.h - Calls of several ranks that overlap --------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Calls come one by one while others run, so rank 0 tells of each as it comes:
/// which arguments are set, with the values of those that lie on the other
/// rank, and which results are wanted. When the devices there have ended it,
/// that rank answers with what lies on it of these. The relay's thread moves
/// both beside the program's messages.
///
/// A text is an 8-byte size and as many bytes, under one tag. Rank 0 sends, for
/// each call, 1 (8 bytes), a byte for each argument (0: stays, 1: is set
/// elsewhere, 2: is set, its values follow), a byte for each result (1: is
/// wanted from this rank) and the values; and 0 at the end. An answer is the
/// values of all that is wanted, whole, of which this rank has set its parts.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_RANKS_RANKCALLS_H
#define BAECHI_RUNTIME_RANKS_RANKCALLS_H

#include "Baechi/Runtime/Feeds.h"
#include "ranks/RankRelay.h"

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace baechi::runtime {

/// Texts to and from another rank, one after the other. The relay's thread
/// does all but put().
class RankTexts {
public:
  explicit RankTexts(int32_t peer) : peer(peer) {}

  void put(std::string text);
  /// Goes on with both directions. Begins to receive where \p wanted, and gives
  /// what has arrived.
  Problem move(Transport &transport, bool wanted,
               std::optional<std::string> &arrived, bool &moved);
  bool hasSentAll() const;
  void drop(Transport &transport);

private:
  struct Way {
    Ticket ticket;
    int64_t size = 0, next = nothing; ///< of the text: its bytes, those moved
    std::string text;
  };
  static constexpr int64_t nothing = -1, aSize = -2;

  Problem moveOut(Transport &transport, bool &moved);
  Problem moveIn(Transport &transport, bool wanted,
                 std::optional<std::string> &arrived, bool &moved);

  const int32_t peer;
  Way out, in;
  mutable std::mutex mutex;
  std::deque<std::string> waiting;
};

/// What the relay serves while calls overlap.
class RankCalls {
public:
  virtual ~RankCalls() = default;

  /// By the relay's thread.
  virtual Problem move(Transport &transport, int32_t peer, bool &moved) = 0;
  /// Whether all was said and heard.
  virtual bool isIdle() const = 0;
  virtual void drop(Transport &transport) = 0;
  /// Who is told when there is more for move().
  void setListener(std::function<void()> given) { listener = std::move(given); }

  /// Whether more may come. Who asks for both asks for this first.
  bool isOpen() const { return open.load(std::memory_order_acquire); }
  /// Calls that this rank knows of.
  int64_t known() const { return count.load(std::memory_order_acquire); }

protected:
  void tellListener() const {
    if (listener)
      listener();
  }

  std::atomic<bool> open{true};
  std::atomic<int64_t> count{0};

private:
  std::function<void()> listener;
};

/// Rank 0's. The thread that waits for the devices asks for the calls, so that
/// other ranks may come to them before devices here do.
class LedCalls final : public RankCalls {
public:
  /// \p ended: another rank has ended a call, and its results are in place.
  LedCalls(const Program &program, const RankRelay &relay, int32_t ranks,
           const Exchange &exchange, int64_t first, CallSource &source,
           std::function<void(int64_t)> ended);

  /// Tells of the next call, if there is one; waits for some milliseconds at
  /// most. False: there is nothing more to tell.
  bool tell();

  Problem move(Transport &transport, int32_t peer, bool &moved) override;
  bool isIdle() const override;
  void drop(Transport &transport) override;

private:
  struct Other {
    explicit Other(int32_t rank) : texts(rank) {}
    RankTexts texts;
    int64_t answers = 0;
  };

  std::string describe(const CallSource::Places &places, int32_t rank) const;
  bool take(int32_t rank, const std::string &answer);

  const Program &program;
  const RankRelay &relay;
  const Exchange &exchange;
  const int64_t first;
  CallSource &source;
  const std::function<void(int64_t)> ended;
  std::map<int32_t, Other> others;
  std::mutex mutex;
  std::condition_variable changed;
  /// Of calls that not all have answered.
  std::deque<CallSource::Places> given;
  int64_t answered = 0; ///< calls that all have
};

/// Another rank's, which its devices ask for calls.
class FollowedCalls final : public RankCalls, public CallSource {
public:
  /// \p isIdle: no device here computes.
  FollowedCalls(const Program &program, int64_t first, bool isIdle)
      : program(program), first(first), isIdleHere(isIdle), texts(0) {}

  Next next(int64_t call, Places &places) override;
  void ended(int64_t call) override;

  Problem move(Transport &transport, int32_t peer, bool &moved) override;
  bool isIdle() const override { return texts.hasSentAll(); }
  void drop(Transport &transport) override { texts.drop(transport); }

private:
  struct Told {
    std::string text;
    std::vector<const void *> arguments;
    std::vector<void *> results;
    std::vector<std::string> values; ///< room for results
  };

  bool hear(std::string text);

  const Program &program;
  const int64_t first;
  const bool isIdleHere;
  RankTexts texts;
  std::mutex mutex;
  std::condition_variable changed;
  std::map<int64_t, Told> calls;
};

} // namespace baechi::runtime

#endif // BAECHI_RUNTIME_RANKS_RANKCALLS_H
