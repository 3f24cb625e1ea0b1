//===- Meet.cpp - Processes connect to each other -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "transport/sockets/Meet.h"
#include "core/Attention.h"
#include "ranks/MachineIdentity.h"
#include "transport/sockets/Door.h"

#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>

using namespace baechi::runtime;
using namespace baechi::runtime::sockets;

namespace {

class Meeter {
public:
  explicit Meeter(const Meeting &meeting)
      : meeting(meeting), until(meeting.seconds) {
    mesh.connections.resize(size_t(meeting.size));
    mesh.machines.resize(size_t(meeting.size));
    mesh.machines[size_t(meeting.rank)] = machineIdentity();
    std::memcpy(waiting.magic, magic, sizeof(magic));
  }

  Expected<Mesh> run() {
    Error error = meeting.rank == 0 ? wait() : join();
    if (error)
      return error;
    return std::move(mesh);
  }

private:
  std::string place() const { return place(meeting.host, meeting.port); }
  static std::string place(const std::string &host, uint16_t port) {
    return (host.find(':') == std::string::npos ? host : "[" + host + "]") +
           ":" + std::to_string(port);
  }
  std::string seconds() const {
    return std::to_string(int64_t(meeting.seconds)) + " s";
  }
  std::string silence() const {
    return std::to_string(std::lround(meeting.silence)) + " s";
  }
  std::string describeSilent(const std::string &who) const {
    return who + " was lost: it has said nothing for " + silence() +
           " while ranks met: its process was stopped, or it cannot be reached";
  }

  Hello hello(uint64_t start, uint16_t port) const {
    Hello result{};
    std::memcpy(result.magic, magic, sizeof(magic));
    result.rank = meeting.rank;
    result.size = meeting.size;
    result.start = start;
    result.port = port;
    setText(result.job, meeting.job);
    setText(result.machine, mesh.machines[size_t(meeting.rank)]);
    return result;
  }

  /// Another start's process changes nothing here; it is told why.
  bool isOfAnotherJob(const Door::Caller &caller) const {
    std::string mine = textOf(hello(0, 0).job);
    std::string theirs = textOf(caller.hello.job);
    if (mine == theirs)
      return false;
    refuse(caller.socket.get(), "rank " + std::to_string(caller.hello.rank) +
                                    " is of job '" + theirs + "', rank 0 at " +
                                    place() + " of '" + mine + "'");
    return true;
  }

  /// What to do where this may be another start's port. Launchers tell jobs
  /// apart.
  std::string hint() const {
    return meeting.job.empty()
               ? "; if another job uses this port, give each a port of its own "
                 "(BAECHI_COORDINATOR), and a name (BAECHI_JOB) by which its "
                 "processes know each other"
               : "";
  }

  /// Why a caller of rank 0 is none of these processes; "": it is one.
  std::string refusal(const Hello &caller) const {
    std::string who = "rank " + std::to_string(caller.rank);
    if (caller.size != meeting.size)
      return who + " was started as one of " + std::to_string(caller.size) +
             " processes, rank 0 as one of " + std::to_string(meeting.size) +
             hint();
    if (caller.rank < 1 || caller.rank >= meeting.size)
      return who + " calls rank 0, of " + std::to_string(meeting.size) +
             " processes: each has a rank of its own, from 0" + hint();
    if (mesh.connections[size_t(caller.rank)])
      return "two processes are " + who + hint();
    return "";
  }

