//===- Load.cpp - What else a machine does --------------------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Runtime/Load.h"
#include "Baechi/Runtime/Machine.h"

#include <algorithm>
#include <ctime>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <unistd.h>

using namespace baechi::runtime;

static double nowNs(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return double(now.tv_sec) * 1e9 + double(now.tv_nsec);
}

std::optional<double>
baechi::runtime::busySeconds(std::string_view stat,
                             const std::vector<int> &processors,
                             double ticksPerSecond) {
  std::istringstream lines{std::string(stat)};
  double ticks = 0;
  size_t found = 0;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    if (name.size() < 4 || name.compare(0, 3, "cpu") != 0 ||
        !std::all_of(name.begin() + 3, name.end(),
                     [](char c) { return c >= '0' && c <= '9'; }) ||
        std::find(processors.begin(), processors.end(),
                  std::stoi(name.substr(3))) == processors.end())
      continue;
    // user, nice, system, idle, iowait, irq, softirq, steal; guests are users.
    std::vector<double> times(std::istream_iterator<double>(words), {});
    times.resize(8);
    ticks += times[0] + times[1] + times[2] + times[5] + times[6] + times[7];
    ++found;
  }
  if (found < processors.size())
    return std::nullopt;
  return ticks / ticksPerSecond;
}

static std::optional<double> busyNow(const std::vector<int> &processors) {
  std::ifstream file("/proc/stat");
  std::string text(std::istreambuf_iterator<char>(file), {});
  return busySeconds(text, processors, double(sysconf(_SC_CLK_TCK)));
}

void LoadWatch::begin() {
  processors = queryHost().processors;
  busyBefore = busyNow(processors);
  ownNs = nowNs(CLOCK_PROCESS_CPUTIME_ID);
  startNs = nowNs(CLOCK_MONOTONIC);
}

std::optional<double> LoadWatch::others() const {
  // The system counts in hundredths of a second.
  constexpr double shortest = 0.2;
  double seconds = (nowNs(CLOCK_MONOTONIC) - startNs) / 1e9;
  std::optional<double> busy = busyNow(processors);
  if (!busyBefore || !busy || seconds < shortest)
    return std::nullopt;
  double own = (nowNs(CLOCK_PROCESS_CPUTIME_ID) - ownNs) / 1e9;
  return std::max(0.0, *busy - *busyBefore - own) / seconds;
}

bool LoadWatch::isDisturbed(size_t needed) const {
  std::optional<double> used = others();
  return used && isCrowded(*used, processors.size(), needed);
}

bool baechi::runtime::isCrowded(double others, size_t processors,
                                size_t needed) {
  constexpr double always = 0.1;
  double left = double(processors) - others;
  return left < double(std::min(needed, processors)) - always;
}
