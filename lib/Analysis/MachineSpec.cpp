//===- MachineSpec.cpp - Machines: names, files, attributes -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/MachineSpec.h"
#include "Baechi/Placement/Io.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include <unistd.h>

using namespace mlir;
using namespace baechi;

namespace {
/// Links of a short form: what copies between arenas of one machine's memory
/// typically do. `baechi-run --query-machine` measures them.
constexpr int64_t assumedLatencyNs = 2000;
constexpr int64_t assumedBytesPerUs = 8000;
/// More devices than this in a short form is a typing error.
constexpr int64_t mostDevices = 4096;

int64_t machineMemory() {
  long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGE_SIZE);
  return pages > 0 && size > 0 ? int64_t(pages) * size : int64_t(1) << 33;
}

std::optional<placement::Machine> readShortForm(StringRef spec,
                                                std::string &error) {
  auto fail = [&](const Twine &why) {
    error = ("machine '" + spec + "': " + why +
             "; write KIND:N or KIND:N@SIZE, like host:2 or host:4@2GiB, or "
             "the path of a machine file")
                .str();
    return std::nullopt;
  };
  auto [kind, rest] = spec.split(':');
  auto [number, size] = rest.split('@');
  int64_t n;
  if (!spec.contains(':')) {
    StringRef word = spec.take_while(llvm::isAlpha);
    StringRef number = spec.drop_front(word.size());
    if (number.empty())
      return fail("no number of devices");
    return fail("no ':' before the number of devices (did you mean '" + word +
                ":" + number + "'?)");
  }
  if (kind != "host" && kind != "cuda") {
    StringRef meant = llvm::StringSwitch<StringRef>(kind.lower())
                          .Cases({"gpu", "nvidia", "cuda"}, "cuda")
                          .Cases({"cpu", "host"}, "host")
                          .Default("");
    if (meant.empty())
      meant = kind.edit_distance("host") <= 2   ? "host"
              : kind.edit_distance("cuda") <= 2 ? "cuda"
                                                : "";
    return fail(
        "unknown kind '" + kind + "' (known: host, cuda" +
        (meant.empty() ? "" : "; did you mean '" + meant + ":" + rest + "'?") +
        ")");
  }
  if (number.getAsInteger(10, n) || n < 1 || n > mostDevices)
    return fail("'" + number + "' is not a number of devices from 1 to " +
                Twine(mostDevices));
  int64_t memory = machineMemory() / n;
  if (rest.contains('@')) {
    std::optional<int64_t> bytes = parseBytes(size);
    if (!bytes)
      return fail("'" + size + "' is not a size (such as 512MiB, 1.5GiB, 2GB)");
    memory = *bytes;
  }
  placement::Machine machine;
  for (int64_t i = 0; i < n; ++i)
    machine.devices.push_back({(kind + Twine(i)).str(), kind.str(), memory});
  machine.links.assign(n * n,
                       placement::Link{assumedLatencyNs, assumedBytesPerUs});
  machine.linkModel = placement::LinkModel::Sequential;
  return machine;
}
} // namespace

std::optional<placement::Machine> baechi::readMachineSpec(StringRef spec,
                                                          std::string &error) {
  bool shortForm = spec.contains(':') && !spec.ends_with(".json") &&
                   !spec.ends_with(".json.xz");
  bool bareKind =
      (spec == "host" || spec == "cuda") && !llvm::sys::fs::exists(spec);
  // host2, cpu4@1GiB: where no such file is, a short form was meant.
  StringRef word = spec.take_while(llvm::isAlpha);
  bool forgot =
      (word == "host" || word == "cuda" || word == "cpu" || word == "gpu") &&
      !spec.contains(':') && !llvm::sys::fs::exists(spec) &&
      spec.drop_front(word.size()).find_first_not_of("0123456789.@KMGTiB") ==
          StringRef::npos;
  if (spec.empty() || shortForm || bareKind || forgot)
    return readShortForm(spec, error);
  placement::Machine machine;
  error = placement::readMachine(spec.str(), machine);
  if (!error.empty())
    return std::nullopt;
  return machine;
}

