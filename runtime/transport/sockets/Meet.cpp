//===- Meet.cpp - Processes connect to each other -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "transport/sockets/Meet.h"
#include "ranks/MachineIdentity.h"

#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

using namespace baechi::runtime;
using namespace baechi::runtime::sockets;

namespace {

constexpr char magic[8] = {'b', 'a', 'e', 'c', 'h', 'i', 0, 2};

/// What a rank says of itself when it calls another.
struct Hello {
  char magic[8];
  int32_t rank, size;
  /// Of the start, as rank 0 has told it; 0 to rank 0.
  uint64_t start;
  /// Where it can be called.
  uint16_t port;
  char job[128], machine[128];
};

/// Rank 0's answer: why not, or the start's number; then an Entry a rank.
struct Answer {
  char magic[8];
  uint64_t start;
  char refusal[240];
};
struct Entry {
  char address[64], machine[128];
  uint16_t port;
};

/// Others' processes may send anything: texts end where their field does.
template <size_t N> std::string textOf(const char (&field)[N]) {
  return std::string(field, strnlen(field, N));
}
template <size_t N> void setText(char (&field)[N], const std::string &text) {
  std::memset(field, 0, N);
  text.copy(field, N - 1);
}

/// Who calls here, one after the other. Callers that say nothing, or something
/// else, are put down without keeping the others waiting.
class Door {
public:
  explicit Door(int listener) : listener(listener) {}

  struct Caller {
    Descriptor socket;
    Hello hello{};
    size_t heard = 0;
  };

  /// None when the time is over.
  Caller next(const Deadline &until) {
    while (!until.passed()) {
      std::vector<pollfd> looks{{listener, POLLIN, 0}};
      for (const Caller &each : callers)
        looks.push_back({each.socket.get(), POLLIN, 0});
      ::poll(looks.data(), looks.size(), until.milliseconds());
      for (size_t i = callers.size(); i-- > 0;) {
        if (!looks[i + 1].revents)
          continue;
        Caller &each = callers[i];
        ssize_t count = recv(each.socket.get(),
                             reinterpret_cast<char *>(&each.hello) + each.heard,
                             sizeof(Hello) - each.heard, 0);
        if (count < 0 && (errno == EAGAIN || errno == EINTR))
          continue;
        each.heard += size_t(std::max<ssize_t>(count, 0));
        bool ours = std::memcmp(each.hello.magic, magic,
                                std::min(each.heard, sizeof(magic))) == 0;
        if (count > 0 && ours && each.heard < sizeof(Hello))
          continue;
        Caller done = std::move(each);
        callers.erase(callers.begin() + ptrdiff_t(i));
        if (count > 0 && ours)
          return done;
      }
      if (looks[0].revents) {
        Descriptor socket(
            accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (socket) {
          setUp(socket.get());
          // The one that has said nothing for longest makes room.
          if (callers.size() >= mostCallers)
            callers.erase(callers.begin());
          callers.push_back({std::move(socket)});
        }
      }
    }
    return {};
  }

private:
  static constexpr size_t mostCallers = 64;
  int listener;
  std::vector<Caller> callers;
};

class Meeter {
public:
  explicit Meeter(const Meeting &meeting)
      : meeting(meeting), until(meeting.seconds) {
    mesh.connections.resize(size_t(meeting.size));
    mesh.machines.resize(size_t(meeting.size));
    mesh.machines[size_t(meeting.rank)] = machineIdentity();
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

  /// Why a caller of rank 0 is none of these processes; "": it is one.
  std::string refusal(const Hello &caller) const {
    std::string who = "rank " + std::to_string(caller.rank);
    if (caller.size != meeting.size)
      return who + " was started as one of " + std::to_string(caller.size) +
             " processes, rank 0 as one of " + std::to_string(meeting.size);
    if (caller.rank < 1 || caller.rank >= meeting.size)
      return who + " calls rank 0, of " + std::to_string(meeting.size) +
             " processes: each has a rank of its own, from 0";
    if (mesh.connections[size_t(caller.rank)])
      return "two processes are " + who;
    return "";
  }

  Error wait() {
    std::string why;
    Descriptor listener = listenAt(meeting.host, meeting.port, why);
    if (!listener)
      return Error("rank 0 cannot wait for the others at " + place() + ": " +
                   why);
    Door door(listener.get());
    std::vector<Entry> entries(size_t(meeting.size));
    for (int32_t missing = meeting.size - 1; missing > 0;) {
      Door::Caller caller = door.next(Deadline(0.2));
      if (std::string gone = goneRank(); !gone.empty()) {
        gone += " has ended while rank 0 at " + place() + " waited for " +
                missingRanks();
        refuseAll(gone, nullptr);
        return Error(gone);
      }
      if (!caller.socket && until.passed())
        return Error("rank 0 waited " + seconds() + " at " + place() + " for " +
                     missingRanks());
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
                   seconds() + ": " + why);
    Answer answer{};
    std::vector<Entry> entries(size_t(meeting.size));
    Hello mine = hello(0, portOf(listener.get()));
    if (!writeAll(first.get(), &mine, sizeof(mine), until) ||
        !readAll(first.get(), &answer, sizeof(answer), until) ||
        std::memcmp(answer.magic, magic, sizeof(magic)) != 0)
      return Error(until.passed()
                       ? "who listens at " + place() + " is no rank 0, or it " +
                             "did not find all ranks within " + seconds()
                       : "who answers at " + place() +
                             " is no rank 0 of this version, or has ended");
    if (std::string no = textOf(answer.refusal); !no.empty())
      return Error(no);
    if (!readAll(first.get(), entries.data(), entries.size() * sizeof(Entry),
                 until))
      return Error("rank 0 at " + place() + " has ended");
    mesh.connections[0] = std::move(first);
    for (int32_t rank = 0; rank < meeting.size; ++rank)
      mesh.machines[size_t(rank)] = textOf(entries[size_t(rank)].machine);
    for (int32_t rank = 1; rank < meeting.rank; ++rank)
      if (Error error = callRank(rank, entries[size_t(rank)], answer.start))
        return error;
    return answerRanks(listener.get(), answer.start);
  }

  Error callRank(int32_t rank, const Entry &entry, uint64_t start) {
    // Rank 0 knows a neighbour by a number that is of no use elsewhere.
    std::string host = textOf(entry.address), why;
    if (isLoopback(host) && textOf(entry.machine) != machineIdentity())
      host = meeting.host;
    Descriptor socket = call(host, entry.port, until, why);
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
  Mesh mesh;
};

} // namespace

Expected<Mesh> sockets::meet(const Meeting &meeting) {
  if (meeting.rank < 0 || meeting.rank >= meeting.size)
    return Error("this is rank " + std::to_string(meeting.rank) + " of " +
                 std::to_string(meeting.size) + ": ranks count from 0");
  return Meeter(meeting).run();
}
