//===- RankSteps.cpp - Steps of several ranks that overlap ----------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// How far the ranks' devices have come, which keeps senders from running
/// ahead; and what rank 0 tells the others of several steps.
///
//===----------------------------------------------------------------------===//

#include "ranks/RankSteps.h"
#include "ranks/RankCalls.h"

#include <algorithm>
#include <cstring>

using namespace baechi::runtime;

//===----------------------------------------------------------------------===//
// During the steps
//===----------------------------------------------------------------------===//

std::string RankRelay::whySeparate() const {
  int64_t tags = tags::FirstMessage + 2 * int64_t(tagsOfStep);
  if (tags <= transport.largestTag())
    return "";
  return "with " + std::to_string(tagsOfStep) +
         " messages, more than can be told apart between processes where two "
         "steps send at once,";
}

bool RankRelay::mayBegin(const Message &message) const {
  return (!overlaps || !message.sends ||
          message.step <= peers[size_t(message.peer)].left + 1) &&
         (!message.port || message.port->mayBegin(message.seq));
}

/// Calls come while others run, until it is known which one was the last.
bool RankRelay::moveCalls() {
  isOpen = calls->isOpen();
  steps = firstStep + calls->known();
  bool moved = false;
  for (Peer &peer : peers)
    if (peer.talks && !peer.isLost)
      if (Problem problem = calls->move(transport, peer.rank, moved))
        lose(peer.rank, Ranks::name(peer.rank) + ": " + describe(problem));
  return moved;
}

/// This and those that follow return false when they failed.
bool RankRelay::tellLeft(Peer &peer) {
  if (peer.leftOutgoing.busy)
    if (Problem problem = transport.poll(peer.leftOutgoing)) {
      lose(peer.rank, describe(problem));
      return false;
    }
  if (peer.leftOutgoing.busy || peer.receivers.empty())
    return true;
  int64_t left = steps;
  for (int32_t device : peer.receivers)
    left = std::min(left, exchange.context(size_t(device))
                              .stepsEnded.load(std::memory_order_acquire));
  if (left <= peer.leftTold)
    return true;
  ++peer.leftTold; // one message a step, so that as many are received
  if (Problem problem = transport.send(peer.leftOutgoing, peer.rank, tags::Left,
                                       &peer.leftTold, sizeof(peer.leftTold))) {
    lose(peer.rank, describe(problem));
    return false;
  }
  return true;
}

bool RankRelay::hearLeft(Peer &peer) {
  while (peer.isSentTo && peer.left < steps) {
    Problem problem;
    if (!peer.leftIncoming.busy)
      problem = transport.receive(peer.leftIncoming, peer.rank, tags::Left,
                                  &peer.leftHeard, sizeof(peer.leftHeard));
    if (!problem)
      problem = transport.poll(peer.leftIncoming);
    if (problem) {
      lose(peer.rank, describe(problem));
      return false;
    }
    if (peer.leftIncoming.busy)
      return true;
    peer.left = peer.leftHeard;
  }
  return true;
}

/// Whether another rank's devices have left a step.
bool RankRelay::exchangeLeft() {
  bool moved = false;
  for (Peer &peer : peers) {
    int64_t before = peer.left;
    if (!peer.isLost && tellLeft(peer))
      (void)hearLeft(peer);
    moved |= peer.left != before;
  }
  return moved;
}

bool RankRelay::hasLeftAll(const Peer &peer) const {
  return !overlaps || ((!peer.isSentTo || peer.left == steps) &&
                       (peer.receivers.empty() ||
                        (peer.leftTold == steps && !peer.leftOutgoing.busy)));
}

//===----------------------------------------------------------------------===//
// Before and after them
//===----------------------------------------------------------------------===//

bool baechi::runtime::liesOn(const BufferInfo &buffer, const RankRelay &relay,
                             int32_t rank) {
  std::vector<PieceInfo> parts = buffer.parts();
  return std::any_of(parts.begin(), parts.end(), [&](const PieceInfo &part) {
    return relay.ownerOf(part.device) == rank ||
           std::any_of(part.copies.begin(), part.copies.end(),
                       [&](const Place &copy) {
                         return relay.ownerOf(copy.device) == rank;
                       });
  });
}

