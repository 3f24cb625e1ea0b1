//===- MpiTransport.cpp - Messages between processes, by MPI -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// A module that processes load when mpirun has started them (Ranks::join).
/// Messages of a session go over a communicator of its own, so that what an
/// earlier one left on the way never meets them. Messages are non-blocking, on
/// their senders' and receivers' buffers.
///
/// A process that ends shows at once: each rank holds a descriptor of every
/// process on its machine (pidfd), which becomes readable. What Open MPI 4.1's
/// mpirun does itself comes later: it sends the others SIGCONT, a second later
/// SIGTERM, and then SIGKILL.
///
//===----------------------------------------------------------------------===//

#include "ranks/MachineIdentity.h"
#include "ranks/Transport.h"

#include <mpi.h>

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace baechi::runtime;

namespace {

/// Who a process is, for the others.
struct Identity {
  char machine[128]; ///< machineIdentity()
  int32_t pid;
};

Identity whoAmI() {
  Identity identity{};
  machineIdentity().copy(identity.machine, sizeof(identity.machine) - 1);
  identity.pid = int32_t(getpid());
  return identity;
}

class MpiTransport final : public Transport {
public:
  /// Null, and why, when there is no MPI to be had.
  static MpiTransport *create(const char **error) {
    int given = 0;
    // One thread at a time calls (RankRelay.h).
    if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &given) !=
        MPI_SUCCESS) {
      *error = "MPI cannot be initialised";
      return nullptr;
    }
    if (given < MPI_THREAD_SERIALIZED) {
      *error = "this MPI supports no threads (MPI_THREAD_SERIALIZED)";
      return nullptr;
    }
    return new MpiTransport;
  }

  int32_t rank() const override { return self; }
  int32_t size() const override { return int32_t(processes.size()); }
  int32_t ranksHere() const override { return here; }
  bool sharesClock(int32_t rank) const override {
    return processes[rank] >= 0 || rank == self;
  }
  /// MPI counts in int.
  int64_t largestBytes() const override { return int64_t(1) << 30; }
  int32_t largestTag() const override { return mostTags; }

  Problem send(Ticket &ticket, int32_t to, int32_t tag, const void *data,
               int64_t bytes) override {
    MPI_Request request;
    return begun(
        ticket, request,
        MPI_Isend(data, int(bytes), MPI_BYTE, to, tag, messages, &request),
        "MPI cannot send");
  }

  Problem receive(Ticket &ticket, int32_t from, int32_t tag, void *data,
                  int64_t bytes) override {
    MPI_Request request;
    return begun(
        ticket, request,
        MPI_Irecv(data, int(bytes), MPI_BYTE, from, tag, messages, &request),
        "MPI cannot receive");
  }

  Problem poll(Ticket &ticket) override {
    MPI_Request request;
    std::memcpy(&request, &ticket.handle, sizeof(request));
    int ended = 0;
    int code = MPI_Test(&request, &ended, MPI_STATUS_IGNORE);
    ticket.busy = code == MPI_SUCCESS && !ended;
    return problem(code, "a message of MPI failed");
  }

  void abandon(Ticket &ticket) override {
    MPI_Request request;
    std::memcpy(&request, &ticket.handle, sizeof(request));
    ticket.busy = false;
    // Receives are taken back; a send can only be forgotten.
    MPI_Cancel(&request);
    MPI_Request_free(&request);
  }

  Problem renew() override {
    // What was abandoned may still refer to the old one, which is kept.
    MPI_Request request;
    MPI_Comm fresh;
    int ended = 0;
    int code = MPI_Comm_idup(MPI_COMM_WORLD, &fresh, &request);
    while (code == MPI_SUCCESS && !ended) {
      code = MPI_Test(&request, &ended, MPI_STATUS_IGNORE);
      if (lostRank() >= 0)
        return {"a rank was lost before the session began", nullptr};
      if (!ended)
        std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    if (Problem failed = problem(code, "MPI cannot make a communicator"))
      return failed;
    messages = fresh;
    MPI_Comm_set_errhandler(messages, MPI_ERRORS_RETURN);
    return {};
  }

  int32_t endedRank() const override {
    for (size_t i = 0; i < processes.size(); ++i) {
      pollfd look{processes[i], POLLIN, 0};
      // One that does not exist is skipped by the system.
      if (::poll(&look, 1, 0) > 0 && look.revents)
        return int32_t(i);
    }
    return -1;
  }

  void close() override {
    for (int &process : processes)
      if (process >= 0)
        ::close(std::exchange(process, -1));
    // MPI would wait for one that was given up for ever.
    MPI_Request request;
    int ended = 0;
    int code = MPI_Ibarrier(MPI_COMM_WORLD, &request);
    while (code == MPI_SUCCESS && !ended && !hasGivenUp()) {
      code = MPI_Test(&request, &ended, MPI_STATUS_IGNORE);
      if (!ended)
        std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    if (!hasGivenUp())
      MPI_Finalize();
  }

private:
  MpiTransport() {
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int size = 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &self);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int *most = nullptr, found = 0;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &most, &found);
    mostTags = found ? *most : 32767;
    Identity mine = whoAmI();
    std::vector<Identity> all(size);
    MPI_Allgather(&mine, sizeof(mine), MPI_BYTE, all.data(), sizeof(mine),
                  MPI_BYTE, MPI_COMM_WORLD);
    here = 0;
    for (int i = 0; i < size; ++i) {
      bool shared = std::strcmp(all[i].machine, mine.machine) == 0;
      here += shared;
      processes.push_back(shared && i != self
                              ? int(syscall(SYS_pidfd_open, all[i].pid, 0))
                              : -1);
    }
    messages = MPI_COMM_WORLD;
  }

  Problem begun(Ticket &ticket, MPI_Request &request, int code,
                const char *what) {
    static_assert(sizeof(request) <= sizeof(ticket.handle));
    ticket.busy = code == MPI_SUCCESS;
    std::memcpy(&ticket.handle, &request, sizeof(request));
    return problem(code, what);
  }

  Problem problem(int code, const char *what) {
    if (code == MPI_SUCCESS)
      return {};
    int length = 0;
    MPI_Error_string(code, words, &length);
    return {what, words};
  }

  int self = 0;
  int32_t here = 1;
  int32_t mostTags = 0;
  MPI_Comm messages;
  /// Descriptors of the processes on this machine; -1: elsewhere.
  std::vector<int> processes;
  /// What MPI said last.
  char words[MPI_MAX_ERROR_STRING] = {};
};

} // namespace

/// What Ranks::join looks up.
extern "C" __attribute__((visibility("default"))) Transport *
baechi_mpi_transport(const char **error) {
  return MpiTransport::create(error);
}
