//===- Rules.h - The runtime's rules that a prediction follows --*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What a device does while it waits (docs/runtime.md), in one place for the
/// runtime and for the simulation of a step (Baechi/Analysis/StepSimulation.h).
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_RULES_H
#define BAECHI_RUNTIME_RULES_H

#include <cstddef>
#include <cstdint>

namespace baechi::runtime {

/// What a device that waits looks for in each queue to it, and the bytes of the
/// largest message that may delay what it waits for: some 25 microseconds.
inline constexpr size_t messagesAhead = 8;
inline constexpr int64_t bytesAhead = 256 << 10;

/// How often an await looks before it sleeps, when every device has a core of
/// its own: some tens of microseconds, about what it costs to sleep and wake;
/// and what a prediction takes that for.
inline constexpr int32_t spinsBeforeSleep = 1000;
inline constexpr int64_t awakeNs = 20'000;

} // namespace baechi::runtime

#endif // BAECHI_RUNTIME_RULES_H
