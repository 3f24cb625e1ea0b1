//===- Launch.h - Which processes were started together -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What the environment says of the processes that are to run one program, its
/// ranks, and of how they find each other. Nothing is asked of the launcher
/// itself.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_LAUNCH_H
#define BAECHI_RUNTIME_LAUNCH_H

#include "Baechi/Runtime/Error.h"

#include <cstdint>
#include <functional>
#include <string>

namespace baechi::runtime {

/// Where processes meet that know each other by number alone.
struct Meeting {
  int32_t rank = 0;
  int32_t size = 1;
  /// Rank 0's machine, by name or address, and the port where it waits.
  std::string host = {};
  uint16_t port = 0;
  /// What tells this start from others at the same port; may be empty.
  std::string job = {};
  /// How long the first waits for the last.
  double seconds = 60;
  /// And how long one of them may say nothing meanwhile; 0: as long.
  double silence = 10;
  /// This process and others on its machine may read each other's memory, where
  /// the kernel lets them.
  bool readsMemory = true;
};

struct Launch {
  enum class Way : uint8_t {
    Alone,  ///< one process
    Mpi,    ///< MPI knows the others
    Sockets ///< they meet at an address
  };
  Way way = Way::Alone;
  /// Who started them, for messages.
  std::string launcher;
  /// Of MPI only the size is known before it is asked.
  Meeting meeting;
  /// Which variable told MPI's size; MPI_LOCALNRANKS is of one machine.
  std::string variable;
  /// Seconds after which a rank that says nothing is given up; 0: never.
  double silence = 10;
};

/// A variable's value, null where there is none.
using VariableLookup = std::function<const char *(const char *)>;

/// Looks for, in this order: BAECHI_RANKS, BAECHI_RANK and BAECHI_COORDINATOR,
/// with BAECHI_JOB and BAECHI_SILENCE if they are there; Open MPI's, MPICH's
/// and Slurm's process managers (MPI); torchrun; srun. Fails where variables
/// contradict each other or are no numbers.
Expected<Launch> findLaunch(const VariableLookup &environment);
/// Of this process.
Expected<Launch> findLaunch();

} // namespace baechi::runtime

#endif // BAECHI_RUNTIME_LAUNCH_H
