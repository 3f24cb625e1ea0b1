//===- Meet.h - Processes connect to each other -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// How ranks that were started without MPI become connected, each with each.
/// Rank 0 waits at the meeting's port. The others call there, say who they are
/// and at which port they can be called, and get everybody's address with a
/// number that is this start's alone; then each calls those of lower rank.
/// Whoever else calls (a scan of ports, a process of another Meeting::job) is
/// turned away and changes nothing.
///
/// What goes over the connections is neither encrypted nor signed, as MPI's and
/// NCCL's messages: networks are to be trusted.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_TRANSPORT_SOCKETS_MEET_H
#define BAECHI_RUNTIME_TRANSPORT_SOCKETS_MEET_H

#include "Baechi/Runtime/Launch.h"
#include "transport/sockets/Sockets.h"

#include <string>
#include <vector>

namespace baechi::runtime::sockets {

struct Mesh {
  /// A connection to each rank, none to itself. They do not block.
  std::vector<Descriptor> connections;
  /// machineIdentity() of each rank.
  std::vector<std::string> machines;
};

/// By all ranks. Fails, naming who is missing or what differs, after
/// Meeting::seconds at the latest.
Expected<Mesh> meet(const Meeting &meeting);

} // namespace baechi::runtime::sockets

#endif // BAECHI_RUNTIME_TRANSPORT_SOCKETS_MEET_H
