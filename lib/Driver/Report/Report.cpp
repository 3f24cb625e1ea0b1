//===- Report.cpp - What a run tells -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Driver/Report/Report.h"
#include "Baechi/Analysis/MachineAttr.h"
#include "Baechi/Placement/Model/Text.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"
#include <cmath>

using namespace baechi;
using llvm::format;
namespace json = llvm::json;

namespace {
double percent(double part, double whole) {
  return whole > 0 ? 100 * part / whole : 0;
}

/// JSON has no infinities and no NaN: null.
json::Value number(double value) {
  return std::isfinite(value) ? json::Value(value) : json::Value(nullptr);
}

/// Measured times are means and medians: parts of nanoseconds.
std::string milliseconds(double ns) {
  return placement::millisecondsText(std::llround(ns));
}
} // namespace

static double plannedBusyNs(const runtime::DeviceInfo &device) {
  double sum = 0;
  for (const runtime::OperatorInfo &op : device.operators)
    sum += op.timeNs;
  return sum;
}

/// Of the time in which messages waited for simulated links.
static double usedPercent(const runtime::LaneRecord &links) {
  return percent(links.usedNs, links.waitedNs);
}

std::vector<std::string>
baechi::simulatedLinks(const runtime::Program &program) {
  std::vector<std::string> links;
  for (const runtime::QueueInfo &queue : program.queues)
    if (queue.link)
      links.push_back(llvm::formatv(
          "simulated network: {0} to {1} {2:f1} us and {3} bytes "
          "a us",
          program.devices[queue.from].name, program.devices[queue.to].name,
          double(queue.link->latencyNs) / 1e3, queue.link->bytesPerUs));
  return links;
}

double RunReport::predictedNs() const {
  if (overlapped > 0 && program.predicted.periodNs > 0)
    return program.predicted.periodNs;
  return program.predicted.stepNs > 0 ? program.predicted.stepNs
                                      : program.predicted.makespanNs;
}

/// How much longer than planned an operator took in the fastest step.
static int64_t excessNs(const RunReport &report, size_t device, size_t op) {
  return report.timeline.devices[device].operators[op].durationNs() -
         report.program.devices[device].operators[op].timeNs;
}

std::vector<std::pair<size_t, size_t>>
RunReport::furthestOperators(size_t most) const {
  std::vector<std::pair<size_t, size_t>> all;
  for (auto [device, record] : llvm::enumerate(timeline.devices))
    for (size_t op = 0; op < record.operators.size(); ++op)
      if (record.operators[op].happened())
        all.emplace_back(device, op);
  llvm::stable_sort(all, [&](const auto &x, const auto &y) {
    return std::abs(excessNs(*this, x.first, x.second)) >
           std::abs(excessNs(*this, y.first, y.second));
  });
  all.resize(std::min(most, all.size()));
  return all;
}

static void printFurthest(llvm::raw_ostream &os, const RunReport &report) {
  constexpr size_t kShown = 3;
  auto furthest = report.furthestOperators(kShown);
  for (auto [i, found] : llvm::enumerate(furthest)) {
    auto [device, position] = found;
    const runtime::OperatorInfo &op =
        report.program.devices[device].operators[position];
    os << (i == 0 ? "off plan   " : "           ")
       << format("%.1f", (op.timeNs + excessNs(report, device, position)) / 1e3)
       << " instead of " << format("%.1f us: ", op.timeNs / 1e3) << op.name
       << " (" << op.kernel << ") on " << report.program.devices[device].name
       << "\n";
  }
  if (!furthest.empty())
    os << "\n";
}

