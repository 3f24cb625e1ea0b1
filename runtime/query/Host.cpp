//===- Host.cpp - What the host offers ------------------------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Runtime/Machine.h"
#include "query/ControlGroup.h"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <sstream>
#include <string>
#include <thread>

using namespace baechi::runtime;

/// The processors of this process's affinity mask. At least one.
static std::vector<int> allowedProcessors() {
  std::vector<int> processors;
  // The kernel's mask may be larger than any size guessed: grow until it fits.
  for (int capacity = 1024; capacity <= 1 << 20; capacity *= 2) {
    cpu_set_t *set = CPU_ALLOC(capacity);
    size_t bytes = CPU_ALLOC_SIZE(capacity);
    int failed = sched_getaffinity(0, bytes, set);
    int reason = errno;
    for (int i = 0; !failed && i < capacity; ++i)
      if (CPU_ISSET_S(i, bytes, set))
        processors.push_back(i);
    CPU_FREE(set);
    if (!failed || reason != EINVAL)
      break;
  }
  if (processors.empty())
    processors.push_back(0);
  return processors;
}

/// Whether the processor is the first of its physical core, which is all of
/// them where the kernel does not say.
static bool firstOfItsCore(int processor) {
  std::ifstream file("/sys/devices/system/cpu/cpu" + std::to_string(processor) +
                     "/topology/thread_siblings_list");
  int first = processor;
  file >> first;
  return first == processor;
}

/// MemAvailable of /proc/meminfo, in bytes.
static int64_t availableMemory() {
  std::ifstream file("/proc/meminfo");
  std::string key;
  int64_t kibibytes = 0;
  for (std::string rest; file >> key >> kibibytes; std::getline(file, rest))
    if (key == "MemAvailable:")
      return kibibytes * 1024;
  return 0;
}

/// What /proc/cpuinfo says of the first processor by one of these names; all
/// processors have the same. "flags\t\t: fpu vme ...", on Arm "Features\t: fp".
static std::string processorInfo(std::initializer_list<const char *> names) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    for (const char *name : names)
      if (size_t colon = line.find(':');
          colon != line.npos && line.rfind(name, 0) == 0)
        return line.substr(std::min(colon + 2, line.size()));
  return "";
}

static std::vector<std::string> processorExtensions() {
  std::istringstream words(processorInfo({"flags", "Features"}));
  std::vector<std::string> extensions{std::istream_iterator<std::string>(words),
                                      {}};
  std::sort(extensions.begin(), extensions.end());
  return extensions;
}

/// The caches that the system lists for these processors.
static std::vector<CacheInfo> dataCaches(const std::vector<int> &processors) {
  std::vector<CacheInfo> caches;
  for (int processor : processors)
    for (int index = 0; index < 10; ++index) {
      std::string folder = "/sys/devices/system/cpu/cpu" +
                           std::to_string(processor) + "/cache/index" +
                           std::to_string(index) + "/";
      auto read = [&](const char *name) {
        std::string word;
        std::ifstream(folder + name) >> word;
        return word;
      };
      std::string type = read("type"), level = read("level");
      if (level.empty() || type == "Instruction")
        continue;
      CacheInfo cache;
      cache.level = int(std::strtol(level.c_str(), nullptr, 10));
      cache.bytes =
          std::strtoll(read("size").c_str(), nullptr, 10) * 1024; // "1024K"
      cache.processors = read("shared_cpu_list");
      if (std::none_of(caches.begin(), caches.end(), [&](const CacheInfo &c) {
            return c.level == cache.level && c.processors == cache.processors;
          }))
        caches.push_back(std::move(cache));
    }
  std::stable_sort(
      caches.begin(), caches.end(),
      [](const CacheInfo &a, const CacheInfo &b) { return a.level < b.level; });
  return caches;
}

HostInfo baechi::runtime::queryHost() {
  HostInfo host;
  std::vector<int> siblings;
  for (int processor : allowedProcessors())
    (firstOfItsCore(processor) ? host.processors : siblings)
        .push_back(processor);
  host.processors.insert(host.processors.end(), siblings.begin(),
                         siblings.end());
  ControlGroupLimits limits = queryControlGroups();
  host.cores = static_cast<int32_t>(host.processors.size());
  if (limits.cores)
    host.cores = std::clamp(static_cast<int32_t>(std::ceil(*limits.cores)), 1,
                            host.cores);
  host.memoryBytes = availableMemory();
  host.extensions = processorExtensions();
  host.model = processorInfo({"model name"});
  host.caches = dataCaches(host.processors);
  if (limits.memoryBytes)
    host.memoryBytes = std::min(host.memoryBytes, *limits.memoryBytes);
  return host;
}
