//===- SharedState.h - Arrays that replicas see late ------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What the replicas of a step share, each at its own pace: arrays of float32
/// as tables of a parameter store. A replica sees them by the store's rules,
/// with its steps as clocks, computes its step, and adds what that changed,
/// divided by the number of replicas. Nothing here throws: functions return ""
/// or what is wrong, for code without exceptions.
///
/// Source: Wei et al., "Managed Communication and Consistency for Fast
/// Data-Parallel Iterative Analytics" (Bösen), SoCC 2015.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_REPLICAS_SHAREDSTATE_H
#define BAECHI_REPLICAS_SHAREDSTATE_H

#include "Baechi/Runtime/ParameterStore.h"

#include <memory>
#include <string>
#include <vector>

namespace baechi::replicas {

struct SharedArray {
  std::string name;
  size_t elements = 0;
};

class SharedState {
public:
  /// Arrays without elements are not allowed. Null: \p error says what is
  /// wrong.
  static std::unique_ptr<SharedState>
  create(const std::vector<SharedArray> &arrays,
         const store::StoreOptions &options, std::string &error);

  /// The value of an array before any replica sees it.
  std::string set(size_t array, const std::vector<float> &values);
  /// An array as a replica sees it; it waits where that would be too old.
  std::string see(int replica, size_t array, std::vector<float> &values);
  /// Adds what a replica's step made of what it saw.
  std::string change(int replica, size_t array,
                     const std::vector<float> &before,
                     const std::vector<float> &after);
  /// Ends a replica's step.
  std::string end(int replica);
  /// A replica is done, and nobody waits for it any more.
  void finish(int replica);
  /// A replica has failed: the others stop and say why.
  void lose(int replica, const std::string &why);
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