void RunReport::print(llvm::raw_ostream &os) const {
  const runtime::Prediction &predicted = program.predicted;
  os << "model      " << model << ": " << operatorsBefore << " operations -> "
     << operators << " operators of " << kernels << " distinct kernels -> "
     << compiled.groups << " groups\n";
  os << "machine    " << machine << ", code for " << target;
  if (!cudaMath.empty())
    os << ", products on GPUs in " << cudaMath;
  if (cudaConvolutions > 0)
    os << ", " << cudnnConvolutions << " of " << cudaConvolutions
       << " convolutions by cuDNN";
  os << "\n";
  os << format("compiled   form %.2f s, ", formSeconds);
  if (costs == "measured")
    os << format("profile %.2f s (%zu rows measured), ", profileSeconds,
                 kernelCosts.rowsMeasured);
  os << format("kernels %.2f s", kernelSeconds);
  if (kernelsFromStore > 0)
    os << format(" (%zu from the store)", kernelsFromStore);
  os << format(", place %.3f s, partition and lower %.2f s\n",
               compiled.placeSeconds,
               compiled.compileSeconds - compiled.placeSeconds);
  if (kernelCosts.estimated > 0 || kernelCosts.disturbed > 0)
    os << "costs      of " << kernelCosts.measured << " kernels measured, of "
       << kernelCosts.estimated << " estimated, " << kernelCosts.disturbed
       << " rows disturbed by other work\n";
  os << "placement  " << placer << " asked, '" << predicted.winner << "' won\n";
  if (compiled.givenUp)
    os << "           instead of '" << compiled.givenUp->winner
       << "', whose step would take " << milliseconds(compiled.givenUp->stepNs)
       << " with the copies between devices\n";
  if (pieces)
    for (auto [number, line] : llvm::enumerate(pieces->lines()))
      os << (number == 0 ? "pieces     " : "           ") << line << "\n";
  for (auto [key, title] : {std::pair("unrolled_loops", "loops      "),
                            std::pair("cut_to_fit", "cut        "),
                            std::pair("memory_fit", "memory     "),
                            std::pair("checkpoints", "again      "),
                            std::pair("messages", "messages   ")})
    if (const json::Object *told = compiled.manifest.getObject(key))
      for (auto [number, line] : llvm::enumerate(*told->getArray("text")))
        os << (number == 0 ? title : "           ") << *line.getAsString()
           << "\n";
  os << "\n";

  double step = measured.medianNs();
  os << "step       predicted " << milliseconds(predictedNs()) << ", measured "
     << milliseconds(step);
  if (overlapped > 0)
    os << " (" << overlapped << " steps that overlap, from one to the next)";
  else
    os << " (median of " << measured.wallNs.size()
       << (measured.replayed ? ", as CUDA graphs" : "") << ", half within "
       << milliseconds(measured.quantileNs(0.25)) << " to "
       << milliseconds(measured.quantileNs(0.75)) << ")";
  if (othersWork)
    // It says nothing of the prediction.
    os << format(": disturbed, the machine did the work of %.1f processors for "
                 "others\n",
                 *othersWork);
  else
    os << format(", %+.1f %%\n", percent(step - predictedNs(), predictedNs()));
  bool anyGpu = llvm::any_of(
      program.devices, [](auto &device) { return device.kind == "cuda"; });
  if (anyGpu && !measured.replayed)
    os << "           predicted are CUDA graphs, in which operators that need "
          "nothing of each other run at once; measured are launches one by "
          "one\n";
  if (roofline)
    os << "           " << roofline->textOf(step) << "\n";
  // Placers let transfers overlap computation; on the host a copy takes the
  // time of the device that does it.
  double planned =
      objective == "period" ? predictedNs() : double(predicted.makespanNs);
  if (objective == "period")
    os << "           planned for the period, lower bound ";
  else
    os << "           the placement's makespan "
       << milliseconds(predicted.makespanNs) << ", lower bound ";
  os << milliseconds(predicted.lowerBoundNs)
     << format(", gap %.1f %%\n", percent(planned - predicted.lowerBoundNs,
                                          predicted.lowerBoundNs));
  if (single)
    // How far off the costs are now shows in the one device, where nothing else
    // is predicted: the speed-ups compare what the plan itself is worth.
    os << "           one device predicted " << milliseconds(singlePredictedNs)
       << ", measured " << milliseconds(single->medianNs())
       << format(", %+.1f %%\n", percent(single->medianNs() - singlePredictedNs,
                                         singlePredictedNs))
       << format("           speed-up predicted %.2f, measured %.2f\n",
                 singlePredictedNs / std::max<double>(1, predictedNs()),
                 step > 0 ? single->medianNs() / step : 0);
  else
    os << "           one device: "
       << (singleRefused.empty() ? "not run, as asked" : singleRefused) << "\n";

  for (const std::string &link : simulatedLinks(program))
    os << "network    " << link << "\n";
  if (measured.links.waitedNs > 0) {
    os << format("           links used %.1f %% while messages waited",
                 usedPercent(measured.links));
    if (predicted.links.waitedNs > 0)
      os << format(", simulated %.1f %%", usedPercent(predicted.links));
    os << "\n";
  }
  os << "\ndevice     operators   busy %  planned   peak memory            "
        "limit"
        "       parameters   sent a step    of it lent\n";
  for (auto [i, device] : llvm::enumerate(program.devices))
    os << format("%-10s %9zu %8.1f %8.1f   %11s %16s %16s %13s %13s\n",
                 device.name.c_str(), device.operators.size(),
                 percent(measured.busyNs[i], measured.meanNs()),
                 percent(plannedBusyNs(device), predictedNs()),
                 placement::bytesText(device.arenaBytes, 2).c_str(),
                 placement::bytesText(device.memory, 2).c_str(),
                 placement::bytesText(residentBytes[i], 2).c_str(),
                 placement::bytesText(measured.sentBytes[i], 2).c_str(),
                 placement::bytesText(measured.lentBytes[i], 2).c_str());
  for (auto [device, bytes] : llvm::zip(program.devices, measured.besideArena))
    if (bytes > 0)
      os << device.name << "'s GPU holds " << placement::bytesText(bytes, 2)
         << " beside the arenas, for code, graphs and libraries\n";
  os << "\n";
  printFurthest(os, *this);
  if (!losses.empty()) {
    os << lossName << format("       %.6f at step 1", losses.front());
    if (losses.size() > 1)
      os << format(", %.6f at step %zu", losses.back(), losses.size());
    os << "\n";
  }
  if (reference)
    os << "reference  " << reference->steps << " losses "
       << (reference->agrees() ? "agree" : "DISAGREE")
       << format(": largest relative difference %.2e (limit %.0e)\n",
                 reference->worst, ReferenceComparison::limit);
  if (single)
    os << "outputs    "
       << (difference.empty()
               ? "equal the single device's, bit for bit (the same kernels on "
                 "one device: no check of their code)\n"
               : "DIFFER from the single device's: first " + difference + "\n");
}

