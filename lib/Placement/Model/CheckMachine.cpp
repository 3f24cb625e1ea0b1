//===- CheckMachine.cpp - What is wrong with a machine ----------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Model/CheckMachine.h"
#include "Baechi/Placement/Model/Pool.h"

#include <fmt/format.h>

#include <set>

using namespace baechi::placement;

namespace {

class MachineChecker {
public:
  explicit MachineChecker(const Machine &machine) : machine(machine) {}

  std::vector<std::string> run() {
    checkDevices();
    checkLinks();
    return std::move(errors);
  }

private:
  template <typename... Args>
  void error(fmt::format_string<Args...> format, Args &&...args) {
    errors.push_back(fmt::format(format, std::forward<Args>(args)...));
  }

  void checkDevices() {
    if (machine.devices.empty())
      error("the machine has no device: list at least one");
    else if (isPool(machine.devices.front()))
      error("device '{}' is a pool: list a device that computes before it",
            machine.devices.front().name);
    std::set<std::string> names;
    for (size_t d = 0; d < machine.devices.size(); ++d) {
      const Device &device = machine.devices[d];
      if (device.name.empty())
        error("device {} has no name: give it one", d);
      else if (!names.insert(device.name).second)
        error("two devices are called '{}': give each its own name",
              device.name);
      if (device.memory < 0)
        error("device '{}' has a memory of {} bytes: it must be 0 or more",
              device.name, device.memory);
    }
  }

  /// The numbers of a link, and whether devices of these kinds can lend.
  void checkLink(const Link &link, const Device &from, const Device &to,
                 const auto &name) {
    if (link.latencyNs < 0)
      error("{} has a latency of {} ns: it must be 0 or more", name(),
            link.latencyNs);
    if (link.bytesPerUs <= 0)
      error("{} moves {} bytes per us: it must be 1 or more", name(),
            link.bytesPerUs);
    // Whether devices of kind 'cuda' lie on one GPU is seen at run time.
    bool areOnGpus = from.kind == "cuda" && to.kind == "cuda";
    for (const Device *end : {&from, &to})
      if (link.lends && end->kind != "host" && !areOnGpus) {
        error("{} lends, but '{}' is of kind '{}': only devices of kind "
              "'host', or of kind 'cuda' on one GPU, share an address space; "
              "give their link under 'links', without it",
              name(), end->name, end->kind);
        break;
      }
  }

  void checkNodes() {
    const Nodes &nodes = *machine.nodes;
    size_t n = machine.devices.size();
    if (nodes.node.size() != n || nodes.card.size() != n ||
        !(nodes.side.empty() || nodes.side.size() == n)) {
      error("the machine has {} devices, and nodes of {} and cards of {}: each "
            "device needs both",
            n, nodes.node.size(), nodes.card.size());
      return;
    }
    for (int32_t card : nodes.card)
      if (card < 0 || card >= nodes.numCards) {
        error("there is no network card {}: the machine has {}", card,
              nodes.numCards);
        return;
      }
    if (n == 0)
      return;
    const Device &any = machine.devices.front();
    for (const auto &[link, name] :
         {std::pair(&nodes.inside, "the link inside nodes"),
          std::pair(&nodes.between, "the link between nodes"),
          std::pair(&nodes.ring, "the link to the next replica")})
      if (link->has_value())
        checkLink(**link, any, any, [&] { return name; });
    if (nodes.between && nodes.between->lends)
      error("the link between nodes lends: different nodes share no memory");
  }

  void checkLinks() {
    if (machine.nodes) {
      checkNodes();
      return;
    }
    size_t n = machine.devices.size();
    if (machine.links.size() != n * n) {
      error("the machine has {} entries in its link table for {} devices: it "
            "needs {}",
            machine.links.size(), n, n * n);
      return;
    }
    for (size_t from = 0; from < n; ++from)
      for (size_t to = 0; to < n; ++to) {
        const std::optional<Link> &link = machine.links[from * n + to];
        if (from == to || !link)
          continue;
        checkLink(*link, machine.devices[from], machine.devices[to], [&] {
          return fmt::format("the link from '{}' to '{}'",
                             machine.devices[from].name,
                             machine.devices[to].name);
        });
      }
  }

  const Machine &machine;
  std::vector<std::string> errors;
};

} // namespace

std::vector<std::string>
baechi::placement::checkMachine(const Machine &machine) {
  return MachineChecker(machine).run();
}
