//===- SimulatedNetwork.h - An attribute of modules -------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_DIALECT_SIMULATEDNETWORK_H
#define BAECHI_DIALECT_SIMULATEDNETWORK_H

#include "llvm/ADT/StringRef.h"

namespace baechi {

/// A unit attribute of a module whose links' times the runtime is to simulate
/// (docs/runtime.md).
inline constexpr llvm::StringLiteral kSimulatedNetwork =
    "baechi.simulated_network";

/// Of such a module whose host devices share their processors with the thread
/// that moves the messages: [what a message takes of one, ns; bytes that it
/// copies a microsecond]. Without it, that thread has one of its own.
inline constexpr llvm::StringLiteral kCarrierCosts = "baechi.carrier_costs";

} // namespace baechi

#endif // BAECHI_DIALECT_SIMULATEDNETWORK_H
