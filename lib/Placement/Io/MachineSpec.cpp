//===- MachineSpec.cpp - Machines by a short form or a file ---------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Placement/Io/Files.h"
#include "Baechi/Placement/Model/Pool.h"
#include "Baechi/Placement/Model/Text.h"
#include "Model/CheckMachine.h"

#include <fmt/format.h>

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>

using namespace baechi::placement;

namespace {
/// Links of a short form: what copies between arenas of one machine's memory
/// typically do. `baechi-run --query-machine` measures them.
constexpr int64_t assumedLatencyNs = 2000;
constexpr int64_t assumedBytesPerUs = 8000;
/// Of a file: one SSD's.
constexpr Link assumedDiskLink = {50'000, 1000, false};
/// More devices than this in a short form is a typing error.
constexpr int64_t mostDevices = 4096;
/// Of all devices together, so that sums of their memory are numbers.
constexpr double mostMemory = 0x1p62;

int64_t machineMemory() {
  long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGE_SIZE);
  return pages > 0 && size > 0 ? int64_t(pages) * size : int64_t(1) << 33;
}

/// What is before the first \p separator, and what is after it.
std::pair<std::string, std::string> split(const std::string &text,
                                          char separator) {
  size_t at = text.find(separator);
  return {text.substr(0, at),
          at == std::string::npos ? "" : text.substr(at + 1)};
}

/// The letters that a text begins with.
std::string wordOf(const std::string &text) {
  auto end = std::find_if(text.begin(), text.end(),
                          [](unsigned char c) { return !std::isalpha(c); });
  return {text.begin(), end};
}

/// The kind that a wrong one stands for; empty: none is near.
std::string meantKind(std::string kind) {
  auto isNear = [&](const char *known) {
    return editDistance(kind, known, 3) <= 2;
  };
  std::string lower = kind;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  if (lower == "gpu" || lower == "nvidia" || lower == "cuda")
    return "cuda";
  if (lower == "cpu" || lower == "host" || isNear("host"))
    return "host";
  return isNear("cuda") ? "cuda" : "";
}

/// A device beside the others that shares no address with them: what it holds
/// is copied.
void addPool(Machine &machine, const std::string &kind, int64_t bytes) {
  size_t n = machine.devices.size();
  std::vector<std::optional<Link>> links;
  for (size_t from = 0; from <= n; ++from)
    for (size_t to = 0; to <= n; ++to)
      links.push_back(from < n && to < n ? machine.links[from * n + to]
                      : kind == kDisk
                          ? assumedDiskLink
                          : Link{assumedLatencyNs, assumedBytesPerUs, false});
  machine.links = std::move(links);
  machine.devices.push_back({kind + "0", kind, bytes});
}

std::string readShortForm(const std::string &spec, Machine &machine) {
  auto fail = [&](const std::string &why) {
    return fmt::format("machine '{}': {}; write KIND:N or KIND:N@SIZE, like "
                       "host:2 or host:4@2GiB, or the path of a machine file",
                       spec, why);
  };
  auto [computing, beside] = split(spec, '+');
  std::vector<std::pair<std::string, int64_t>> pools;
  for (bool more = spec.find('+') != std::string::npos; more;) {
    more = beside.find('+') != std::string::npos;
    auto [one, rest] = split(beside, '+');
    auto [word, size] = split(one, ':');
    std::optional<int64_t> bytes = parseBytes(size);
    if (!isPoolKind(word) || !bytes)
      return fail(fmt::format("'{}' is no memory beside devices, such as "
                              "pool:4GiB or disk:40GiB",
                              one));
    if (!pools.empty() &&
        (pools.size() > 1 || pools[0].first != kPool || word != kDisk))
      return fail(fmt::format("'{}' stands behind another memory; at most a "
                              "pool and then a disk can stand beside devices",
                              one));
    pools.emplace_back(word, *bytes);
    beside = rest;
  }
  auto [kind, rest] = split(computing, ':');
  auto [number, size] = split(rest, '@');
  if (computing.find(':') == std::string::npos) {
    std::string word = wordOf(computing),
                digits = computing.substr(word.size());
    if (digits.empty())
      return fail("no number of devices");
    return fail(fmt::format("no ':' before the number of devices (did you mean "
                            "'{}:{}'?)",
                            word, digits));
  }
  if (kind != "host" && kind != "cuda") {
    std::string meant = meantKind(kind);
    if (isPoolKind(kind))
      return fail(fmt::format("a {0} alone computes nothing (host:1+{0}:4GiB "
                              "has a device that does)",
                              kind));
    return fail(fmt::format(
        "unknown kind '{}' (known: host, cuda{})", kind,
        meant.empty() ? ""
                      : fmt::format("; did you mean '{}:{}'?", meant, rest)));
  }
  int64_t n = 0;
  const char *end = number.data() + number.size();
  auto [after, wrong] = std::from_chars(number.data(), end, n);
  if (wrong != std::errc() || after != end || n < 1 || n > mostDevices)
    return fail(fmt::format("'{}' is not a number of devices from 1 to {}",
                            number, mostDevices));
  int64_t memory = machineMemory() / n;
  if (rest.find('@') != std::string::npos) {
    std::optional<int64_t> bytes = parseBytes(size);
    if (!bytes)
      return fail(fmt::format(
          "'{}' is not a size (such as 512MiB, 1.5GiB, 2GB)", size));
    if (*bytes == 0)
      return fail(fmt::format("devices of '{}' hold nothing: give more", size));
    memory = *bytes;
  }
  machine = {};
  for (int64_t i = 0; i < n; ++i)
    machine.devices.push_back({fmt::format("{}{}", kind, i), kind, memory});
  machine.links.assign(
      n * n, Link{assumedLatencyNs, assumedBytesPerUs, kind == "host"});
  machine.linkModel = LinkModel::Sequential;
  for (const auto &[pool, bytes] : pools)
    addPool(machine, pool, bytes);
  double all = 0;
  for (const Device &device : machine.devices)
    all += static_cast<double>(device.memory);
  if (all > mostMemory)
    return fail(fmt::format("the devices hold {} together, of at most {}",
                            bytesText(all, 2), bytesText(mostMemory, 2)));
  return "";
}
} // namespace

std::string baechi::placement::readMachineSpec(const std::string &spec,
                                               Machine &machine) {
  std::error_code ignored;
  bool isFile = std::filesystem::exists(spec, ignored);
  bool shortForm = spec.find(':') != std::string::npos &&
                   !spec.ends_with(".json") && !spec.ends_with(".json.xz");
  // host2, cpu4@1GiB: where no such file is, a short form was meant.
  std::string word = wordOf(spec);
  bool forgot =
      (word == "host" || word == "cuda" || word == "cpu" || word == "gpu") &&
      !isFile &&
      spec.find_first_not_of("0123456789.@KMGTPEiB", word.size()) ==
          std::string::npos;
  if (spec.empty() || shortForm || forgot)
    return readShortForm(spec, machine);
  std::string error = readMachine(spec, machine);
  if (!error.empty())
    return error;
  // Here the file is known, which later errors cannot name.
  std::vector<std::string> wrong = checkMachine(machine);
  return wrong.empty() ? "" : spec + ": " + wrong.front();
}
