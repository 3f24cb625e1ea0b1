//===- Admission.cpp - What a program needs of the machine -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "session/Admission.h"

#include <algorithm>

using namespace baechi::runtime;

Error baechi::runtime::checkMemory(const Program &program,
                                   const std::vector<const DriverKind *> &kinds,
                                   const std::map<std::string, int64_t> &limits,
                                   int64_t available) {
  for (const auto &[name, limit] : limits)
    if (std::none_of(program.devices.begin(), program.devices.end(),
                     [&](const DeviceInfo &d) { return d.name == name; }))
      return Error("a memory limit is given for device " + name +
                   ", which the program does not have");
  int64_t total = 0;
  for (size_t i = 0; i < program.devices.size(); ++i) {
    const DeviceInfo &device = program.devices[i];
    auto given = limits.find(device.name);
    int64_t limit = given == limits.end() ? device.memory : given->second;
    if (device.arenaBytes > limit)
      return Error("device " + device.name + ": the program needs " +
                   std::to_string(device.arenaBytes) + " bytes, the limit is " +
                   std::to_string(limit));
    if (kinds[i]->memory == Memory::Host &&
        __builtin_add_overflow(total, device.arenaBytes, &total))
      total = INT64_MAX;
  }
  if (total > available)
    return Error("the arenas of the host devices need " +
                 std::to_string(total) + " bytes together, but only " +
                 std::to_string(available) + " bytes of memory are free");
  return Error();
}

Error baechi::runtime::checkProcessor(
    const Program &program, const std::vector<const DriverKind *> &kinds,
    const HostInfo &host) {
  auto hostDevices =
      std::count_if(kinds.begin(), kinds.end(), [](const DriverKind *kind) {
        return kind->memory == Memory::Host && kind->runsEntry &&
               computes(*kind);
      });
  if (host.cores < std::min<int64_t>(hostDevices, program.cores))
    return Error(
        "the program was planned for " + std::to_string(program.cores) +
        " processors and has " + std::to_string(hostDevices) +
        " host devices, but this process may keep " +
        std::to_string(host.cores) + " processors busy: plan it here again");
  // GPUs' steps, too, are code of this processor, which launches kernels.
  bool runsCode =
      std::any_of(kinds.begin(), kinds.end(),
                  [](const DriverKind *kind) { return kind->runsEntry; });
  std::string missing;
  if (runsCode && !host.extensions.empty())
    for (const std::string &name : program.processor)
      if (!std::binary_search(host.extensions.begin(), host.extensions.end(),
                              name))
        missing += " " + name;
  if (missing.empty())
    return Error();
  return Error("the program's code was compiled for a processor with" +
               missing + ", which this one lacks: compile it here again");
}

std::string baechi::runtime::describeProgram(const Program &program) {
  std::string text =
      "the number of devices: " + std::to_string(program.devices.size()) + "\n";
  auto add = [&](std::string line) { text += std::move(line) + "\n"; };
  for (size_t i = 0; i < program.devices.size(); ++i) {
    const DeviceInfo &device = program.devices[i];
    add("device " + std::to_string(i) + ": " + device.name + " of kind " +
        device.kind + ", " + std::to_string(device.arenaBytes) + " bytes, " +
        std::to_string(device.operators.size()) + " operators");
  }
  for (size_t i = 0; i < program.queues.size(); ++i) {
    const QueueInfo &queue = program.queues[i];
    int64_t bytes = 0;
    for (const MessageInfo &message : queue.messages)
      bytes = (bytes * 31 + message.bytes) & INT32_MAX;
    add("queue " + std::to_string(i) + ": " + std::to_string(queue.from) +
        " to " + std::to_string(queue.to) + ", " +
        std::to_string(queue.messages.size()) + " messages, their sizes hash " +
        std::to_string(bytes));
  }
  return text;
}
