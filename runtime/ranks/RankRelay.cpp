//===- RankRelay.cpp - A step among several ranks -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ranks/RankRelay.h"
#include "core/Driver.h"
#include "ranks/RankCalls.h"

#include <algorithm>
#include <map>

using namespace baechi::runtime;
using std::chrono::steady_clock;

/// How many of the messages under way are looked at in a row: the oldest, which
/// most likely end first, and as many others in turn.
static constexpr size_t looksAtOnce = 8;

RankRelay::RankRelay(std::shared_ptr<Ranks> given, const Program &program,
                     Exchange &exchange, double graceSeconds, bool spins)
    : ranks(std::move(given)), program(program), exchange(exchange),
      transport(ranks->transport()), graceSeconds(graceSeconds), spins(spins) {
  const int32_t self = ranks->rank();
  for (size_t i = 0; i < program.devices.size(); ++i) {
    owners.push_back(ranks->ownerOf(i, program.devices.size()));
    if (owners.back() != self && runner < 0)
      runner = int32_t(i);
  }
  // Tags go through all messages of the program, so that both ends agree.
  int32_t tag = tags::FirstMessage;
  for (size_t q = 0; q < program.queues.size(); ++q) {
    const QueueInfo &queue = program.queues[q];
    int32_t from = owners[queue.from], to = owners[queue.to];
    firstMessage.push_back(messages.size());
    bool crosses = (from == self) != (to == self);
    for (size_t seq = 0; seq < queue.messages.size(); ++seq, ++tag)
      if (crosses)
        messages.push_back({int32_t(q), int32_t(seq), from == self ? to : from,
                            tag, from == self, /*odd=*/false, Ticket()});
  }
  tagsOfStep = tag - tags::FirstMessage;
  messagesOfStep = messages.size();
  for (size_t i = 0; i < messagesOfStep; ++i) {
    Message message = messages[i];
    message.odd = true;
    message.tag += tagsOfStep;
    messages.push_back(message);
  }
  offers = std::vector<std::atomic<uint32_t>>(messages.size());
  active.reserve(messages.size());
  held.reserve(messages.size());

  // When the step began; then begin and end of each operator, and of this
  // rank's end of each copy, and the lanes.
  auto timesOf = [&](int32_t rank) {
    size_t count = 1 + 2 * exchange.lanes().size();
    for (size_t i = 0; i < owners.size(); ++i)
      if (owners[i] == rank)
        count += 2 * program.devices[i].operators.size();
    for (const QueueInfo &queue : program.queues)
      if (owners[queue.from] == rank || owners[queue.to] == rank)
        count += 2 * queue.messages.size();
    return std::vector<int64_t>(exchange.keepsTimeline() ? count : 0);
  };
  times = timesOf(self);
  peers.resize(size_t(ranks->size()));
  for (int32_t rank = 0; rank < ranks->size(); ++rank) {
    Peer &peer = peers[rank];
    peer.rank = rank;
    peer.talks = rank != self && (rank == 0 || self == 0);
    if (self == 0 && peer.talks)
      peer.times = timesOf(rank);
  }
  for (const QueueInfo &queue : program.queues) {
    int32_t from = owners[queue.from], to = owners[queue.to];
    if (from == to || queue.messages.empty())
      continue;
    if (from == self)
      peers[size_t(to)].isSentTo = true;
    else if (to == self)
      peers[size_t(from)].receivers.push_back(queue.to);
  }
}

RankRelay::~RankRelay() { release(); }

void RankRelay::release() {
  auto drop = [&](Ticket &ticket) {
    if (ticket.busy)
      transport.abandon(ticket);
  };
  for (Message &message : messages)
    drop(message.ticket);
  for (Peer &peer : peers) {
    drop(peer.incoming);
    drop(peer.timesTicket);
    drop(peer.leftOutgoing);
    drop(peer.leftIncoming);
    for (Ticket &ticket : peer.outgoing)
      drop(ticket);
  }
  drop(timesTicket);
  if (calls)
    calls->drop(transport);
}

Error RankRelay::check() const {
  int64_t tags = tags::FirstMessage;
  for (const QueueInfo &queue : program.queues) {
    tags += int64_t(queue.messages.size());
    if (owners[queue.from] == owners[queue.to])
      continue;
    for (const MessageInfo &message : queue.messages)
      if (message.lent)
        return Error("message '" + message.name + "' from " +
                     program.devices[queue.from].name + " to " +
                     program.devices[queue.to].name +
                     " is lent, but they are devices of two processes, which "
                     "share no memory: compile the program with "
                     "--transfers=copy");
    for (int32_t end : {queue.from, queue.to})
      if (const DriverKind *kind = findDriver(program.devices[end].kind);
          kind && (kind->memory == Memory::None || kind->name == "disk"))
        return Error("device " + program.devices[end].name + " of kind '" +
                     program.devices[end].kind +
                     "' holds no data that it could exchange with another "
                     "process");
  }
  if (Error error = checkLanes())
    return error;
  if (tags > transport.largestTag())
    return Error("the program has " + std::to_string(tags) +
                 " messages, more than can be told apart between processes");
  return Error();
}

