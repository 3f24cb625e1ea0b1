//===- CudaRanks.cpp - CUDA devices of several processes -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// All ranks go through the same steps here, each of which ends with all of
/// them knowing whether it failed on one.
///
//===----------------------------------------------------------------------===//

#include "transport/nccl/CudaRanks.h"
#include "Baechi/Runtime/Ranks.h"
#include "drivers/cuda/CudaPort.h"
#include "drivers/cuda/CudaRoutes.h"
#include "transport/nccl/NcclFabric.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>

using namespace baechi::runtime;
using namespace baechi::runtime::cuda;
using baechi::runtime::nccl::NcclFabric;

namespace {

class Connector {
public:
  explicit Connector(const RankDevices &devices)
      : devices(devices), ranks(devices.ranks) {}

  Error run() {
    if (Error error = findUnknownGpus(devices))
      return error;
    Expected<std::string> without = nobodyRefuses();
    if (!without)
      return without.takeError();
    routes = planRoutes(devices, *without);
    if (ranks.leads())
      for (const std::string &note : routes.notes)
        std::fprintf(stderr, "baechi: note: %s\n", note.c_str());
    if (Error error = ranks.agree(prepare(), ""))
      return error;
    if (routes.members.empty())
      return Error();
    Expected<nccl::UniqueId> id = shareId();
    if (!id)
      return id.takeError();
    // A rank without a member has no lanes, and nothing to wait for. What one
    // could not begin the others must not wait for.
    const std::function<Error()> steps[] = {
        [&] { return fabric->join(*id, int(routes.members.size())); },
        [&] { return fabric->wait(/*idle=*/false); },
        [&] { return fabric->greet(); },
        [&] { return fabric->wait(/*idle=*/true); }};
    for (const std::function<Error()> &step : steps) {
      Error failed = fabric ? step() : Error();
      if (ranks.broken())
        return failed;
      if (Error refused = ranks.agree(failed, ""))
        return refused;
    }
    return Error();
  }

  RankConnections take() { return std::move(made); }
  /// What was begun must not keep the devices from ending.
  void giveUp() {
    if (fabric)
      fabric->abort();
  }

private:
  /// Why there is to be no NCCL: one rank's wish is all ranks'.
  Expected<std::string> nobodyRefuses() {
    const char *wish = std::getenv("BAECHI_NCCL");
    bool refuses = wish && std::strcmp(wish, "0") == 0;
    Expected<std::vector<std::string>> wishes =
        ranks.gather(refuses ? "BAECHI_NCCL=0 is set" : "");
    if (!wishes)
      return wishes.takeError();
    for (std::string &text : *wishes)
      if (!text.empty())
        return std::move(text);
    return std::string();
  }

  bool isHere(int32_t device) const {
    return devices.owners[device] == ranks.rank();
  }

  /// Ports and lanes of this rank.
  Error prepare() {
    for (const Routes::Member &member : routes.members)
      if (member.rank == ranks.rank() && !fabric) {
        Expected<const nccl::Api *> api = nccl::loadApi();
        if (!api)
          return api.takeError();
        auto owned = std::make_unique<NcclFabric>(**api, ranks);
        fabric = owned.get();
        made.fabric = std::move(owned);
      }
    std::vector<size_t> queues;
    for (size_t q = 0; q < routes.queues.size(); ++q)
      if (int32_t end = endHere(q); routes.queues[q] != Routes::Kind::Other &&
                                    isHere(end) && routes.places[end].rank >= 0)
        queues.push_back(q);
    if (Error error = allocateStaging(queues))
      return error;
    for (size_t q : queues)
      if (Error error = connect(q)) {
        const QueueInfo &queue = devices.program.queues[q];
        return Error("queue " + std::to_string(q) + " (" +
                     devices.program.devices[queue.from].name + " to " +
                     devices.program.devices[queue.to].name +
                     "): " + error.message());
      }
    if (!fabric)
      return Error();
    if (Error error = fabric->start())
      return error;
    for (const Bound &bound : unbound)
      nccl::bindNcclPort(*bound.port, *bound.lane, bound.queue);
    return Error();
  }

