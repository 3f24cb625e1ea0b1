//===- Ranks.h - baechi-run as one of several processes -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_TOOLS_BAECHI_RUN_RANKS_H
#define BAECHI_TOOLS_BAECHI_RUN_RANKS_H

#include "Baechi/Conversion/HostJit.h"
#include "Baechi/Runtime/Fault.h"
#include "Baechi/Runtime/Ranks.h"
#include "Options.h"
#include "llvm/Support/Error.h"
#include <memory>

namespace baechi {

/// Joins the other processes, where mpirun started several, and makes sure that
/// all were started alike; null where it did not. When this process ends, it
/// lets the others end.
llvm::Expected<std::shared_ptr<runtime::Ranks>>
joinRanks(const RunOptions &options);

/// Rank 0: gives the others a program to create a session of.
llvm::Error sendProgram(runtime::Ranks &ranks, llvm::StringRef manifest,
                        llvm::ArrayRef<llvm::MemoryBufferRef> objects);

/// For tests: kills this process where its first operator begins, if it is the
/// one that the options say; null if not.
std::shared_ptr<runtime::FaultInjector> killer(const RunOptions &options,
                                               const runtime::Ranks *ranks);

/// Another rank than 0: runs its devices of the programs that rank 0 sends,
/// until that dismisses it. Returns the exit status.
int serveRank(const RunOptions &options,
              const std::shared_ptr<runtime::Ranks> &ranks);

} // namespace baechi

#endif // BAECHI_TOOLS_BAECHI_RUN_RANKS_H
