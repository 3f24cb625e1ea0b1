//===- SocketRanks.h - Ranks that are threads, connected by sockets -*- C++
//-*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_UNITTESTS_RUNTIME_SOCKETRANKS_H
#define BAECHI_UNITTESTS_RUNTIME_SOCKETRANKS_H

#include "transport/sockets/SocketTransport.h"
#include "transport/sockets/Sockets.h"

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace baechi::runtime::test {

/// That nobody listened at a moment ago.
inline uint16_t freePort() {
  std::string why;
  return sockets::portOf(sockets::listenAt("localhost", 0, why).get());
}

/// All ranks of one start at once; what each became, or why not.
inline std::vector<Expected<std::unique_ptr<Transport>>>
connectAll(const std::vector<Meeting> &meetings) {
  std::vector<std::optional<Expected<std::unique_ptr<Transport>>>> found(
      meetings.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < meetings.size(); ++i)
    threads.emplace_back(
        [&, i] { found[i].emplace(connectBySockets(meetings[i])); });
  for (std::thread &thread : threads)
    thread.join();
  std::vector<Expected<std::unique_ptr<Transport>>> result;
  for (auto &each : found)
    result.push_back(std::move(*each));
  return result;
}

inline std::vector<Meeting> meetingsOf(int32_t ranks, double seconds = 60) {
  std::vector<Meeting> result;
  uint16_t port = freePort();
  for (int32_t rank = 0; rank < ranks; ++rank)
    result.push_back({rank, ranks, "localhost", port, "job", seconds});
  return result;
}

} // namespace baechi::runtime::test

#endif // BAECHI_UNITTESTS_RUNTIME_SOCKETRANKS_H
