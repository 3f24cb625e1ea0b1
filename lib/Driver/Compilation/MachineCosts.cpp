//===- MachineCosts.cpp - What is measured of a model's machine -----------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Conversion/HostJit/HostJit.h"
#include "Baechi/Costs/Measure/KernelCosts.h"
#include "Baechi/Dialect/Baechi.h"
#include "Baechi/Dialect/SimulatedNetwork.h"
#include "Baechi/Driver/Compilation/ModelCosts.h"
#include "Baechi/Driver/Input/HostTimes.h"
#include "Baechi/Driver/Input/QueryMachine.h"
#include "Baechi/Placement/Model/Pool.h"
#include "Baechi/Runtime/CarrierCosts.h"
#include "Baechi/Runtime/Load.h"
#include "Baechi/Runtime/Machine.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <algorithm>
#include <cmath>

using namespace mlir;
using namespace baechi;

llvm::Error ModelCosts::measureMachine(bool always) {
  if (llvm::Error error = measureHost(always))
    return error;
  return measureCarrier(/*isAnew=*/always ||
                        llvm::cantFail(measureBudgetOf(asked)).all);
}

/// Threads that a message between two processes wakes, in place of one: the
/// carrier; the relays that say, and hear, that the receiver is ready; those
/// that say where the message lies, read it, and hear that it was read.
static constexpr int64_t kWakesBetweenProcesses = 6;

llvm::Error ModelCosts::measureCarrier(bool isAnew) {
  if (carrier.second > 0 && !isAnew)
    return llvm::Error::success();
  int64_t cores = runtime::queryHost().cores;
  if (asked.transfers != "network" || asked.costs != "measured" ||
      !asked.hostTarget.empty() ||
      !takesAllCores(target, cores, asked.devicesHere))
    return llvm::Error::success();
  const HostTimes *known = kept.findHost(cores);
  if (known && known->carrierBytesPerUs > 0 && !isAnew &&
      kept.target == HostJit::hostTarget()) {
    carrier = {known->carrierNs, known->carrierBytesPerUs};
    return llvm::Error::success();
  }
  Phase phase(listener, "measuring the machine");
  runtime::LoadWatch load;
  runtime::Expected<runtime::CarrierCosts> found = runtime::measureCarrier();
  if (!found)
    return llvm::createStringError(found.error().message());
  carrier = {std::llround(found->messageNs),
             std::max<int64_t>(1, std::llround(found->bytesPerUs))};
  listener.tell(llvm::formatv(
      "moving simulated messages, of a core: {0:F1} us each, {1:F1} GB/s",
      found->messageNs / 1e3, found->bytesPerUs / 1e3));
  placement::Machine host;
  llvm::Expected<bool> settled =
      known ? llvm::Expected<bool>(true) : measureRuntime(host, listener);
  if (!settled)
    return settled.takeError();
  if (!*settled || asked.otherProcesses || load.isDisturbed(1))
    return llvm::Error::success();
  HostTimes times = known ? *known : HostTimes{cores, *host.runtime};
  std::tie(times.carrierNs, times.carrierBytesPerUs) = carrier;
  kept.setHost(times);
  machineMeasured = true;
  return llvm::Error::success();
}

int64_t ModelCosts::carrierMessageNs() const {
  return carrier.first * (asked.otherProcesses ? kWakesBetweenProcesses : 1);
}

void ModelCosts::tellCarrier(ModuleOp module) const {
  if (carrier.second == 0)
    return;
  module.getContext()->getOrLoadDialect<BaechiDialect>();
  module->setAttr(kCarrierCosts,
                  DenseI64ArrayAttr::get(module.getContext(),
                                         {carrierMessageNs(), carrier.second}));
}

llvm::Error ModelCosts::measureHost(bool always) {
  // A short form's links are only assumed.
  bool assumed = StringRef(asked.machine).starts_with("host:") &&
                 asked.costs == "measured";
  if (!assumed && !(always && !target.runtime))
    return llvm::Error::success();
  int64_t cores = runtime::queryHost().cores;
  bool isAnew = always || llvm::cantFail(measureBudgetOf(asked)).all;
  if (const HostTimes *times = kept.findHost(cores);
      times && !isAnew && kept.target == HostJit::hostTarget() &&
      setHostTimes(target, *times))
    return llvm::Error::success();
  Phase phase(listener, "measuring the machine");
  runtime::LoadWatch load;
  llvm::Expected<bool> settled = target.devices.size() > 1
                                     ? measureLinks(target, listener)
                                     : measureRuntime(target, listener);
  if (!settled)
    return settled.takeError();
  // What is kept is taken for good: others' work may slow all of it down alike.
  if (!*settled || asked.otherProcesses ||
      load.isDisturbed(placement::numComputing(target)))
    return llvm::Error::success();
  if (std::optional<HostTimes> times = hostTimesOf(target)) {
    // What was found out about links stays, where there are none now.
    if (const HostTimes *known = kept.findHost(cores)) {
      if (!times->link)
        times->link = known->link;
      times->carrierNs = known->carrierNs;
      times->carrierBytesPerUs = known->carrierBytesPerUs;
    }
    kept.setHost(*times);
    machineMeasured = true;
  }
  return llvm::Error::success();
}
