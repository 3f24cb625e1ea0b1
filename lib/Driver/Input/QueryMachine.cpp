//===- QueryMachine.cpp - Measure this machine -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Driver/Input/QueryMachine.h"
#include "Baechi/Analysis/MachineAttr.h"
#include "Baechi/Driver/Input/HostTimes.h"
#include "Baechi/Driver/Input/Options.h"
#include "Baechi/Placement/Model/Pool.h"
#include "Baechi/Placement/Model/Text.h"
#include "Baechi/Runtime/Machine.h"
#include "Baechi/Runtime/Ranks.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include <cmath>
#include <map>

using namespace baechi;

namespace {
struct MeasuredLink {
  placement::Link link;
  double residual = 0;
  bool disturbed = false;
};

llvm::Expected<MeasuredLink>
measureLink(const placement::Machine &machine, int32_t sender, int32_t receiver,
            const std::shared_ptr<runtime::Ranks> &ranks = nullptr) {
  runtime::LinkMeasureOptions options;
  options.ranks = ranks;
  options.sender = sender;
  options.receiver = receiver;
  for (const placement::Device &device : machine.devices) {
    options.kinds.push_back(device.kind);
    // Other processes know their numbers, not their names.
    if (!ranks)
      options.names.push_back(device.name);
  }
  // Idle hosts behind the two change nothing but who holds which device.
  while (!ranks &&
         int32_t(options.kinds.size()) > std::max(sender, receiver) + 1 &&
         options.kinds.back() != "cuda")
    options.kinds.pop_back();
  runtime::Expected<runtime::LinkFit> fit = runtime::measureLink(options);
  if (!fit)
    return llvm::createStringError(fit.error().message());
  MeasuredLink measured;
  measured.link.latencyNs = std::max<int64_t>(0, std::llround(fit->latencyNs));
  measured.link.bytesPerUs =
      std::max<int64_t>(1, std::llround(fit->bytesPerNs * 1000));
  measured.residual = fit->residual;
  measured.disturbed = fit->disturbed;
  return measured;
}

void sayDisturbed(const std::string &what, Listener &listener) {
  listener.note(what + " could not be measured without other work of this "
                       "machine, also when it was repeated: the plan may be "
                       "worse for it");
}

void tell(const llvm::Twine &what, const MeasuredLink &measured,
          Listener &listener) {
  std::string link = what.str();
  if (measured.disturbed)
    sayDisturbed(link, listener);
  listener.tell(
      llvm::formatv("{0}: {1} ns + bytes / {2:F2} GB/s, residual {3:F1} %",
                    link, measured.link.latencyNs,
                    measured.link.bytesPerUs / 1e3, 100 * measured.residual));
}

bool isDisk(const placement::Device &device) {
  return device.kind == placement::kDisk;
}

/// Between each disk and the first device in host memory, both ways, for all of
/// these.
llvm::Error measureDisks(placement::Machine &machine, Listener &listener) {
  llvm::SmallVector<int32_t> inMemory = devicesWhere(machine, isHostMemory);
  if (inMemory.empty())
    return llvm::Error::success();
  int32_t host = inMemory.front();
  for (int32_t disk : devicesWhere(machine, isDisk))
    for (bool comes : {false, true}) {
      const std::string &name = machine.devices[disk].name;
      llvm::Expected<MeasuredLink> measured =
          measureLink(machine, comes ? disk : host, comes ? host : disk);
      if (!measured)
        return measured.takeError();
      tell((comes ? "from " : "to ") + name, *measured, listener);
      for (int32_t other : inMemory)
        setMeasured(machine, comes ? disk : other, comes ? other : disk,
                    measured->link);
    }
  return llvm::Error::success();
}

bool hasGpus(const placement::Machine &machine) {
  return llvm::any_of(machine.devices, [](const placement::Device &device) {
    return device.kind == "cuda";
  });
}

/// The CUDA devices by their numbers, and the GPU that each lies on.
llvm::Expected<std::vector<std::pair<size_t, runtime::GpuInfo>>>
gpusOf(const placement::Machine &machine) {
  std::vector<size_t> devices;
  for (auto [i, device] : llvm::enumerate(machine.devices))
    if (device.kind == "cuda")
      devices.push_back(i);
  std::vector<std::pair<size_t, runtime::GpuInfo>> found;
  for (size_t device : devices) {
    runtime::Expected<runtime::GpuInfo> gpu =
        runtime::queryGpu(found.size(), devices.size());
    if (!gpu)
      return llvm::createStringError("device '" + machine.devices[device].name +
                                     "': " + gpu.error().message());
    found.emplace_back(device, std::move(*gpu));
  }
  return found;
}

/// Which device belongs to which process.
class RankDevices {
public:
  RankDevices(const placement::Machine &machine, const runtime::Ranks &ranks)
      : machine(machine), ranks(ranks) {}