Error baechi::runtime::sendSteps(Ranks &ranks, const Program &program,
                                 const RankRelay &relay, int64_t count,
                                 std::span<const Feed> feeds,
                                 std::span<const Fetch> fetches) {
  for (int32_t rank = 1; rank < ranks.size(); ++rank) {
    std::vector<int64_t> fed, fetched;
    for (const Feed &feed : feeds)
      if (liesOn(program.arguments[feed.argument], relay, rank))
        fed.push_back(int64_t(feed.argument));
    for (const Fetch &fetch : fetches)
      if (liesOn(program.results[fetch.result], relay, rank))
        fetched.push_back(int64_t(fetch.result));
    auto numbers = fed;
    numbers.insert(numbers.end(), fetched.begin(), fetched.end());
    Command command(Command::Steps, int32_t(fed.size()), count,
                    int64_t(fetched.size()));
    if (Error error = ranks.send(rank, command.bytes()))
      return error;
    if (Error error =
            ranks.send(rank, {reinterpret_cast<const char *>(numbers.data()),
                              numbers.size() * sizeof(int64_t)}))
      return error;
    for (const Feed &feed : feeds) {
      const ArgumentInfo &argument = program.arguments[feed.argument];
      if (liesOn(argument, relay, rank))
        if (Error error =
                ranks.send(rank, {feed.values, size_t(count * argument.bytes)}))
          return error;
    }
  }
  return Error();
}

Expected<ToldSteps> baechi::runtime::receiveSteps(Ranks &ranks,
                                                  const Program &program,
                                                  const Command &command) {
  auto notUnderstood = [] {
    return Error("rank 0 says what this rank does not understand: the ranks "
                 "are of different versions");
  };
  ToldSteps told;
  told.count = command.offset;
  Expected<std::string> text = ranks.receive(0);
  if (!text)
    return text.takeError();
  size_t fed = size_t(command.device), fetched = size_t(command.size);
  std::vector<int64_t> numbers(fed + fetched);
  if (text->size() != numbers.size() * sizeof(int64_t))
    return notUnderstood();
  if (!numbers.empty())
    std::memcpy(numbers.data(), text->data(), text->size());
  told.fed.reserve(fed);
  told.fetched.reserve(fetched);
  for (size_t i = 0; i < fed; ++i) {
    Expected<std::string> values = ranks.receive(0);
    if (!values)
      return values.takeError();
    if (size_t(numbers[i]) >= program.arguments.size())
      return notUnderstood();
    told.fed.push_back(std::move(*values));
    told.feeds.push_back({size_t(numbers[i]), told.fed.back().data()});
  }
  for (size_t i = fed; i < numbers.size(); ++i) {
    if (size_t(numbers[i]) >= program.results.size())
      return notUnderstood();
    int64_t bytes = program.results[size_t(numbers[i])].bytes;
    told.fetched.emplace_back(size_t(told.count * bytes), '\0');
    told.fetches.push_back({size_t(numbers[i]), told.fetched.back().data()});
  }
  return told;
}

Error baechi::runtime::sendFetched(Ranks &ranks, const ToldSteps &told) {
  for (const std::string &values : told.fetched)
    if (Error error = ranks.send(0, values))
      return error;
  return Error();
}

void baechi::runtime::takeParts(const BufferInfo &result,
                                const RankRelay &relay, int32_t rank,
                                const char *from, char *to) {
  for (const PieceInfo &part : result.parts()) {
    if (relay.ownerOf(part.device) != rank)
      continue;
    PieceRows rows = result.pieces.empty() ? PieceRows{1, 0, 0, result.bytes}
                                           : rowsOf(result, part);
    for (int64_t row = 0; row < rows.rows; ++row) {
      int64_t at = rows.start + row * rows.stride;
      std::memcpy(to + at, from + at, size_t(rows.length));
    }
  }
}

Error baechi::runtime::receiveFetched(Ranks &ranks, const Program &program,
                                      const RankRelay &relay, int64_t count,
                                      std::span<const Fetch> fetches) {
  std::string values;
  for (int32_t rank = 1; rank < ranks.size(); ++rank)
    for (const Fetch &fetch : fetches) {
      const BufferInfo &result = program.results[fetch.result];
      if (!liesOn(result, relay, rank))
        continue;
      if (Error error = ranks.receive(rank, values))
        return error;
      for (int64_t at = 0; at < count * result.bytes; at += result.bytes)
        takeParts(result, relay, rank, values.data() + at, fetch.values + at);
    }
  return Error();
}