  Error wait() {
    std::string why;
    Descriptor listener = listenAt(meeting.host, meeting.port, why);
    if (!listener)
      return Error(
          "rank 0 cannot wait for the others at " + place() + ": " + why +
          (isTaken(why) ? ": another program has this port" + hint() : ""));
    Door door(listener.get());
    std::vector<Entry> entries(size_t(meeting.size));
    for (int32_t missing = meeting.size - 1; missing > 0;) {
      Door::Caller caller = door.next(Deadline(0.2));
      sayWaiting();
      if (std::string gone = goneRank(); !gone.empty()) {
        gone += " has ended while rank 0 at " + place() + " waited for " +
                missingRanks();
        refuseAll(gone, nullptr);
        return Error(gone);
      }
      if (!caller.socket && until.passed()) {
        std::string late = "rank 0 waited " + seconds() + " at " + place() +
                           " for " + missingRanks();
        refuseAll(late, nullptr);
        return Error(late);
      }
      if (!caller.socket || isOfAnotherJob(caller))
        continue;
      if (std::string no = refusal(caller.hello); !no.empty()) {
        refuseAll(no, &caller);
        return Error(no);
      }
      size_t rank = size_t(caller.hello.rank);
      mesh.machines[rank] = textOf(caller.hello.machine);
      setText(entries[rank].machine, mesh.machines[rank]);
      setText(entries[rank].address, peerAddress(caller.socket.get()));
      entries[rank].port = caller.hello.port;
      (void)writeAll(caller.socket.get(), &waiting, sizeof(waiting),
                     Deadline(1));
      mesh.connections[rank] = std::move(caller.socket);
      --missing;
    }
    setText(entries[0].machine, mesh.machines[0]);
    Answer answer{};
    std::memcpy(answer.magic, magic, sizeof(magic));
    if (getrandom(&answer.start, sizeof(answer.start), 0) < 0)
      return Error(std::string("no random number: ") + std::strerror(errno));
    for (int32_t rank = 1; rank < meeting.size; ++rank) {
      int socket = mesh.connections[size_t(rank)].get();
      if (!writeAll(socket, &answer, sizeof(answer), until) ||
          !writeAll(socket, entries.data(), entries.size() * sizeof(Entry),
                    until))
        return Error("rank " + std::to_string(rank) +
                     " has ended before all ranks were there");
    }
    return awaitCalls(answer);
  }

  /// Rank 0: until each other has called those of lower rank, which waits for
  /// nobody: who does not is the one that is stopped.
  Error awaitCalls(const Answer &go) {
    std::vector<bool> hasCalled(size_t(meeting.size));
    Attention silent;
    for (int32_t missing = 1; missing < meeting.size;) {
      pollfd look{mesh.connections[size_t(missing)].get(), POLLIN, 0};
      ::poll(&look, 1, int(tick.count()));
      std::string no;
      for (int32_t rank = 1; rank < meeting.size && no.empty(); ++rank) {
        char said = 0;
        ssize_t count =
            hasCalled[size_t(rank)]
                ? 1
                : recv(mesh.connections[size_t(rank)].get(), &said, 1, 0);
        if (count > 0)
          hasCalled[size_t(rank)] = true;
        else if (count == 0 || (errno != EAGAIN && errno != EINTR))
          no = "rank " + std::to_string(rank) + " has ended while ranks met";
      }
      while (missing < meeting.size && hasCalled[size_t(missing)])
        ++missing;
      silent.look();
      sayWaiting();
      bool isLate = meeting.silence > 0 ? silent.exceeds(meeting.silence)
                                        : until.passed();
      if (isLate && missing < meeting.size)
        no = meeting.silence > 0
                 ? describeSilent("rank " + std::to_string(missing))
                 : "rank " + std::to_string(missing) +
                       " has not called all others within " + seconds();
      if (!no.empty()) {
        refuseAll(no, nullptr);
        return Error(no);
      }
    }
    for (int32_t rank = 1; rank < meeting.size; ++rank)
      (void)writeAll(mesh.connections[size_t(rank)].get(), &go, sizeof(go),
                     Deadline(1));
    return Error();
  }

  std::string missingRanks() const {
    std::string text;
    int32_t count = 0;
    for (int32_t rank = 1; rank < meeting.size; ++rank)
      if (!mesh.connections[size_t(rank)] && ++count <= 8)
        text += (text.empty() ? "" : ", ") + std::to_string(rank);
    return (count == 1 ? "rank " : "ranks ") + text +
           (count > 8 ? ", ..." : "") + " of " + std::to_string(meeting.size);
  }

