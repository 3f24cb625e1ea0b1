//===- RemoteDriver.h - Devices of other ranks -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_RANKS_REMOTEDRIVER_H
#define BAECHI_RUNTIME_RANKS_REMOTEDRIVER_H

#include "core/Driver.h"
#include "ranks/RankRelay.h"

#include <functional>

namespace baechi::runtime {

/// Stands for a device of rank `owner`: it has no memory here, its thread at
/// most runs the relay, and rank 0 reads and writes its arena there.
std::unique_ptr<Driver> makeRemoteDriver(std::shared_ptr<Ranks> ranks,
                                         RankRelay &relay, int32_t device);
/// Its row in the table of drivers, which no manifest can ask for.
extern const DriverKind remoteKind;

/// Another rank than 0: does what rank 0 says until it closes the session or
/// dismisses this rank. `step` runs a step, `steps` several that overlap.
Error followLeader(Ranks &ranks,
                   const std::vector<std::unique_ptr<Driver>> &drivers,
                   const std::function<Error()> &step,
                   const std::function<Error(const Command &)> &steps);

} // namespace baechi::runtime

#endif // BAECHI_RUNTIME_RANKS_REMOTEDRIVER_H