  int32_t ownerOf(int32_t device) const {
    return ranks.ownerOf(device, machine.devices.size());
  }
  bool is(int32_t device, int32_t rank, llvm::StringRef kind) const {
    return ownerOf(device) == rank && machine.devices[device].kind == kind;
  }
  /// The first such device but \p other; none: -1.
  int32_t first(int32_t rank, llvm::StringRef kind, int32_t other = -1) const {
    for (int32_t device : llvm::seq<int32_t>(0, machine.devices.size()))
      if (device != other && is(device, rank, kind))
        return device;
    return -1;
  }
  /// Of what this measures, in this order.
  static constexpr llvm::StringRef kinds[] = {"host", "cuda"};

private:
  const placement::Machine &machine;
  const runtime::Ranks &ranks;
};

/// Between GPUs of a process, and from and to its host devices: rank 0's own
/// stand for all.
llvm::Error measureGpuLinksWithin(placement::Machine &machine,
                                  const runtime::Ranks &ranks,
                                  Listener &listener) {
  RankDevices devices(machine, ranks);
  auto all = llvm::seq<int32_t>(0, machine.devices.size());
  for (llvm::StringRef a : RankDevices::kinds)
    for (llvm::StringRef b : RankDevices::kinds) {
      int32_t from = devices.first(0, a), to = devices.first(0, b, from);
      if ((a == "host" && b == "host") || from < 0 || to < 0)
        continue;
      llvm::Expected<MeasuredLink> measured = measureLink(machine, from, to);
      if (!measured)
        return measured.takeError();
      tell(a + " -> " + b + " of a process", *measured, listener);
      for (int32_t i : all)
        for (int32_t j : all)
          if (i != j && devices.is(i, devices.ownerOf(i), a) &&
              devices.is(j, devices.ownerOf(i), b))
            setMeasured(machine, i, j, measured->link);
    }
  return llvm::Error::success();
}

/// Between the first devices of each two processes, for all of their kinds;
/// within a process, rank 0's own stands for all.
llvm::Error measureRankLinks(placement::Machine &machine,
                             const std::shared_ptr<runtime::Ranks> &ranks,
                             Listener &listener) {
  int32_t n = machine.devices.size();
  RankDevices devices(machine, *ranks);
  if (llvm::Error error = measureLinks(machine, listener).takeError())
    return error;
  if (llvm::Error error = measureGpuLinksWithin(machine, *ranks, listener))
    return error;
  // The link of two devices that may be of two processes, which goes then.
  std::optional<placement::Link> within;
  if (auto hosts = devicesWhere(machine, isHostMemory); hosts.size() > 1)
    within = machine.links[size_t(hosts[0]) * n + hosts[1]];
  auto measure = [&](int32_t a, llvm::StringRef kindOfA, int32_t b,
                     llvm::StringRef kindOfB) -> llvm::Error {
    int32_t from = devices.first(a, kindOfA), to = devices.first(b, kindOfB);
    if (from < 0 || to < 0)
      return llvm::Error::success();
    llvm::Expected<MeasuredLink> measured =
        measureLink(machine, from, to, ranks);
    if (!measured)
      return measured.takeError();
    std::string what =
        runtime::Ranks::name(a) + " - " + runtime::Ranks::name(b);
    if (kindOfA != "host" || kindOfB != "host") {
      what += (", " + kindOfA + " - " + kindOfB).str();
    } else if (within) {
      // Noise may hide all of it; no message is faster than one of a process.
      measured->link.latencyNs =
          std::max(measured->link.latencyNs, within->latencyNs);
      measured->link.bytesPerUs =
          std::min(measured->link.bytesPerUs, within->bytesPerUs);
    }
    tell(what, *measured, listener);
    for (int32_t i : llvm::seq<int32_t>(0, n))
      for (int32_t j : llvm::seq<int32_t>(0, n))
        if (devices.is(i, a, kindOfA) && devices.is(j, b, kindOfB))
          for (auto [one, other] : {std::pair(i, j), std::pair(j, i)}) {
            setMeasured(machine, one, other, measured->link);
            machine.links[size_t(one) * n + other]->lends = false;
          }
    return llvm::Error::success();
  };
  for (int32_t a = 0; a < ranks->size(); ++a)
    for (int32_t b = a + 1; b < ranks->size(); ++b)
      for (llvm::StringRef kindOfA : RankDevices::kinds)
        for (llvm::StringRef kindOfB : RankDevices::kinds)
          if (llvm::Error error = measure(a, kindOfA, b, kindOfB))
            return error;
  return llvm::Error::success();
}

/// Each pair of devices has a link of its own when each has a processor, or
/// there are GPUs; otherwise one measurement stands for all.
llvm::Expected<llvm::json::Array>
measurePairs(placement::Machine &machine, const runtime::HostInfo &host,
             const std::shared_ptr<runtime::Ranks> &ranks, Listener &listener) {
  llvm::json::Array residuals;
  int32_t n = machine.devices.size();
  if (ranks) {
    if (llvm::Error error = measureRankLinks(machine, ranks, listener))
      return std::move(error);
    return residuals;
  }
  if ((size_t(n) > host.processors.size() && !hasGpus(machine)) || n < 2) {
    if (llvm::Error error = measureLinks(machine, listener).takeError())
      return std::move(error);
    return residuals;
  }
  for (int32_t from = 0; from < n; ++from)
    for (int32_t to = 0; to < n; ++to) {
      // What waits on disk goes through host memory.
      if (from == to || isDisk(machine.devices[from]) ||
          isDisk(machine.devices[to]))
        continue;
      llvm::Expected<MeasuredLink> measured = measureLink(machine, from, to);
      if (!measured)
        return measured.takeError();
      const std::string &a = machine.devices[from].name;
      const std::string &b = machine.devices[to].name;
      tell(llvm::Twine(a) + " -> " + b, *measured, listener);
      setMeasured(machine, from, to, measured->link);
      residuals.push_back(llvm::json::Object{
          {"from", a},
          {"to", b},
          {"residual_percent", std::round(1000 * measured->residual) / 10}});
    }
  if (llvm::Error error = measureDisks(machine, listener))
    return std::move(error);
  if (llvm::Error error = measureRuntime(machine, listener).takeError())
    return std::move(error);
  return residuals;
}

/// What a person wants to know of where the numbers come from.
std::string describe(const placement::Machine &machine,
                     const runtime::HostInfo &host,
                     llvm::json::Array residuals) {
  std::map<size_t, std::string> gpus;
  if (auto found = gpusOf(machine))
    for (const auto &[device, gpu] : *found)
      gpus[device] = gpu.target();
  else
    llvm::consumeError(found.takeError());
  llvm::json::Array devices;
  for (auto [i, device] : llvm::enumerate(machine.devices)) {
    llvm::json::Object bound{{"device", device.name}};
    if (device.kind == "host")
      bound["processor"] = host.processors[i % host.processors.size()];
    else if (gpus.count(i))
      bound["gpu"] = gpus[i];
    devices.push_back(std::move(bound));
  }
  llvm::json::Array caches;
  for (const runtime::CacheInfo &cache : host.caches)
    caches.push_back(llvm::json::Object{{"level", cache.level},
                                        {"bytes", cache.bytes},
                                        {"processors", cache.processors}});
  llvm::json::Object meta{{"model", host.model},
                          {"cores", host.cores},
                          {"memory_bytes", host.memoryBytes},
                          {"caches", std::move(caches)},
                          {"bound_to", std::move(devices)}};
  if (!residuals.empty())
    meta["residuals"] = std::move(residuals);
  return llvm::formatv("{0}", llvm::json::Value(std::move(meta))).str();
}
} // namespace