  /// One that had called and has ended since; "": none.
  std::string goneRank() const {
    for (int32_t rank = 1; rank < meeting.size; ++rank) {
      pollfd look{mesh.connections[size_t(rank)].get(), POLLRDHUP, 0};
      // One that is not there is skipped by the system.
      if (::poll(&look, 1, 0) > 0 && look.revents)
        return "rank " + std::to_string(rank);
    }
    return "";
  }

  static bool isTaken(const std::string &why) {
    return why == std::strerror(EADDRINUSE);
  }

  /// To those that are there, several times in what they take for silence.
  void sayWaiting() {
    if (!nextWord.passed())
      return;
    nextWord =
        Deadline(meeting.silence > 0 ? std::min(1.0, meeting.silence / 4) : 1);
    for (const Descriptor &each : mesh.connections)
      if (each)
        (void)::send(each.get(), &waiting, sizeof(waiting),
                     MSG_NOSIGNAL | MSG_DONTWAIT);
  }

  static void refuse(int socket, const std::string &why) {
    Answer answer{};
    std::memcpy(answer.magic, magic, sizeof(magic));
    setText(answer.refusal, why);
    (void)writeAll(socket, &answer, sizeof(answer), Deadline(1));
  }

  void refuseAll(const std::string &why, Door::Caller *last) {
    if (last)
      refuse(last->socket.get(), why);
    for (const Descriptor &each : mesh.connections)
      if (each)
        refuse(each.get(), why);
  }

  Error join() {
    std::string why;
    Descriptor listener = listenAt(meeting.host, 0, why);
    if (!listener)
      return Error("rank " + std::to_string(meeting.rank) +
                   " cannot be called by others: " + why);
    Descriptor first = call(meeting.host, meeting.port, until, why);
    if (!first)
      return Error("rank 0 is not to be reached at " + place() + " within " +
                   seconds() + ": " + why +
                   (why == std::strerror(ECONNREFUSED)
                        ? ": nobody listens there; rank 0 was not started, or "
                          "has ended before, and says why"
                        : ""));
    Answer answer{};
    std::vector<Entry> entries(size_t(meeting.size));
    Hello mine = hello(0, portOf(listener.get()));
    (void)writeAll(first.get(), &mine, sizeof(mine), Deadline(1));
    if (Error error = hearAnswer(first.get(), answer, /*isRank0=*/false))
      return error;
    if (std::string no = textOf(answer.refusal); !no.empty())
      return Error(no);
    if (hear(first.get(), entries.data(), entries.size() * sizeof(Entry)) !=
        Heard::All)
      return Error("rank 0 at " + place() + " has ended, or is stopped");
    mesh.connections[0] = std::move(first);
    for (int32_t rank = 0; rank < meeting.size; ++rank)
      mesh.machines[size_t(rank)] = textOf(entries[size_t(rank)].machine);
    for (int32_t rank = 1; rank < meeting.rank; ++rank)
      if (Error error = callRank(rank, entries[size_t(rank)], answer.start))
        return error;
    // Calls wait at the listener, if need be.
    (void)writeAll(mesh.connections[0].get(), "c", 1, Deadline(1));
    if (Error error = hearAnswer(mesh.connections[0].get(), answer,
                                 /*isRank0=*/true))
      return error;
    if (std::string no = textOf(answer.refusal); !no.empty())
      return Error(no);
    return answerRanks(listener.get(), answer.start);
  }

  enum class Heard : uint8_t { All, Part, Closed, Silence, Late };