/// Each process looks after the links that it sends over, and knows of no
/// other's messages.
Error RankRelay::checkLanes() const {
  std::map<int32_t, const QueueInfo *> firstOf;
  for (const QueueInfo &queue : program.queues) {
    if (!queue.link || queue.messages.empty())
      continue;
    for (int32_t lane : queue.link->lanes) {
      const QueueInfo &first = *firstOf.emplace(lane, &queue).first->second;
      if (owners[first.from] != owners[queue.from])
        return Error(
            "the simulated links from " + program.devices[first.from].name +
            " to " + program.devices[first.to].name + " and from " +
            program.devices[queue.from].name + " to " +
            program.devices[queue.to].name +
            " take turns, but different processes send over them, and none "
            "sees the other's messages: give the machine links of their own "
            "(\"link_model\": \"parallel\"), or run it in one process");
    }
  }
  return Error();
}

void RankRelay::setPort(size_t queue, Port &port) {
  ports.push_back(&port);
  for (Message &message : messages)
    if (message.queue == int32_t(queue))
      message.port = &port;
}

/// Only the device threads of this process and the carrier, several at once.
/// Where a place is one of an earlier offer, that was taken: of more offers
/// than there are places two are of one message, and who offers it again has
/// seen the first one's end. The counter hands that on.
void RankRelay::offered(int32_t queue, int32_t seq, bool odd) {
  uint64_t place = offerCount.fetch_add(1, std::memory_order_acq_rel);
  size_t message =
      firstMessage[queue] + size_t(seq) + (odd ? messagesOfStep : 0);
  offers[place % offers.size()].store(uint32_t(message) + 1,
                                      std::memory_order_seq_cst);
  stir();
}

void RankRelay::reset(int64_t count, bool overlap) {
  for (auto &offer : offers)
    offer.store(0, std::memory_order_relaxed);
  offerCount.store(0, std::memory_order_relaxed);
  offersTaken = done = 0;
  nextActive = 0;
  firstStep = 0;
  steps = count;
  overlaps = overlap;
  isOpen = false;
  calls.reset();
  active.clear();
  held.clear();
  for (Message &message : messages)
    message.step = message.odd;
  for (Peer &peer : peers) {
    peer.ended = peer.stopped = peer.isLost = peer.timesBegun = false;
    peer.leftTold = peer.left = 0;
    peer.silent = Attention();
  }
  saidEnded = saidFailed = aborted = endedEverywhere = brokenOff = cutOff =
      false;
  agreed.clear();
  lastLook = lastBeat = steady_clock::now();
}

void RankRelay::reset(int64_t first, std::shared_ptr<RankCalls> given) {
  reset(/*count=*/0, /*overlap=*/true);
  firstStep = steps = first;
  isOpen = true;
  calls = std::move(given);
  calls->setListener([this] { stir(); });
  for (Message &message : messages)
    message.step = first + (message.odd != ((first & 1) != 0));
  for (Peer &peer : peers)
    peer.leftTold = peer.left = first;
}

//===----------------------------------------------------------------------===//
// The program's messages
//===----------------------------------------------------------------------===//

std::string RankRelay::describe(const Problem &problem) {
  return std::string(problem.reason) +
         (problem.detail ? std::string(": ") + problem.detail : "");
}

/// A device failed over it, not another rank.
void RankRelay::fail(const Message &message, const Problem &problem) {
  const QueueInfo &queue = program.queues[message.queue];
  exchange.abort("message " + std::to_string(message.seq) + " '" +
                 queue.messages[message.seq].name + "' of queue " +
                 std::to_string(message.queue) + " (" +
                 program.devices[queue.from].name + " to " +
                 program.devices[queue.to].name + "): " + describe(problem));
}

/// Begins a message that a device here has offered. This and those that follow
/// return false when they failed, which aborts the step.
bool RankRelay::begin(Message &message) {
  message.beganNs = exchange.elapsedNs();
  message.told = false;
  message.moved = 0;
  bool portFirst =
      message.port && (message.sends || !message.port->hostBuffer(message.seq));
  return portFirst ? enterPort(message) : transfer(message);
}

const Slot &RankRelay::slotOf(const Message &message) const {
  const Channel &channel = exchange.channels()[message.queue];
  return channel.slotsOf(message.odd)[size_t(message.seq)];
}

