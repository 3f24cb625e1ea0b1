//===- QueryMachine.cpp - Measure this machine -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "QueryMachine.h"
#include "Baechi/Analysis/MachineSpec.h"
#include "Baechi/Placement/Io.h"
#include "Baechi/Runtime/Machine.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>

using namespace baechi;

llvm::Error baechi::measureLinks(placement::Machine &machine) {
  runtime::Expected<runtime::LinkFit> fit = runtime::measureHostLink();
  if (!fit)
    return llvm::createStringError(fit.error().message());
  placement::Link link;
  link.latencyNs = std::max<int64_t>(0, std::llround(fit->latencyNs));
  link.bytesPerUs = std::max<int64_t>(1, std::llround(fit->bytesPerNs * 1000));
  int32_t n = machine.devices.size();
  for (int32_t from = 0; from < n; ++from)
    for (int32_t to = 0; to < n; ++to)
      if (from != to && machine.devices[from].kind == "host" &&
          machine.devices[to].kind == "host")
        machine.links[from * n + to] = link;
  llvm::errs() << llvm::format(
      "links: %lld ns + bytes / %.2f GB/s, residual %.1f %%\n",
      static_cast<long long>(link.latencyNs), link.bytesPerUs / 1e3,
      100 * fit->residual);
  return llvm::Error::success();
}

llvm::Error baechi::queryMachine(placement::Machine machine,
                                 const std::string &path) {
  for (const placement::Device &device : machine.devices)
    if (device.kind != "host")
      return llvm::createStringError(
          "device '" + device.name + "' is of kind '" + device.kind +
          "'; --query-machine measures links between host devices");
  runtime::HostInfo host = runtime::queryHost();
  llvm::errs() << "host: " << host.cores << " cores, "
               << formatBytes(host.memoryBytes) << " of free memory\n";
  if (llvm::Error error = measureLinks(machine))
    return error;
  std::string text, error;
  if (path == "-") {
    error = placement::formatMachine(machine, text);
    llvm::outs() << text;
  } else {
    error = placement::writeMachine(path, machine);
  }
  if (!error.empty())
    return llvm::createStringError(error);
  return llvm::Error::success();
}