void baechi::describeHost(placement::Machine &machine) {
  machine.meta = describe(machine, runtime::queryHost(), {});
}

llvm::Expected<bool> baechi::measureRuntime(placement::Machine &machine,
                                            Listener &listener) {
  runtime::Expected<runtime::StepOverheads> step = runtime::measureHostStep();
  if (!step)
    return llvm::createStringError(step.error().message());
  placement::RuntimeCosts costs{std::llround(step->stepNs),
                                std::llround(step->operatorNs),
                                std::llround(step->wakeNs)};
  costs.aloneNs = std::llround(step->aloneNs);
  setRuntime(machine, costs, runtime::queryHost().cores);
  if (step->disturbed)
    sayDisturbed("what a step and waking take", listener);
  listener.tell(llvm::formatv(
      "runtime: {0:F1} us a step, {1:F1} of one device, {2:F0} ns an operator, "
      "{3:F1} us to wake",
      step->stepNs / 1e3, step->aloneNs / 1e3, step->operatorNs,
      step->wakeNs / 1e3));
  return !step->disturbed;
}

bool baechi::takesAllCores(const placement::Machine &machine, size_t cores,
                           DevicesHere here) {
  size_t all = machine.devices.size();
  size_t onComputer = here.onComputer ? here.onComputer : all;
  size_t devices =
      onComputer > cores && here.inProcess ? here.inProcess : onComputer;
  return devices == cores &&
         llvm::all_of(machine.devices, [](const placement::Device &device) {
           return device.kind == "host";
         });
}

