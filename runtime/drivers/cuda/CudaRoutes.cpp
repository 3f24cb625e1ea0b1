//===- CudaRoutes.cpp - How messages get to other ranks' GPUs -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "drivers/cuda/CudaRoutes.h"
#include "drivers/cuda/CudaApi.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>

using namespace baechi::runtime;
using namespace baechi::runtime::cuda;

static constexpr std::string_view noGpus = "error: ";

static Expected<std::string> tellGpus() {
  Expected<const Api *> loaded = loadApi();
  if (!loaded)
    return loaded.takeError();
  const Api &api = **loaded;
  Expected<int> count = api.countGpus();
  if (!count)
    return count.takeError();
  // The same in all containers of a machine.
  std::string text = "unknown machine";
  std::ifstream boot("/proc/sys/kernel/random/boot_id");
  std::getline(boot, text);
  for (int i = 0; i < *count; ++i) {
    Device device = 0;
    char address[32] = {};
    Result result = api.deviceGet(&device, i);
    if (result == success)
      result = api.deviceGetPciBusId(address, sizeof(address), device);
    if (Error error = api.error(result, "a GPU's address cannot be told"))
      return error;
    text += std::string("\n") + address;
  }
  return text;
}

std::string baechi::runtime::cuda::describeGpus() {
  Expected<std::string> text = tellGpus();
  return text ? *text : std::string(noGpus) + text.error().message();
}

Error baechi::runtime::cuda::findUnknownGpus(const RankDevices &devices) {
  for (size_t i = 0; i < devices.owners.size(); ++i) {
    const std::string &text = devices.inventories[size_t(devices.owners[i])];
    if (devices.program.devices[i].kind == "cuda" && text.starts_with(noGpus))
      return Error("device " + devices.program.devices[i].name + ": " +
                   text.substr(noGpus.size()));
  }
  return Error();
}

int baechi::runtime::cuda::gpuOf(const Share &share, int gpus) {
  return share.count <= gpus ? share.ordinal
                             : int(int64_t(share.ordinal) * gpus / share.count);
}

int Routes::memberOf(int32_t device) const {
  return int(std::find(members.begin(), members.end(), places[size_t(device)]) -
             members.begin());
}

/// "MACHINE ADDRESS" of the GPU that a device lies on.
static std::string gpuName(const Share &share, const std::string &inventory) {
  std::istringstream lines(inventory);
  std::string machine, line;
  std::getline(lines, machine);
  std::vector<std::string> gpus;
  while (std::getline(lines, line))
    gpus.push_back(line);
  if (gpus.empty())
    return machine;
  return machine + " " + gpus[size_t(gpuOf(share, int(gpus.size())))];
}

Routes baechi::runtime::cuda::planRoutes(const RankDevices &devices,
                                         const std::string &withoutNccl) {
  const Program &program = devices.program;
  Routes routes;
  for (size_t i = 0; i < program.devices.size(); ++i) {
    bool isCuda = program.devices[i].kind == "cuda";
    int32_t rank = devices.owners[i];
    routes.places.push_back(
        isCuda
            ? Routes::Member{rank, gpuName(devices.shares[i],
                                           devices.inventories[size_t(rank)])}
            : Routes::Member{-1, ""});
  }

  auto note = [&, told = std::map<std::string, size_t>()](
                  const QueueInfo &queue, const std::string &why) mutable {
    auto [entry, isNew] = told.try_emplace(why, routes.notes.size());
    if (isNew)
      routes.notes.push_back("messages between " +
                             program.devices[queue.from].name + " and " +
                             program.devices[queue.to].name +
                             " go through host memory, not by NCCL: " + why);
  };
  // The rank that has a GPU in the communicator: the first that needs it.
  std::map<std::string, int32_t> holders;
  auto holds = [&](const Routes::Member &member) {
    return holders.try_emplace(member.gpu, member.rank).first->second ==
           member.rank;
  };
  for (const QueueInfo &queue : program.queues) {
    const Routes::Member &from = routes.places[queue.from];
    const Routes::Member &to = routes.places[queue.to];
    Routes::Kind kind = Routes::Kind::Other;
    bool crosses = devices.owners[queue.from] != devices.owners[queue.to];
    if (crosses && (from.rank < 0) != (to.rank < 0)) {
      kind = Routes::Kind::Staged; // NCCL does not reach the host's memory.
    } else if (crosses && from.rank >= 0) {
      bool ordered = std::all_of(
          queue.messages.begin(), queue.messages.end(),
          [](const MessageInfo &message) { return message.group >= 0; });
      kind = Routes::Kind::Staged;
      std::string why;
      if (!withoutNccl.empty())
        why = withoutNccl;
      else if (from.gpu == to.gpu)
        why = "both devices are on one GPU, which NCCL takes once";
      else if (!ordered)
        why = "the program does not tell their order; compile it again";
      else if (!holds(from) || !holds(to))
        why = "another process has one of the two GPUs in NCCL, which takes it "
              "once";
      else
        kind = Routes::Kind::Nccl;
      if (!why.empty())
        note(queue, why);
    }
    routes.queues.push_back(kind);
    if (kind == Routes::Kind::Nccl)
      for (const Routes::Member &end : {from, to})
        if (std::find(routes.members.begin(), routes.members.end(), end) ==
            routes.members.end())
          routes.members.push_back(end);
  }
  std::sort(routes.members.begin(), routes.members.end());
  return routes;
}