/// Begins the next piece of a message, which is most often all of it.
bool RankRelay::transfer(Message &message) {
  const Slot &slot = slotOf(message);
  void *whole = message.port    ? message.port->hostBuffer(message.seq)
                : message.sends ? const_cast<void *>(slot.source)
                                : slot.destination;
  void *piece = static_cast<char *>(whole) + message.moved;
  int64_t bytes =
      std::min(slot.bytes - message.moved, transport.largestBytes());
  message.moved += bytes;
  message.atPort = false;
  Problem problem = message.sends
                        ? transport.send(message.ticket, message.peer,
                                         message.tag, piece, bytes)
                        : transport.receive(message.ticket, message.peer,
                                            message.tag, piece, bytes);
  if (!problem)
    return true;
  lose(message.peer, describe(problem));
  return false;
}

bool RankRelay::enterPort(Message &message) {
  const Slot &slot = slotOf(message);
  message.atPort = true;
  Problem problem = message.port->begin(
      message.seq,
      message.sends ? const_cast<void *>(slot.source) : slot.destination,
      slot.bytes);
  if (problem)
    fail(message, problem);
  return !problem;
}

void RankRelay::tell(Message &message) {
  if (!message.told)
    exchange.complete(message.queue, message.seq, message.odd,
                      {message.beganNs, exchange.elapsedNs()});
  message.told = true;
}

bool RankRelay::pollPort(Message &message, bool &ended) {
  Port::State state = Port::State::Waiting;
  if (Problem problem = message.port->poll(message.seq, state)) {
    fail(message, problem);
    return false;
  }
  if (state != Port::State::Waiting)
    tell(message);
  if (state != Port::State::Ended)
    return true;
  ended = !message.sends || !message.port->hostBuffer(message.seq);
  return ended || transfer(message);
}

bool RankRelay::pollTransport(Message &message, bool &ended) {
  if (Problem problem = transport.poll(message.ticket)) {
    lose(message.peer, describe(problem));
    return false;
  }
  if (message.ticket.busy)
    return true;
  if (message.moved < slotOf(message).bytes)
    return transfer(message);
  if (message.port && !message.sends)
    return enterPort(message) && pollPort(message, ended);
  ended = true;
  return true;
}

/// Looks how far a message under way has come.
bool RankRelay::pollMessage(size_t position, bool &moved) {
  Message &message = messages[active[position]];
  bool ended = false;
  if (!(message.atPort ? pollPort(message, ended)
                       : pollTransport(message, ended)))
    return false;
  if (!ended)
    return true;
  moved = true;
  ++done;
  tell(message);
  if (message.port)
    message.port->ended(message.seq);
  // The others keep their order.
  active.erase(active.begin() + ptrdiff_t(position));
  return true;
}

bool RankRelay::start(uint32_t message) {
  if (!begin(messages[message]))
    return false;
  messages[message].step += 2;
  active.push_back(message);
  return true;
}

/// Begins what was offered and ends what has arrived; whether there was any.
bool RankRelay::moveMessages() {
  bool moved = calls && moveCalls();
  moved |= overlaps && exchangeLeft();
  for (size_t i = 0; i < held.size();) {
    if (!mayBegin(messages[held[i]])) {
      ++i;
      continue;
    }
    moved = true;
    if (!start(held[i]))
      return true;
    held.erase(held.begin() + ptrdiff_t(i));
  }
  while (offersTaken < messagesInAll()) {
    std::atomic<uint32_t> &place = offers[offersTaken % offers.size()];
    uint32_t offer = place.load(std::memory_order_acquire);
    if (offer == 0)
      break;
    place.store(0, std::memory_order_relaxed);
    ++offersTaken;
    moved = true;
    if (!mayBegin(messages[offer - 1]))
      held.push_back(offer - 1);
    else if (!start(offer - 1))
      return true;
  }
  for (size_t i = 0, looks = 0; i < active.size() && looks < looksAtOnce;
       ++looks) {
    size_t before = active.size();
    if (!pollMessage(i, moved))
      return true;
    i += before == active.size();
  }
  for (size_t looks = 0; looks < looksAtOnce && active.size() > looksAtOnce;
       ++looks) {
    nextActive = std::max(nextActive + 1, looksAtOnce);
    if (nextActive >= active.size())
      nextActive = looksAtOnce;
    if (!pollMessage(nextActive, moved))
      return true;
  }
  // Others may have ended as those were looked at, or notices.
  for (size_t i = 0; i < active.size() && transport.ended() > 0;) {
    size_t before = active.size();
    const Message &message = messages[active[i]];
    if (!message.atPort && transport.hasEnded(message.ticket) &&
        !pollMessage(i, moved))
      return true;
    i += before == active.size();
  }
  return moved;
}
