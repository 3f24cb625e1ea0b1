//===- JoinRanks.cpp - Processes that run one program find each other -----===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Runtime/Launch.h"
#include "Baechi/Runtime/Ranks.h"
#include "ranks/Transport.h"
#include "transport/sockets/MeetPulse.h"
#include "transport/sockets/SocketTransport.h"

#include <dlfcn.h>

#include <cstdlib>

using namespace baechi::runtime;

static Expected<std::unique_ptr<Transport>> loadMpi(const Launch &launch,
                                                    const std::string &module) {
  const char *given = std::getenv("BAECHI_MPI_LIBRARY");
  std::string name = given && *given ? given : module;
  auto refuse = [&](const std::string &why) {
    return Error("started as one of " + std::to_string(launch.meeting.size) +
                 " processes by mpirun, but the MPI transport cannot be "
                 "loaded: " +
                 why + "; build with MPI installed, or start without mpirun");
  };
  // Global: MPI loads plug-ins of its own that use its functions.
  void *library = dlopen(name.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (!library) {
    const char *why = dlerror();
    return refuse(why ? why : name);
  }
  using Make = Transport *(const char **error);
  auto *make = reinterpret_cast<Make *>(dlsym(library, "baechi_mpi_transport"));
  if (!make)
    return refuse(name + " has no function baechi_mpi_transport");
  const char *error = "";
  std::unique_ptr<Transport> transport(make(&error));
  if (!transport)
    return refuse(error);
  // Started by another MPI than the module's: each would run alone.
  if (launch.variable != "MPI_LOCALNRANKS" &&
      transport->size() != launch.meeting.size)
    return Error(launch.variable + " says that there are " +
                 std::to_string(launch.meeting.size) +
                 " processes, MPI knows " + std::to_string(transport->size()) +
                 ": start them by the mpirun of the MPI that '" + name +
                 "' was built with");
  return transport;
}

Expected<std::shared_ptr<Ranks>> Ranks::join(const Launch &launch,
                                             const std::string &module) {
  Expected<std::unique_ptr<Transport>> transport =
      launch.way == Launch::Way::Mpi ? loadMpi(launch, module)
                                     : connectBySockets(launch.meeting);
  if (!transport)
    return transport.takeError();
  auto ranks = std::make_shared<Ranks>(std::move(*transport));
  ranks->setSilence(launch.silence);
  bool hasMet = launch.way == Launch::Way::Sockets;
  if (Error error =
          startPulse(*ranks, hasMet ? launch.meeting.host : std::string()))
    return error;
  return ranks;
}
