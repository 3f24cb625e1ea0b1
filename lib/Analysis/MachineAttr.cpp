//===- MachineAttr.cpp - Machines as attributes ---------------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Analysis/MachineAttr.h"
#include "Baechi/Placement/Io/Files.h"
#include "Baechi/Placement/Model/Nodes.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace baechi;

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
      uniform &= *link == *first;
      links.push_back(LinkAttr::get(context, machine.devices[from].name,
                                    machine.devices[to].name, link->latencyNs,
                                    link->bytesPerUs, link->lends));
    }
  LinkAttr linkDefault;
  if (uniform && first) {
    linkDefault = LinkAttr::get(context, "", "", first->latencyNs,
                                first->bytesPerUs, first->lends);
    links.clear();
  }
  StringAttr stagedThrough;
  if (machine.stagedThrough)
    stagedThrough = StringAttr::get(context, *machine.stagedThrough);
  RuntimeCostsAttr runtime;
  if (const std::optional<placement::RuntimeCosts> &costs = machine.runtime)
    runtime = RuntimeCostsAttr::get(context, costs->stepNs, costs->operatorNs,
                                    costs->wakeNs, costs->sharedPercent,
                                    costs->aloneNs, costs->cores);
  return MachineAttr::get(context, devices, links, linkDefault,
                          static_cast<LinkModel>(machine.linkModel),
                          stagedThrough, runtime);
}

static placement::Link toLink(LinkAttr link) {
  return {link.getLatencyNs(), link.getBytesPerUs(), link.getLends()};
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
        machine.links[i] = toLink(link);
  for (LinkAttr link : attr.getLinks())
    machine.links[position[link.getFrom()] * n + position[link.getTo()]] =
        toLink(link);
  machine.linkModel = static_cast<placement::LinkModel>(attr.getLinkModel());
  if (StringAttr kind = attr.getStagedThrough())
    machine.stagedThrough = kind.str();
  if (RuntimeCostsAttr costs = attr.getRuntime())
    machine.runtime = placement::RuntimeCosts{
        costs.getStepNs(),        costs.getOperatorNs(), costs.getWakeNs(),
        costs.getSharedPercent(), costs.getAloneNs(),    costs.getCores()};
  return machine;
}

std::optional<placement::Machine> baechi::machineOf(ModuleOp module,
                                                    StringRef spec) {
  if (!spec.empty()) {
    placement::Machine machine;
    if (std::string error = placement::readMachineSpec(spec.str(), machine);
        !error.empty()) {
      emitError(module.getLoc()) << error;
      return std::nullopt;
    }
    if (machine.nodes) {
      emitError(module.getLoc())
          << spec << ": " << placement::nodesAreForPlanning;
      return std::nullopt;
    }
    module->setAttr(BaechiDialect::kMachine,
                    toAttr(module.getContext(), machine));
    return machine;
  }
  if (auto attr = module->getAttrOfType<MachineAttr>(BaechiDialect::kMachine))
    return fromAttr(attr);
  emitError(module.getLoc())
      << "no machine: give the pass machine=host:2 or a machine "
         "file, or the module a 'baechi.machine' attribute";
  return std::nullopt;
}
