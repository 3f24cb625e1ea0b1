//===- MeetPulse.cpp - The connections of a pulse -------------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "transport/sockets/MeetPulse.h"
#include "core/Attention.h"
#include "ranks/Protocol.h"
#include "ranks/Pulse.h"
#include "ranks/Transport.h"
#include "transport/sockets/Sockets.h"

#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

using namespace baechi::runtime;
using namespace baechi::runtime::sockets;

namespace {

/// From rank 0: where it can be called.
struct Invitation {
  uint64_t key; ///< of this start
  char host[256];
  uint16_t port; ///< 0: nowhere
  bool isHere;   ///< all are on its machine, and nobody else can call
};
/// What a rank says who calls.
struct Caller {
  uint64_t key;
  int32_t rank;
  int32_t reserved;
};
/// And over the transport, whether it could.
enum Answer : int64_t { None, Called, CannotCall };

/// How long a rank tries to call.
constexpr double callSeconds = 3;

class PulseMeeter {
public:
  PulseMeeter(Ranks &ranks, const std::string &host)
      : ranks(ranks), transport(ranks.transport()), host(host),
        pulse(std::make_unique<Pulse>(ranks.rank(), ranks.size(),
                                      ranks.silence())) {}

  Error run() {
    if (Error error = ranks.leads() ? invite() : accept())
      return error;
    ranks.setPulse(std::move(pulse));
    return Error();
  }

private:
  Error lose(int32_t rank, const std::string &why) {
    ranks.setLost(rank);
    return Error(Ranks::name(rank) + " was lost: " + why);
  }

  /// A look at a message; an error where its other end is lost.
  Error look(Ticket &ticket, int32_t peer) {
    if (Problem problem = ticket.busy ? transport.poll(ticket) : Problem())
      return lose(peer, problem.reason);
    if (!ticket.busy)
      return Error();
    if (int32_t gone = transport.lostRank(); gone >= 0)
      return lose(gone, "its process has ended");
    return Error();
  }

  /// \p more: seconds in which the other has something else to wait for.
  bool isTooLong(double more = 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    waited.look();
    return ranks.silence() > 0 && waited.exceeds(ranks.silence() + more);
  }

  /// Rank 0.
  Error invite() {
    bool isHere = transport.ranksHere() == ranks.size() ||
                  (!host.empty() && isLoopback(host));
    std::string why;
    Descriptor listener = listenAt(isHere ? "localhost" : host, 0, why);
    Invitation invitation{};
    if (gethostname(invitation.host, sizeof(invitation.host) - 1) ||
        getrandom(&invitation.key, sizeof(invitation.key), 0) < 0)
      invitation.host[0] = 0;
    invitation.port = listener ? portOf(listener.get()) : 0;
    invitation.isHere = isHere;
    size_t size = size_t(ranks.size());
    std::vector<Ticket> sent(size), heard(size);
    std::vector<int64_t> answers(size, None);
    std::vector<bool> isThere(size);
    Error error;
    for (int32_t rank = 1; rank < ranks.size() && !error; ++rank) {
      Problem problem = transport.send(sent[size_t(rank)], rank, tags::Pulse,
                                       &invitation, sizeof(invitation));
      if (!problem)
        problem = transport.receive(heard[size_t(rank)], rank, tags::Pulse,
                                    &answers[size_t(rank)], sizeof(int64_t));
      if (problem)
        error = lose(rank, problem.reason);
    }
    for (int32_t missing = 1; missing > 0 && !error;) {
      if (listener)
        admit(listener.get(), invitation.key, isThere);
      missing = 0;
      for (int32_t rank = 1; rank < ranks.size() && !error; ++rank) {
        error = look(sent[size_t(rank)], rank);
        if (!error)
          error = look(heard[size_t(rank)], rank);
        bool isReady =
            !sent[size_t(rank)].busy && !heard[size_t(rank)].busy &&
            (isThere[size_t(rank)] || answers[size_t(rank)] == CannotCall);
        if (!isReady && missing == 0)
          missing = rank;
      }
      if (missing > 0 && !error && isTooLong(2 * callSeconds)) {
        pulse->giveUp(missing);
        error = lose(missing, Pulse::describeSilence(ranks.silence()));
      }
    }
    for (auto *tickets : {&sent, &heard})
      for (Ticket &ticket : *tickets)
        if (ticket.busy)
          transport.abandon(ticket);
    return error;
  }

  /// Strangers are put down.
  void admit(int listener, uint64_t key, std::vector<bool> &isThere) {
    for (;;) {
      Descriptor socket(
          accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!socket)
        return;
      Caller caller{};
      if (!readAll(socket.get(), &caller, sizeof(caller), Deadline(1)) ||
          caller.key != key || caller.rank < 1 || caller.rank >= ranks.size() ||
          isThere[size_t(caller.rank)])
        continue;
      setUp(socket.get());
      isThere[size_t(caller.rank)] = true;
      pulse->add(caller.rank, socket.release());
    }
  }

  /// Another rank.
  Error accept() {
    Invitation invitation{};
    if (Error error = finish([&](Ticket &ticket) {
          return transport.receive(ticket, 0, tags::Pulse, &invitation,
                                   sizeof(invitation));
        }))
      return error;
    int64_t answer = call(invitation) ? Called : CannotCall;
    return finish([&](Ticket &ticket) {
      return transport.send(ticket, 0, tags::Pulse, &answer, sizeof(answer));
    });
  }

  template <typename Begin> Error finish(Begin begin) {
    Ticket ticket;
    Problem problem = begin(ticket);
    Error error = problem ? lose(0, problem.reason) : Error();
    while (ticket.busy && !error) {
      error = look(ticket, 0);
      if (ticket.busy && !error && isTooLong())
        error = lose(0, Pulse::describeSilence(ranks.silence()));
    }
    if (ticket.busy)
      transport.abandon(ticket);
    return error;
  }

  bool call(const Invitation &invitation) {
    if (invitation.port == 0)
      return false;
    bool isNear =
        invitation.isHere || (host.empty() && transport.sharesClock(0));
    std::string why;
    Descriptor socket =
        sockets::call(isNear         ? "localhost"
                      : host.empty() ? invitation.host
                                     : host,
                      invitation.port, Deadline(callSeconds), why);
    Caller mine{invitation.key, ranks.rank(), 0};
    if (!socket ||
        !writeAll(socket.get(), &mine, sizeof(mine), Deadline(callSeconds)))
      return false;
    pulse->add(0, socket.release());
    return true;
  }

  Ranks &ranks;
  Transport &transport;
  const std::string host;
  std::unique_ptr<Pulse> pulse;
  Attention waited;
};

} // namespace

Error baechi::runtime::startPulse(Ranks &ranks, const std::string &host) {
  return PulseMeeter(ranks, host).run();
}
