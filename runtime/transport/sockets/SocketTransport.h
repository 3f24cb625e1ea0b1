//===- SocketTransport.h - Messages between processes, by TCP -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Ranks without MPI: a connection between each two of them (Meet.h). A
/// receiver says where it is ready, and what is sent goes straight into its
/// buffer: nothing is kept on the way, and a message that nobody has asked for
/// yet delays no other. Long messages go in pieces, in turn with others.
///
/// A process that ends closes its connections, which the others see at once,
/// whatever machine they are on.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_TRANSPORT_SOCKETS_SOCKETTRANSPORT_H
#define BAECHI_RUNTIME_TRANSPORT_SOCKETS_SOCKETTRANSPORT_H

#include "Baechi/Runtime/Launch.h"
#include "ranks/Transport.h"

#include <memory>

namespace baechi::runtime {

/// By all ranks of a start. Fails when they do not meet.
Expected<std::unique_ptr<Transport>> connectBySockets(const Meeting &meeting);

} // namespace baechi::runtime

#endif // BAECHI_RUNTIME_TRANSPORT_SOCKETS_SOCKETTRANSPORT_H
