//===- SharedState.h - Arrays that replicas see late ------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_REPLICAS_SHAREDSTATE_H
#define BAECHI_REPLICAS_SHAREDSTATE_H

#include "Baechi/Replicas/ReplicaState.h"
#include "Baechi/Runtime/ParameterStore.h"

#include <memory>
#include <string_view>

namespace baechi::replicas {

/// The process that has the store.
class SharedState : public ReplicaState {
public:
  /// Null: \p error says what is wrong.
  static std::unique_ptr<SharedState>
  create(const std::vector<SharedArray> &arrays,
         const store::StoreOptions &options, std::string &error);

  /// The value of an array before any replica sees it.
  std::string set(size_t array, const std::vector<float> &values);

  std::string see(int replica, size_t array,
                  std::vector<float> &values) override;
  std::string change(int replica, size_t array,
                     const std::vector<float> &before,
                     const std::vector<float> &after) override;
  std::string end(int replica) override;
  std::string finish(int replica) override;
  void lose(int replica, const std::string &why) override;

  /// What a replica of another process is answered (RemoteState.h). It asks no
  /// more where \p asksMore is not set any more.
  std::string answer(int replica, std::string_view asked, bool &asksMore);

  /// Brings all changes together, once all replicas are done.
  std::string drain();
  std::string read(size_t array, std::vector<float> &values) const;

  store::StoreReport report() const { return store->report(); }

private:
  SharedState() = default;

  std::unique_ptr<store::ParameterStore> store;
  std::vector<SharedArray> arrays;
};

} // namespace baechi::replicas

#endif // BAECHI_REPLICAS_SHAREDSTATE_H
