//===- ControlGroup.cpp - Limits of control groups ------------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "query/ControlGroup.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

using namespace baechi::runtime;
namespace fs = std::filesystem;

/// The number at the start of a file; nothing for "max" or no file.
static std::optional<int64_t> readNumber(const fs::path &path) {
  std::ifstream file(path);
  int64_t number;
  if (file >> number)
    return number;
  return std::nullopt;
}

/// The value after `key` in a file of "key value" lines, else 0.
static int64_t readValue(const fs::path &path, const std::string &key) {
  std::ifstream file(path);
  std::string name;
  for (int64_t value; file >> name >> value;)
    if (name == key)
      return value;
  return 0;
}

template <typename T> static void tighten(std::optional<T> &limit, T value) {
  limit = limit ? std::min(*limit, value) : value;
}

/// What a group leaves of its memory. Cached file pages that nobody used of
/// late count as free, as they do in MemAvailable.
static void limitMemory(ControlGroupLimits &limits, const fs::path &group,
                        const char *limitFile, const char *usageFile,
                        const char *cacheKey) {
  std::optional<int64_t> limit = readNumber(group / limitFile);
  std::optional<int64_t> usage = readNumber(group / usageFile);
  if (!limit || !usage)
    return;
  int64_t used = *usage - readValue(group / "memory.stat", cacheKey);
  tighten(limits.memoryBytes, std::max<int64_t>(0, *limit - used));
}

static void limitCores(ControlGroupLimits &limits, std::optional<int64_t> quota,
                       std::optional<int64_t> period) {
  if (quota && period && *quota > 0 && *period > 0)
    tighten(limits.cores, double(*quota) / double(*period));
}

static void readVersion2(ControlGroupLimits &limits, const fs::path &group) {
  limitMemory(limits, group, "memory.max", "memory.current", "inactive_file");
  std::ifstream file(group / "cpu.max");
  int64_t quota, period;
  if (file >> quota >> period)
    limitCores(limits, quota, period);
}

static void readVersion1Memory(ControlGroupLimits &limits,
                               const fs::path &group) {
  limitMemory(limits, group, "memory.limit_in_bytes", "memory.usage_in_bytes",
              "total_inactive_file");
}

static void readVersion1Cpu(ControlGroupLimits &limits, const fs::path &group) {
  limitCores(limits, readNumber(group / "cpu.cfs_quota_us"),
             readNumber(group / "cpu.cfs_period_us"));
}

/// Applies `read` to a group and all above it.
template <typename Read>
static void walkUp(ControlGroupLimits &limits, const fs::path &hierarchy,
                   const fs::path &group, Read read) {
  for (fs::path at = group.relative_path();; at = at.parent_path()) {
    read(limits, hierarchy / at);
    if (at.empty())
      return;
  }
}

ControlGroupLimits baechi::runtime::queryControlGroups(const fs::path &root) {
  ControlGroupLimits limits;
  fs::path base = root / "sys/fs/cgroup";
  std::ifstream groups(root / "proc/self/cgroup");
  // Each line is "hierarchy:controller,controller:/path"; version 2 names no
  // controllers.
  for (std::string line; std::getline(groups, line);) {
    size_t first = line.find(':');
    size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos)
      continue;
    std::string controllers = line.substr(first + 1, second - first - 1);
    fs::path group = line.substr(second + 1);
    if (controllers.empty()) {
      for (const fs::path &hierarchy : {base, base / "unified"})
        walkUp(limits, hierarchy, group, readVersion2);
      continue;
    }
    std::istringstream names(controllers);
    for (std::string name; std::getline(names, name, ',');)
      if (name == "memory")
        walkUp(limits, base / "memory", group, readVersion1Memory);
      else if (name == "cpu")
        walkUp(limits, base / "cpu", group, readVersion1Cpu);
  }
  return limits;
}