  /// The end of a queue that is of this rank, if one is.
  int32_t endHere(size_t q) const {
    const QueueInfo &queue = devices.program.queues[q];
    return isHere(queue.from) ? queue.from : queue.to;
  }

  CudaDevice &deviceOf(int32_t end) const {
    return dynamic_cast<CudaDevice &>(*devices.drivers[end]);
  }

  /// Pinned memory for all that goes through the host here.
  Error allocateStaging(const std::vector<size_t> &queues) {
    std::vector<StagedMessage> messages;
    CudaDevice *any = nullptr;
    for (size_t q : queues) {
      if (routes.queues[q] != Routes::Kind::Staged)
        continue;
      any = &deviceOf(endHere(q));
      for (size_t seq = 0; seq < devices.program.queues[q].messages.size();
           ++seq)
        messages.push_back({int32_t(q), int32_t(seq)});
    }
    if (!any)
      return Error();
    Expected<std::shared_ptr<StagingPlaces>> allocated =
        StagingPlaces::allocate(*any, devices.program, messages);
    if (!allocated)
      return allocated.takeError();
    staging = std::move(*allocated);
    return Error();
  }

  Error connect(size_t q) {
    const QueueInfo &queue = devices.program.queues[q];
    int32_t end = endHere(q);
    bool sends = end == queue.from;
    CudaDevice &device = deviceOf(end);
    size_t count = queue.messages.size();
    if (routes.queues[q] == Routes::Kind::Staged) {
      Expected<std::unique_ptr<Port>> port =
          makeStagedPort(device, sends, count, staging, staged);
      if (!port)
        return port.takeError();
      staged += count;
      made.ports.push_back({q, std::move(*port)});
      return Error();
    }
    Expected<std::unique_ptr<CudaPort>> port =
        nccl::makeNcclPort(device, count);
    if (!port)
      return port.takeError();
    nccl::Lane &lane = fabric->laneOf(routes.memberOf(end), device);
    int peer = routes.memberOf(sends ? queue.to : queue.from);
    for (size_t seq = 0; seq < count; ++seq) {
      nccl::LaneMessage message;
      message.port = port->get();
      message.queue = int32_t(q);
      message.seq = int32_t(seq);
      message.group = queue.messages[seq].group;
      message.startNs = queue.messages[seq].startNs;
      message.peer = peer;
      message.sends = sends;
      lane.add(message);
    }
    unbound.push_back({port->get(), &lane, int32_t(q)});
    made.ports.push_back({q, std::move(*port)});
    return Error();
  }

  /// The first member's rank makes what all members meet by.
  Expected<nccl::UniqueId> shareId() {
    int32_t maker = routes.members.front().rank;
    nccl::UniqueId id{};
    Error error;
    if (maker == ranks.rank()) {
      const nccl::Api &api = **nccl::loadApi();
      if (Problem problem = api.problem(api.getUniqueId(&id),
                                        "NCCL cannot begin a communicator"))
        error = Error(std::string(problem.reason) + ": " + problem.detail);
    }
    if (Error refused = ranks.agree(error, ""))
      return refused;
    Expected<std::vector<std::string>> all = ranks.gather(
        maker == ranks.rank() ? std::string(id.bytes, sizeof(id.bytes)) : "");
    if (!all)
      return all.takeError();
    (*all)[size_t(maker)].copy(id.bytes, sizeof(id.bytes));
    return id;
  }

  struct Bound {
    CudaPort *port;
    nccl::Lane *lane;
    int32_t queue;
  };

  const RankDevices &devices;
  Ranks &ranks;
  Routes routes;
  RankConnections made;
  NcclFabric *fabric = nullptr;
  std::vector<Bound> unbound;
  /// Null: nothing goes through the host here.
  std::shared_ptr<StagingPlaces> staging;
  /// How many of its messages have ports.
  size_t staged = 0;
};

} // namespace

Expected<RankConnections>
baechi::runtime::connectCudaRanks(const RankDevices &devices) {
  Connector connector(devices);
  if (Error error = connector.run()) {
    connector.giveUp();
    return error;
  }
  return connector.take();
}
