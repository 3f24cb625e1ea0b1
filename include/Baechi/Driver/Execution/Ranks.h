//===- Ranks.h - baechi-run as one of several processes -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_DRIVER_EXECUTION_RANKS_H
#define BAECHI_DRIVER_EXECUTION_RANKS_H

#include "Baechi/Conversion/HostJit/HostJit.h"
#include "Baechi/Driver/Input/Options.h"
#include "Baechi/Runtime/Fault.h"
#include "Baechi/Runtime/Ranks.h"
#include "llvm/Support/Error.h"
#include <memory>

namespace baechi {

/// Joins the other processes, where mpirun started several, and makes sure that
/// all were started alike, with the same \p words behind the program's name;
/// null where it did not. When this process ends, it
/// lets the others end.
llvm::Expected<std::shared_ptr<runtime::Ranks>>
joinRanks(const DriverOptions &options, std::vector<std::string> words);

/// Rank 0: gives the others a program to create a session of.
llvm::Error sendProgram(runtime::Ranks &ranks, llvm::StringRef manifest,
                        llvm::ArrayRef<llvm::MemoryBufferRef> objects);

/// Another rank: that program, a manifest and objects; empty where rank 0
/// dismisses it instead.
llvm::Expected<std::vector<std::string>> receiveProgram(runtime::Ranks &ranks);
llvm::Expected<std::unique_ptr<HostJit>>
linkProgram(llvm::ArrayRef<std::string> parts);

/// For tests: kills this process where its first operator begins, if it is rank
/// \p killed; null if not.
std::shared_ptr<runtime::FaultInjector> killerOf(int killed,
                                                 const runtime::Ranks *ranks);

/// Another rank than 0: runs its devices of the programs that rank 0 sends,
/// until that dismisses it. A DiagnosedError where rank 0 says what is wrong.
llvm::Error serveRank(const std::shared_ptr<runtime::Ranks> &ranks,
                      double watchdogSeconds, int killed);

} // namespace baechi

#endif // BAECHI_DRIVER_EXECUTION_RANKS_H