/// All operators and transfers of the fastest counted step beside the plan;
/// null where one did not happen.
static json::Object stepToJson(const RunReport &report) {
  const runtime::Program &program = report.program;
  auto measured = [](const runtime::Interval &time) {
    return time.happened() ? json::Value(time.durationNs())
                           : json::Value(nullptr);
  };
  json::Array operators, transfers;
  for (auto [device, record] :
       llvm::zip_equal(program.devices, report.timeline.devices))
    for (auto [op, time] : llvm::zip_equal(device.operators, record.operators))
      operators.push_back(json::Object{{"name", op.name},
                                       {"device", device.name},
                                       {"kernel", op.kernel},
                                       {"planned_ns", op.timeNs},
                                       {"measured_ns", measured(time)}});
  for (auto [queue, copies] :
       llvm::zip_equal(program.queues, report.timeline.queues))
    for (auto [message, copy] : llvm::zip_equal(queue.messages, copies))
      transfers.push_back(
          json::Object{{"name", message.name},
                       {"from", program.devices[queue.from].name},
                       {"to", program.devices[queue.to].name},
                       {"bytes", message.bytes},
                       {"planned_ns", message.endNs - message.startNs},
                       {"measured_ns", measured(copy)}});
  return json::Object{{"operators", std::move(operators)},
                      {"transfers", std::move(transfers)}};
}

json::Object KernelCostCounts::toJson() const {
  return json::Object{{"measured", static_cast<int64_t>(measured)},
                      {"estimated", static_cast<int64_t>(estimated)},
                      {"disturbed", static_cast<int64_t>(disturbed)}};
}

