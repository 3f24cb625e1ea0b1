//===- RemoteState.h - State that another process has -----------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_REPLICAS_REMOTESTATE_H
#define BAECHI_REPLICAS_REMOTESTATE_H

#include "Baechi/Replicas/ReplicaState.h"
#include "Baechi/Runtime/ProcessCache.h"

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace baechi::replicas {

struct StateQuestion;

/// One replica, in a process that has not the store: what it sees and changes
/// is in a cache of its own, and a read that the bound allows asks nobody.
class RemoteState : public ReplicaState {
public:
  /// Sends a question to `SharedState::answer` of the process that has the
  /// store, and waits for what that says; or \p error is why there is none. By
  /// one thread at a time.
  using Ask =
      std::function<std::string(std::string question, std::string &error)>;

  /// The arrays and options are those that the store was made with. Null:
  /// \p error says what is wrong.
  static std::unique_ptr<RemoteState>
  create(const std::vector<SharedArray> &arrays,
         const store::StoreOptions &options, int replica, Ask ask,
         std::string &error);
  ~RemoteState() override;

  std::string see(int replica, size_t array,
                  std::vector<float> &values) override;
  std::string change(int replica, size_t array,
                     const std::vector<float> &before,
                     const std::vector<float> &after) override;
  std::string end(int replica) override;
  std::string finish(int replica) override;
  void lose(int replica, const std::string &why) override;

private:
  RemoteState(const std::vector<SharedArray> &arrays,
              const store::StoreOptions &options, int replica, Ask given);

  /// Throws StoreError, of the store or because there is none any more.
  int64_t ask(const StateQuestion &question, std::string_view more,
              std::string *made = nullptr);
  bool round(bool all, int64_t sent, uint64_t room);
  /// Whether anything was moved.
  bool round();
  /// Until all updates from before clock \p need are in the cache.
  void await(int64_t need);
  void fetch(size_t array);
  /// Of a bandwidth: moves rows between the ends of steps.
  void carry();
  void stop();
  void check() const;

  const std::vector<SharedArray> arrays;
  const Ask asks;
  std::unique_ptr<store::ProcessCache> cache;
  std::vector<bool> fetched;
  double idleSeconds = 0;   ///< of the carrier, after it found nothing
  std::mutex talking;       ///< nothing comes between a question and its answer
  mutable std::mutex mutex; ///< of the next three
  std::condition_variable changed;
  bool stopping = false;
  std::string failed; ///< the carrier
  std::thread carrier;
};

} // namespace baechi::replicas

#endif // BAECHI_REPLICAS_REMOTESTATE_H
