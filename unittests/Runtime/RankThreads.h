//===- RankThreads.h - A program over ranks that are threads -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Ranks are threads of this process that exchange messages by a loopback
/// transport (LoopbackTransport.h).
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_UNITTESTS_RUNTIME_RANKTHREADS_H
#define BAECHI_UNITTESTS_RUNTIME_RANKTHREADS_H

#include "LoopbackTransport.h"
#include "SocketRanks.h"
#include "TestPrograms.h"

#include "Baechi/Runtime/Ranks.h"

#include <optional>
#include <thread>

namespace baechi::runtime::test {

struct RankThreads {
  /// New ranks.
  void build(int32_t ranks) {
    hub = std::make_shared<LoopbackHub>(ranks);
    members.clear();
    for (int32_t rank = 0; rank < ranks; ++rank)
      members.push_back(std::make_shared<Ranks>(
          std::make_unique<LoopbackTransport>(hub, rank)));
  }

  /// New ranks that are connected by sockets.
  void buildOverSockets(int32_t ranks) {
    build(ranks);
    members.clear();
    for (auto &transport : connectAll(meetingsOf(ranks)))
      members.push_back(std::make_shared<Ranks>(std::move(*transport)));
  }

  SessionOptions optionsOf(int32_t rank) const {
    SessionOptions result = options;
    result.ranks = members[size_t(rank)];
    return result;
  }

  const Program &programOf(int32_t rank) const {
    return rank == 1 && otherProgram ? *otherProgram : program;
  }

  /// Sessions of the other ranks, which follow rank 0's, and that.
  Expected<std::unique_ptr<Session>> begin() {
    followErrors.assign(members.size(), "");
    createErrors.assign(members.size(), "");
    for (size_t rank = 1; rank < members.size(); ++rank)
      followers.emplace_back([this, rank] {
        auto session = Session::create(programOf(int32_t(rank)), resolve,
                                       optionsOf(int32_t(rank)));
        if (session)
          followErrors[rank] = (*session)->follow().message();
        else
          createErrors[rank] = session.error().message();
        // A process that fails ends.
        if (hub->failingCall && !(session && followErrors[rank].empty()))
          hub->killed = int32_t(rank);
      });
    auto session = Session::create(programOf(0), resolve, optionsOf(0));
    if (!session)
      createErrors[0] = session.error().message();
    return session;
  }

  /// Once rank 0's session is gone. Where another was lost, its process ends.
  void end() {
    if (members[0]->broken()) {
      hub->killed = 0;
      members[0].reset();
    }
    for (std::thread &follower : followers)
      follower.join();
    followers.clear();
  }

  /// Both, with what rank 0 does in between.
  void run(const std::function<void(Session &)> &lead) {
    if (auto session = begin())
      lead(**session);
    end();
  }

  std::shared_ptr<LoopbackHub> hub;
  std::vector<std::shared_ptr<Ranks>> members;
  Program program;
  std::optional<Program> otherProgram; ///< of rank 1
  SymbolResolver resolve = resolveBody;
  SessionOptions options;
  std::vector<std::thread> followers;
  std::vector<std::string> followErrors, createErrors;
};

} // namespace baechi::runtime::test

#endif // BAECHI_UNITTESTS_RUNTIME_RANKTHREADS_H
