//===- ReplicaState.h - What replicas see late ------------------*- C++ -*-===//
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
#ifndef BAECHI_REPLICAS_REPLICASTATE_H
#define BAECHI_REPLICAS_REPLICASTATE_H

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace baechi::replicas {

/// Arrays without elements are not allowed.
struct SharedArray {
  std::string name;
  size_t elements = 0;
  /// What replicas change is a gradient, of which the store makes steps of this
  /// size that know how late they are; none: what they change is added.
  std::optional<double> revised = std::nullopt;
};

/// The arrays as replicas of this process see them, who each call from one
/// thread at a time: beside the store (SharedState.h), or elsewhere
/// (RemoteState.h).
class ReplicaState {
public:
  virtual ~ReplicaState() = default;

  /// An array as a replica sees it; it waits where that would be too old.
  virtual std::string see(int replica, size_t array,
                          std::vector<float> &values) = 0;
  /// Adds what a replica's step made of what it saw.
  virtual std::string change(int replica, size_t array,
                             const std::vector<float> &before,
                             const std::vector<float> &after) = 0;
  /// Ends a replica's step.
  virtual std::string end(int replica) = 0;
  /// A replica is done, and nobody waits for it any more.
  virtual std::string finish(int replica) = 0;
  /// A replica has failed: the others stop and say why.
  virtual void lose(int replica, const std::string &why) = 0;
};

} // namespace baechi::replicas

#endif // BAECHI_REPLICAS_REPLICASTATE_H