json::Object RunReport::toJson() const {
  json::Array devices;
  double step = measured.medianNs();
  for (auto [i, device] : llvm::enumerate(program.devices))
    devices.push_back(json::Object{
        {"name", device.name},
        {"operators", static_cast<int64_t>(device.operators.size())},
        {"busy_percent", percent(measured.busyNs[i], measured.meanNs())},
        {"planned_busy_percent", percent(plannedBusyNs(device), predictedNs())},
        {"peak_bytes", device.arenaBytes},
        {"beside_arena_bytes", measured.besideArena[i]},
        {"resident_bytes", residentBytes[i]},
        {"limit_bytes", device.memory},
        {"sent_bytes", measured.sentBytes[i]},
        {"lent_bytes", measured.lentBytes[i]}});
  json::Array furthest;
  for (auto [device, op] : furthestOperators(/*most=*/20))
    furthest.push_back(json::Object{
        {"operator", program.devices[device].operators[op].name},
        {"kernel", program.devices[device].operators[op].kernel},
        {"device", program.devices[device].name},
        {"planned_ns", program.devices[device].operators[op].timeNs},
        {"measured_ns", timeline.devices[device].operators[op].durationNs()}});
  json::Object report{
      {"format", "baechi-run-report"},
      {"version", 1},
      {"model", model},
      {"machine", machine},
      {"target", target},
      {"costs", costs},
      {"kernel_costs", kernelCosts.toJson()},
      {"operations_before", static_cast<int64_t>(operatorsBefore)},
      {"operators", static_cast<int64_t>(operators)},
      {"kernels", static_cast<int64_t>(kernels)},
      {"groups", compiled.groups},
      {"placer", placer},
      {"objective", objective},
      {"winner", program.predicted.winner},
      {"seconds",
       json::Object{{"form", formSeconds},
                    {"profile", profileSeconds},
                    {"kernels", kernelSeconds},
                    {"place", compiled.placeSeconds},
                    {"partition_and_lower",
                     compiled.compileSeconds - compiled.placeSeconds}}},
      {"predicted_step_ns", predictedNs()},
      {"placement_makespan_ns", program.predicted.makespanNs},
      {"lower_bound_ns", program.predicted.lowerBoundNs},
      {"measured_step_ns", step},
      {"measured_quartiles_ns",
       json::Array{measured.quantileNs(0.25), measured.quantileNs(0.75)}},
      {"measured_fastest_ns", measured.quantileNs(0)},
      {"steps", overlapped > 0 ? overlapped
                               : static_cast<int64_t>(measured.wallNs.size())},
      {"overlapped", overlapped > 0},
      {"replayed", measured.replayed},
      {"devices", std::move(devices)},
      {"furthest_operators", std::move(furthest)},
      {"fastest_step", stepToJson(*this)},
      {"losses", json::Array(llvm::map_range(losses, number))}};
  if (std::vector<std::string> links = simulatedLinks(program); !links.empty())
    report["network"] = json::Array(links);
  if (measured.links.waitedNs > 0)
    report["links"] =
        json::Object{{"used_percent", usedPercent(measured.links)},
                     {"predicted_used_percent",
                      program.predicted.links.waitedNs > 0
                          ? json::Value(usedPercent(program.predicted.links))
                          : json::Value(nullptr)}};
  if (pieces)
    report["pieces"] = pieces->toJson();
  if (roofline) {
    json::Object told = roofline->toJson();
    told["reached"] = roofline->reachedBy(step);
    report["roofline"] = std::move(told);
  }
  for (const char *key : {"unrolled_loops", "cut_to_fit", "memory_fit",
                          "checkpoints", "messages"})
    if (const json::Object *told = compiled.manifest.getObject(key))
      report[key] = json::Object(*told);
  if (othersWork)
    report["others_processors"] = *othersWork;
  if (!cudaMath.empty())
    report["cuda_math"] = cudaMath;
  if (cudaConvolutions > 0)
    report["cuda_convolutions"] =
        json::Object{{"kernels", int64_t(cudaConvolutions)},
                     {"cudnn", int64_t(cudnnConvolutions)}};
  if (single) {
    report["single_device_ns"] = single->medianNs();
    report["single_device_predicted_ns"] = singlePredictedNs;
    report["speed_up"] = step > 0 ? single->medianNs() / step : 0;
    report["outputs_agree"] = difference.empty();
  }
  if (reference)
    report["reference"] =
        json::Object{{"largest_relative_difference", number(reference->worst)},
                     {"agrees", reference->agrees()}};
  return report;
}