bool baechi::hasDeviceOf(const placement::Machine &machine,
                         llvm::StringRef kind) {
  return llvm::any_of(machine.devices, [&](const placement::Device &device) {
    return device.kind == kind;
  });
}

llvm::Expected<bool> baechi::measureLinks(placement::Machine &machine,
                                          Listener &listener) {
  llvm::SmallVector<int32_t> inMemory = devicesWhere(machine, isHostMemory);
  bool disturbed = false;
  if (inMemory.size() > 1) {
    llvm::Expected<MeasuredLink> measured =
        measureLink(machine, inMemory[0], inMemory[1]);
    if (!measured)
      return measured.takeError();
    tell("links", *measured, listener);
    setHostLinks(machine, measured->link);
    disturbed = measured->disturbed;
  }
  if (llvm::Error error = measureDisks(machine, listener))
    return std::move(error);
  llvm::Expected<bool> runtime = measureRuntime(machine, listener);
  if (!runtime)
    return runtime.takeError();
  return *runtime && !disturbed;
}

void baechi::lookAtGpus(placement::Machine &machine, bool takesMemory) {
  auto gpus = gpusOf(machine);
  if (!gpus)
    return llvm::consumeError(gpus.takeError());
  std::map<int32_t, int64_t> sharers;
  for (const auto &[device, gpu] : *gpus)
    ++sharers[gpu.number];
  size_t n = machine.devices.size();
  for (const auto &[device, gpu] : *gpus) {
    if (takesMemory)
      machine.devices[device].memory = gpu.memoryBytes / sharers[gpu.number];
    for (const auto &[other, there] : *gpus)
      if (auto &link = machine.links[device * n + other];
          link && device != other)
        link->lends = gpu.number == there.number;
  }
}

/// GPUs copy in both directions at once where they have the engines for it.
static llvm::Error queryGpus(placement::Machine &machine, Listener &listener) {
  auto gpus = gpusOf(machine);
  if (!gpus)
    return gpus.takeError();
  bool both = true;
  for (const auto &[device, gpu] : *gpus) {
    listener.tell(machine.devices[device].name + ": " + gpu.target() + ", " +
                  placement::bytesText(gpu.memoryBytes, 2) +
                  " of free memory, " + llvm::Twine(gpu.copyEngines) +
                  " copy engines");
    both &= gpu.copyEngines > 1;
  }
  if (hasGpus(machine))
    machine.linkModel =
        both ? placement::LinkModel::Duplex : placement::LinkModel::Sequential;
  return llvm::Error::success();
}

llvm::Error baechi::queryMachine(placement::Machine &machine,
                                 Listener &listener,
                                 const std::shared_ptr<runtime::Ranks> &ranks) {
  for (const placement::Device &device : machine.devices) {
    if (ranks && placement::isPool(device))
      return llvm::createStringError(
          "device '" + device.name + "' is of kind '" + device.kind +
          "'; --query-machine of several processes measures host and cuda "
          "devices");
    if (!isHostMemory(device) && !isDisk(device) && device.kind != "cuda")
      return llvm::createStringError(
          "device '" + device.name + "' is of kind '" + device.kind +
          "'; --query-machine measures host and cuda devices");
  }
  if (llvm::Error error = queryGpus(machine, listener))
    return error;
  runtime::HostInfo host = runtime::queryHost();
  listener.tell("host: " + llvm::Twine(host.cores) + " cores, " +
                placement::bytesText(host.memoryBytes, 2) + " of free memory");
  llvm::Expected<llvm::json::Array> residuals =
      measurePairs(machine, host, ranks, listener);
  if (!residuals)
    return residuals.takeError();
  machine.meta = describe(machine, host, std::move(*residuals));
  return llvm::Error::success();
}
