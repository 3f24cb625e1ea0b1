//===- StaleReport.cpp - What replicas with a late state did --------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Driver/Stale/StaleRun.h"
#include "Baechi/Support/Numbers.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <numeric>

using namespace baechi;
namespace json = llvm::json;

static double meanOfStep(const std::vector<std::vector<float>> &losses,
                         size_t step) {
  double sum = 0;
  for (const std::vector<float> &mine : losses)
    sum += mine[step];
  return sum / double(losses.size());
}

template <typename T> static T sumOf(const std::vector<T> &values) {
  return std::accumulate(values.begin(), values.end(), T(0));
}

void StaleReport::print(llvm::raw_ostream &os) const {
  os << "model      " << model << "\n";
  os << "replicas   " << asked.replicas << ", each on " << machine
     << " of its own, of a state that is at most " << asked.staleness
     << (asked.staleness == 1 ? " step" : " steps") << " late";
  if (asked.bandwidth)
    os << ", " << support::bytesText(*asked.bandwidth)
       << "/s each way between steps";
  if (asked.order)
    os << ", " << nameOf(*asked.order) << " first";
  if (asked.revised)
    os << ", in revised steps of " << llvm::formatv("{0:g}", *asked.revised);
  os << "\n";
  if (!ranks.empty())
    os << "ranks      " << ranks << "\n";
  os << "state      " << sharedArrays
     << (sharedArrays == 1 ? " array" : " arrays") << ", "
     << support::bytesText(double(sharedBytes)) << "\n";
  os << "steps      " << steps << " of each replica in "
     << llvm::formatv("{0:f3} s", double(wallNs) / 1e9) << "\n";
  uint64_t reads = sumOf(store.readsByStaleness);
  os << "reads     ";
  for (auto [behind, count] : llvm::enumerate(store.readsByStaleness))
    os << (behind ? ", " : " ")
       << llvm::formatv("{0:f1} %", 100.0 * double(count) /
                                        double(std::max<uint64_t>(1, reads)))
       << " " << behind << " late";
  os << "\n";
  os << "sent       " << support::bytesText(double(sumOf(store.bytesSent)))
     << ", received " << support::bytesText(double(sumOf(store.bytesReceived)))
     << ", waited " << llvm::formatv("{0:f3} s", sumOf(store.secondsWaited))
     << " of all replicas together\n";
  if (!lossName.empty() && steps > 0)
    os << "losses     of '" << lossName << "', the replicas' mean: first "
       << llvm::formatv("{0:f6}", meanOfStep(losses, 0)) << ", last "
       << llvm::formatv("{0:f6}", meanOfStep(losses, size_t(steps - 1)))
       << "\n";
}

json::Object StaleReport::toJson() const {
  json::Array byReplica;
  for (const std::vector<float> &mine : losses)
    byReplica.push_back(json::Array(llvm::map_range(
        mine, [](float loss) { return json::Value(double(loss)); })));
  auto numbers = [](const auto &values) {
    return json::Array(llvm::map_range(
        values, [](auto value) { return json::Value(double(value)); }));
  };
  json::Object object{{"format", "baechi-stale-report"},
                      {"model", model},
                      {"machine", machine},
                      {"replicas", asked.replicas},
                      {"staleness", asked.staleness},
                      {"steps", steps},
                      {"wall_ns", wallNs},
                      {"shared_arrays", sharedArrays},
                      {"shared_bytes", sharedBytes},
                      {"loss", lossName},
                      {"losses", std::move(byReplica)},
                      {"reads_by_staleness", numbers(store.readsByStaleness)},
                      {"bytes_sent", numbers(store.bytesSent)},
                      {"bytes_received", numbers(store.bytesReceived)},
                      {"seconds_waited", numbers(store.secondsWaited)}};
  if (!ranks.empty())
    object["ranks"] = ranks;
  if (asked.bandwidth)
    object["bandwidth"] = *asked.bandwidth;
  if (asked.order)
    object["order"] = nameOf(*asked.order);
  if (asked.revised)
    object["revised"] = *asked.revised;
  return object;
}

llvm::Error baechi::checkStale(const std::optional<StaleOptions> &stale,
                               const DriverOptions &driver,
                               const StepOptions &steps,
                               const OutputOptions &files) {
  if (!stale)
    return llvm::Error::success();
  auto mistake = [](const llvm::Twine &message) {
    return llvm::createStringError(message);
  };
  if (stale->replicas < 2)
    return mistake("--staleness is of replicas that share a state: give "
                   "--replicas=N, 2 or more, too");
  if (stale->staleness == 0 && stale->bandwidth)
    return mistake(
        "--bandwidth with --staleness=0: what is sent between steps' ends "
        "would be part of some replicas' state and not of others'; leave "
        "--bandwidth off, or give a staleness of 1 or more");
  if (stale->order && !stale->bandwidth)
    return mistake("--order is of the rows that a bandwidth does not let "
                   "through at once: give --bandwidth=B, too");
  if (driver.transfers == "network")
    return mistake(
        "--transfers=network simulates links between devices of one program, "
        "and with --staleness replicas send to the store's: say what each may "
        "send with --bandwidth=B, and leave one of them off");
  for (auto [name, isAsked] :
       {std::pair("exchange", !driver.exchange.empty()),
        {"factors", driver.factors != "none"},
        {"splits", driver.splits != "none" && driver.splits != "auto"},
        {"split", !driver.split.empty()},
        {"overlap-steps", steps.overlap},
        {"reference", !steps.reference.empty()},
        {"inject-fault", steps.injectFault.has_value()},
        {"calibrate", !files.calibrate.empty()},
        {"trace", !files.trace.empty()},
        {"html", !files.html.empty()}})
    if (isAsked)
      return mistake("--" + llvm::Twine(name) +
                     " is of one program of all replicas, and with --staleness "
                     "each has one of its own: leave one of them off");
  return llvm::Error::success();
}
