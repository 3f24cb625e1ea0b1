//===- MachineJson.cpp - Machine files --------------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Io/Files.h"
#include "Baechi/Placement/Model/Nodes.h"
#include "Baechi/Support/Json.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <array>
#include <map>
#include <tuple>

using namespace baechi::placement;
namespace json = baechi::support::json;
using json::Cursor;

namespace {

constexpr std::array<std::pair<LinkModel, std::string_view>, 4> linkModels{{
    {LinkModel::Unlimited, "unlimited"},
    {LinkModel::Parallel, "parallel"},
    {LinkModel::Duplex, "duplex"},
    {LinkModel::Sequential, "sequential"},
}};

/// The table of links is quadratic in the devices.
constexpr size_t maxDevices = 4096;

Link readLink(const Cursor &at) {
  auto lends = at.find("lends");
  return {at["latency_ns"].integer(), at["bytes_per_us"].integer(),
          lends && lends->boolean()};
}

std::string readKind(const Cursor &at) {
  std::string kind = at.string();
  if (kind.empty())
    at.fail("is empty: name a kind of device, such as \"host\" or \"cuda\"");
  return kind;
}

Machine readDevices(const Cursor &root) {
  Machine machine;
  Cursor devices = root["devices"];
  if (devices.size() == 0)
    devices.fail("the machine has no device: list at least one");
  if (devices.size() > maxDevices)
    devices.fail(fmt::format("holds {} devices, more than {}", devices.size(),
                             maxDevices));
  devices.forEach([&](const Cursor &at) {
    Device device;
    device.name = at["name"].string();
    at.onlyKeys({"name", "kind", "memory"});
    device.kind = readKind(at["kind"]);
    device.memory = at["memory"].integer();
    machine.devices.push_back(std::move(device));
  });
  return machine;
}

void readLinks(const Cursor &root, Machine &machine) {
  size_t n = machine.devices.size();
  std::map<std::string, size_t> index;
  for (size_t d = 0; d < n; ++d)
    index.emplace(machine.devices[d].name, d);
  machine.links.assign(n * n, std::nullopt);
  if (auto fallback = root.find("link_default")) {
    fallback->onlyKeys({"latency_ns", "bytes_per_us", "lends"});
    Link link = readLink(*fallback);
    for (size_t k = 0; k < n * n; ++k)
      if (k / n != k % n)
        machine.links[k] = link;
  }
  auto links = root.find("links");
  if (!links)
    return;
  std::vector<bool> seen(n * n, false);
  links->forEach([&](const Cursor &at) {
    at.onlyKeys({"from", "to", "latency_ns", "bytes_per_us", "lends"});
    auto device = [&](const char *key) {
      std::string name = at[key].string();
      auto it = index.find(name);
      if (it == index.end())
        at[key].fail(fmt::format("'{}' is not a device of this machine", name));
      return it->second;
    };
    size_t from = device("from"), to = device("to");
    if (from == to)
      at.fail("leads from a device to itself: remove it");
    if (seen[from * n + to])
      at.fail(fmt::format("a second link from '{}' to '{}': keep one",
                          machine.devices[from].name,
                          machine.devices[to].name));
    seen[from * n + to] = true;
    machine.links[from * n + to] = readLink(at);
  });
}

/// Nodes of equal devices, in the place of lists of devices and links.
Machine readNodes(const Cursor &root, LinkModel linkModel) {
  for (const char *key : {"devices", "links", "link_default", "staged_through"})
    if (auto other = root.find(key))
      other->fail("stands beside \"nodes\", which say what devices and links "
                  "there are: leave one of them out");
  auto count = [](const Cursor &at, int32_t most) {
    int64_t value = at.integer();
    if (value < 1 || value > most)
      at.fail(fmt::format("is {}, but must be from 1 to {}", value, most));
    return static_cast<int32_t>(value);
  };
  NodeShape shape;
  constexpr auto most = static_cast<int32_t>(maxDevices);
  shape.nodes = count(root["nodes"], most);
  shape.devicesPerNode = count(root["devices_per_node"], most / shape.nodes);
  Cursor device = root["device"];
  device.onlyKeys({"kind", "memory"});
  shape.kind = readKind(device["kind"]);
  shape.memory = device["memory"].integer();
  root["inside"].onlyKeys({"latency_ns", "bytes_per_us", "lends"});
  shape.inside = readLink(root["inside"]);
  auto between = root.find("between");
  if (!between && shape.nodes > 1)
    root["between"]; // Says that it is missing.
  if (between) {
    between->onlyKeys({"latency_ns", "bytes_per_us", "cards_per_node"});
    shape.between = readLink(*between);
    if (auto cards = between->find("cards_per_node"))
      shape.cardsPerNode = count(*cards, shape.devicesPerNode);
  }
  return machineOfNodes(shape, linkModel);
}

RuntimeCosts readRuntime(const Cursor &at) {
  at.onlyKeys({"step_ns", "operator_ns", "wake_ns", "shared_percent",
               "alone_ns", "cores"});
  auto time = [&](const char *key) {
    int64_t ns = at[key].integer();
    constexpr int64_t second = 1'000'000'000;
    if (ns < 0 || ns > second)
      at[key].fail("is not between 0 and a second");
    return ns;
  };
  RuntimeCosts costs{time("step_ns"), time("operator_ns"), time("wake_ns"),
                     at["shared_percent"].integer()};
  if (at.find("alone_ns"))
    costs.aloneNs = time("alone_ns");
  if (at.find("cores"))
    costs.cores = at["cores"].integer();
  if (costs.cores < 0 || costs.cores > 65'536)
    at["cores"].fail("is not between 0 and 65536");
  if (costs.sharedPercent < 1 || costs.sharedPercent > 10'000)
    at["shared_percent"].fail("is not between 1 and 10000");
  return costs;
}

/// The link that most pairs have becomes the file's default.
std::optional<Link> commonLink(const Machine &machine) {
  std::map<std::tuple<int64_t, int64_t, bool>, size_t> counts;
  size_t n = machine.devices.size();
  for (size_t k = 0; k < n * n; ++k) {
    if (k / n == k % n)
      continue;
    // A default would give a pair that cannot talk a link.
    if (!machine.links[k])
      return std::nullopt;
    const Link &link = *machine.links[k];
    ++counts[{link.latencyNs, link.bytesPerUs, link.lends}];
  }
  std::optional<Link> best;
  size_t most = 0;
  for (const auto &[key, count] : counts)
    if (count > most) {
      most = count;
      best = std::make_from_tuple<Link>(key);
    }
  return best;
}

using Json = nlohmann::ordered_json;

Json fieldsOf(const Link &link) {
  Json text{{"latency_ns", link.latencyNs}, {"bytes_per_us", link.bytesPerUs}};
  if (link.lends)
    text["lends"] = true;
  return text;
}

void addDevices(const Machine &machine, Json &root) {
  auto &devices = root["devices"] = Json::array();
  for (const Device &device : machine.devices)
    devices.push_back({{"name", device.name},
                       {"kind", device.kind},
                       {"memory", device.memory}});
  std::optional<Link> common = commonLink(machine);
  auto &links = root["links"] = Json::array();
  auto n = static_cast<int32_t>(machine.devices.size());
  for (int32_t from = 0; from < n; ++from)
    for (int32_t to = 0; to < n; ++to) {
      const std::optional<Link> &link = machine.link(from, to);
      if (from == to || !link || (common && *link == *common))
        continue;
      Json entry{{"from", machine.devices[from].name},
                 {"to", machine.devices[to].name}};
      entry.update(fieldsOf(*link));
      links.push_back(std::move(entry));
    }
  if (common)
    root["link_default"] = fieldsOf(*common);
}

void addNodes(const Machine &machine, Json &root) {
  NodeShape shape = shapeOf(machine);
  root["nodes"] = shape.nodes;
  root["devices_per_node"] = shape.devicesPerNode;
  root["device"] = {{"kind", shape.kind}, {"memory", shape.memory}};
  root["inside"] = fieldsOf(shape.inside);
  if (!shape.between)
    return;
  root["between"] = fieldsOf(*shape.between);
  root["between"]["cards_per_node"] = shape.cardsPerNode;
}

} // namespace

std::string_view baechi::placement::linkModelName(LinkModel model) {
  for (const auto &[value, name] : linkModels)
    if (value == model)
      return name;
  return "";
}

std::optional<LinkModel>
baechi::placement::linkModelNamed(std::string_view name) {
  for (const auto &[value, known] : linkModels)
    if (known == name)
      return value;
  return std::nullopt;
}

std::string baechi::placement::parseMachine(std::string_view text,
                                            const std::string &name,
                                            Machine &machine) {
  machine = {};
  return json::parse(text, name, "baechi-machine", {}, [&](const Cursor &root) {
    root.onlyKeys({"format", "version", "meta", "devices", "kinds", "links",
                   "link_default", "link_model", "staged_through", "runtime",
                   "nodes", "devices_per_node", "device", "inside", "between"});
    Cursor model = root["link_model"];
    auto known = linkModelNamed(model.string());
    if (!known)
      model.fail(fmt::format("'{}' is not one of unlimited, parallel, duplex, "
                             "sequential",
                             model.string()));
    if (root.find("nodes")) {
      machine = readNodes(root, *known);
    } else {
      for (const char *key :
           {"devices_per_node", "device", "inside", "between"})
        if (auto without = root.find(key))
          without->fail("is of machines of nodes, and there is no \"nodes\"");
      machine = readDevices(root);
      readLinks(root, machine);
    }
    machine.linkModel = *known;
    if (auto stage = root.find("staged_through"))
      machine.stagedThrough = stage->string();
    if (auto runtime = root.find("runtime"))
      machine.runtime = readRuntime(*runtime);
  });
}

std::string baechi::placement::readMachine(const std::string &path,
                                           Machine &machine) {
  std::string text;
  std::string error = readTextFile(path, text);
  return error.empty() ? parseMachine(text, path, machine) : error;
}

std::string baechi::placement::formatMachine(const Machine &machine,
                                             std::string &text) try {
  Json root{{"format", "baechi-machine"}, {"version", 1}};
  if (!machine.meta.empty())
    root["meta"] = Json::parse(machine.meta);
  if (machine.nodes)
    addNodes(machine, root);
  else
    addDevices(machine, root);
  root["link_model"] = linkModelName(machine.linkModel);
  if (machine.stagedThrough)
    root["staged_through"] = *machine.stagedThrough;
  if (machine.runtime)
    root["runtime"] = {{"step_ns", machine.runtime->stepNs},
                       {"operator_ns", machine.runtime->operatorNs},
                       {"wake_ns", machine.runtime->wakeNs},
                       {"shared_percent", machine.runtime->sharedPercent}};
  if (machine.runtime && machine.runtime->aloneNs >= 0)
    root["runtime"]["alone_ns"] = machine.runtime->aloneNs;
  if (machine.runtime && machine.runtime->cores > 0)
    root["runtime"]["cores"] = machine.runtime->cores;
  text = root.dump(1) + "\n";
  return "";
} catch (const std::exception &e) {
  return fmt::format("cannot write: {}", e.what());
}

std::string baechi::placement::writeMachine(const std::string &path,
                                            const Machine &machine) {
  std::string text;
  std::string error = formatMachine(machine, text);
  return error.empty() ? writeTextFile(path, text) : path + ": " + error;
}