  /// What rank 0 says. A look counts for little where this process itself was
  /// stopped.
  Heard hear(int socket, void *data, size_t bytes) const {
    Attention silent;
    for (size_t done = 0; done < bytes;) {
      pollfd look{socket, POLLIN, 0};
      ::poll(&look, 1, int(tick.count()));
      ssize_t count =
          recv(socket, static_cast<char *>(data) + done, bytes - done, 0);
      if (count > 0) {
        done += size_t(count);
        silent.restart();
        continue;
      }
      if (count == 0 || (errno != EAGAIN && errno != EINTR))
        return Heard::Closed;
      silent.look();
      if (meeting.silence > 0 && silent.exceeds(meeting.silence))
        return done > 0 ? Heard::Part : Heard::Silence;
      // Rank 0 tells who is missing, a moment before.
      if (until.passed() && silent.exceeds(2))
        return Heard::Late;
    }
    return Heard::All;
  }

  /// Until rank 0 has found all, or knows why it will not.
  Error hearAnswer(int socket, Answer &answer, bool isRank0) const {
    for (;; isRank0 = true) {
      Heard heard = hear(socket, &answer, sizeof(answer.magic));
      bool isOurs = std::memcmp(answer.magic, magic, sizeof(magic)) == 0;
      if ((heard == Heard::All && !isOurs) || heard == Heard::Part)
        return Error("who answers at " + place() +
                     " is no rank 0 of this version, but another program" +
                     hint());
      if (heard == Heard::All)
        heard = hear(socket, &answer.start, sizeof(answer) - sizeof(magic));
      if (heard == Heard::All && (answer.start || answer.refusal[0]))
        return Error();
      if (heard == Heard::All)
        continue;
      if (heard == Heard::Closed)
        return Error(isRank0 ? "rank 0 at " + place() + " has ended"
                             : "who listens at " + place() +
                                   " hangs up when it is called: another "
                                   "program, or rank 0 has ended" +
                                   hint());
      if (heard == Heard::Late)
        return Error("rank 0 at " + place() +
                     " did not find all ranks within " + seconds());
      return Error(isRank0 ? describeSilent("rank 0 at " + place())
                           : "who listens at " + place() +
                                 " says nothing for " + silence() +
                                 ": another program, or rank 0 was stopped" +
                                 hint());
    }
  }

  Error callRank(int32_t rank, const Entry &entry, uint64_t start) {
    // Rank 0 knows a neighbour by a number that is of no use elsewhere.
    std::string host = textOf(entry.address), why;
    if (isLoopback(host) && textOf(entry.machine) != machineIdentity())
      host = meeting.host;
    // It listens already.
    Deadline soon(meeting.silence > 0 ? meeting.silence : meeting.seconds);
    Descriptor socket = call(host, entry.port, soon, why);
    Hello mine = hello(start, 0);
    if (!socket || !writeAll(socket.get(), &mine, sizeof(mine), until))
      return Error("rank " + std::to_string(meeting.rank) +
                   " cannot reach rank " + std::to_string(rank) + " at " +
                   place(host, entry.port) + ": " + why);
    mesh.connections[size_t(rank)] = std::move(socket);
    return Error();
  }

  Error answerRanks(int listener, uint64_t start) {
    Door door(listener);
    for (int32_t left = meeting.size - 1 - meeting.rank; left > 0;) {
      Door::Caller caller = door.next(until);
      if (!caller.socket)
        return Error("rank " + std::to_string(meeting.rank) + " waited " +
                     seconds() + " for " + std::to_string(left) +
                     " ranks to call it");
      int32_t rank = caller.hello.rank;
      if (caller.hello.start != start || rank <= meeting.rank ||
          rank >= meeting.size || mesh.connections[size_t(rank)])
        continue; // Of another start.
      mesh.connections[size_t(rank)] = std::move(caller.socket);
      --left;
    }
    return Error();
  }

  const Meeting &meeting;
  const Deadline until;
  Deadline nextWord{0};
  Answer waiting{}; ///< what rank 0 says while it does
  Mesh mesh;
};

} // namespace

Expected<Mesh> sockets::meet(const Meeting &meeting) {
  if (meeting.rank < 0 || meeting.rank >= meeting.size)
    return Error("this is rank " + std::to_string(meeting.rank) + " of " +
                 std::to_string(meeting.size) + ": ranks count from 0");
  return Meeter(meeting).run();
}