std::optional<int64_t> baechi::parseBytes(StringRef text) {
  // The longest first: every unit ends with the last one.
  static constexpr std::pair<StringLiteral, int64_t> units[] = {
      {"KiB", int64_t(1) << 10},
      {"MiB", int64_t(1) << 20},
      {"GiB", int64_t(1) << 30},
      {"TiB", int64_t(1) << 40},
      {"KB", 1'000},
      {"kB", 1'000},
      {"MB", 1'000'000},
      {"GB", 1'000'000'000},
      {"TB", 1'000'000'000'000},
      {"B", 1}};
  int64_t unit = 1;
  for (auto [suffix, bytes] : units)
    if (text.consume_back(suffix)) {
      unit = bytes;
      break;
    }
  double number;
  if (text.trim().getAsDouble(number) || !(number >= 0) || number * unit > 9e18)
    return std::nullopt;
  return static_cast<int64_t>(number * unit);
}

std::string baechi::formatBytes(int64_t bytes) {
  static constexpr const char *units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double number = bytes;
  unsigned unit = 0;
  while (number >= 1024 && unit + 1 < std::size(units)) {
    number /= 1024;
    ++unit;
  }
  return llvm::formatv(unit ? "{0:f2} {1}" : "{0:f0} {1}", number, units[unit])
      .str();
}

MachineAttr baechi::toAttr(MLIRContext *context,
                           const placement::Machine &machine) {
  SmallVector<DeviceSpecAttr> devices;
  for (const placement::Device &device : machine.devices)
    devices.push_back(
        DeviceSpecAttr::get(context, device.name, device.kind, device.memory));
  // Links that are all the same become the default.
  SmallVector<LinkAttr> links;
  bool uniform = true;
  const placement::Link *first = nullptr;
  int64_t n = machine.devices.size();
  for (int64_t from = 0; from < n; ++from)
    for (int64_t to = 0; to < n; ++to) {
      if (from == to)
        continue;
      const std::optional<placement::Link> &link = machine.link(from, to);
      if (!link) {
        uniform = false;
        continue;
      }
      if (!first)
        first = &*link;
      uniform &= link->latencyNs == first->latencyNs &&
                 link->bytesPerUs == first->bytesPerUs;
      links.push_back(LinkAttr::get(context, machine.devices[from].name,
                                    machine.devices[to].name, link->latencyNs,
                                    link->bytesPerUs));
    }
  LinkAttr linkDefault;
  if (uniform && first) {
    linkDefault =
        LinkAttr::get(context, "", "", first->latencyNs, first->bytesPerUs);
    links.clear();
  }
  StringAttr stagedThrough;
  if (machine.stagedThrough)
    stagedThrough = StringAttr::get(context, *machine.stagedThrough);
  RuntimeCostsAttr runtime;
  if (const std::optional<placement::RuntimeCosts> &costs = machine.runtime)
    runtime = RuntimeCostsAttr::get(context, costs->stepNs, costs->operatorNs,
                                    costs->wakeNs, costs->sharedPercent);
  return MachineAttr::get(context, devices, links, linkDefault,
                          static_cast<LinkModel>(machine.linkModel),
                          stagedThrough, runtime);
}

placement::Machine baechi::fromAttr(MachineAttr attr) {
  placement::Machine machine;
  llvm::StringMap<int64_t> position;
  for (DeviceSpecAttr device : attr.getDevices()) {
    position[device.getName()] = machine.devices.size();
    machine.devices.push_back(
        {device.getName().str(), device.getKind().str(), device.getMemory()});
  }
  int64_t n = machine.devices.size();
  machine.links.resize(n * n);
  if (LinkAttr link = attr.getLinkDefault())
    for (int64_t i = 0; i < n * n; ++i)
      if (i / n != i % n)
        machine.links[i] =
            placement::Link{link.getLatencyNs(), link.getBytesPerUs()};
  for (LinkAttr link : attr.getLinks())
    machine.links[position[link.getFrom()] * n + position[link.getTo()]] =
        placement::Link{link.getLatencyNs(), link.getBytesPerUs()};
  machine.linkModel = static_cast<placement::LinkModel>(attr.getLinkModel());
  if (StringAttr kind = attr.getStagedThrough())
    machine.stagedThrough = kind.str();
  if (RuntimeCostsAttr costs = attr.getRuntime())
    machine.runtime =
        placement::RuntimeCosts{costs.getStepNs(), costs.getOperatorNs(),
                                costs.getWakeNs(), costs.getSharedPercent()};
  return machine;
}

std::optional<placement::Machine> baechi::machineOf(ModuleOp module,
                                                    StringRef spec) {
  if (!spec.empty()) {
    std::string error;
    std::optional<placement::Machine> machine = readMachineSpec(spec, error);
    if (!machine) {
      emitError(module.getLoc()) << error;
      return std::nullopt;
    }
    module->setAttr(BaechiDialect::kMachine,
                    toAttr(module.getContext(), *machine));
    return machine;
  }
  if (auto attr = module->getAttrOfType<MachineAttr>(BaechiDialect::kMachine))
    return fromAttr(attr);
  emitError(module.getLoc())
      << "no machine: give the pass machine=host:2 or a machine "
         "file, or the module a 'baechi.machine' attribute";
  return std::nullopt;
}
