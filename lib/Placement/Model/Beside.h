//===- Beside.h - Work on another thread ------------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_PLACEMENT_MODEL_BESIDE_H
#define BAECHI_LIB_PLACEMENT_MODEL_BESIDE_H

#include <cstdint>
#include <future>
#include <thread>
#include <utility>

namespace baechi::placement {

/// Models with more of them take seconds, which a thread is worth.
inline constexpr int32_t manyNodes = 100'000;

/// Does \p work on a thread of its own; where there is one processor, when its
/// result is asked for. For what takes seconds, and whose result does not
/// depend on when it is found.
template <typename Work> auto beside(Work &&work) {
  auto policy = std::thread::hardware_concurrency() > 1 ? std::launch::async
                                                        : std::launch::deferred;
  return std::async(policy, std::forward<Work>(work));
}

} // namespace baechi::placement

#endif // BAECHI_LIB_PLACEMENT_MODEL_BESIDE_H
