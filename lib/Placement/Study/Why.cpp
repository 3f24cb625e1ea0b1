//===- Why.cpp - Explanations in words --------------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Study/Why.h"
#include "Baechi/Placement/Model/Text.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

using namespace baechi::placement;
using namespace baechi::placement::study;

namespace {

/// What is compared, by the objective.
std::string_view objectiveName(Objective objective) {
  return objective == Objective::MaxLoad ? "largest load" : "step";
}

int64_t now(const Explanation &e) {
  return e.objective == Objective::MaxLoad ? e.maxLoadNs
                                           : e.againNs.value_or(e.makespanNs);
}

/// What moving to a device would make of the objective; nullopt: unknown.
template <typename Choice>
std::optional<int64_t> ifMoved(Objective objective, const Choice &choice) {
  return objective == Objective::MaxLoad ? choice.maxLoadNs : choice.makespanNs;
}

/// The choice with the earliest end, the device it is on where that is one.
const DeviceChoice *earliest(const Explanation &e) {
  const DeviceChoice *best = &e.devices[e.device];
  for (const DeviceChoice &choice : e.devices)
    if (choice.limit == Limit::None &&
        choice.startNs + choice.timeNs < best->startNs + best->timeNs)
      best = &choice;
  return best;
}

std::string comparison(const Explanation &e, const DeviceChoice &choice) {
  int64_t moved = *ifMoved(e.objective, choice), stay = now(e);
  auto name = objectiveName(e.objective);
  if (moved == stay)
    return fmt::format("the {} would not change", name);
  return fmt::format("the {} would take {} instead of {}", name,
                     millisecondsText(moved, stay),
                     millisecondsText(stay, moved));
}

/// A column of device names.
size_t nameWidth(const Problem &problem) {
  size_t width = std::string_view("device").size();
  for (const Device &device : problem.machine.devices)
    width = std::max(width, device.name.size());
  return width;
}

/// "152.662 ms (+2.800)".
std::string movedText(std::optional<int64_t> moved, int64_t stay) {
  if (!moved)
    return "-";
  std::string text = millisecondsText(*moved, stay);
  if (inNanoseconds(*moved, stay))
    return fmt::format("{} ({:+})", text, *moved - stay);
  return fmt::format("{} ({:+.3f})", text,
                     static_cast<double>(*moved - stay) / 1e6);
}

/// What the operator waits for at a device.
std::string waitsText(const Problem &problem, const DeviceChoice &choice) {
  const auto &ops = problem.graph.ops;
  const auto &devices = problem.machine.devices;
  std::string text = "waits for nothing";
  if (choice.lastOperand >= 0) {
    const std::string &name = ops[choice.lastOperand].name;
    text = choice.lastOutput < 0
               ? fmt::format("'{}' ends", name)
               : fmt::format("'{}:{}' is there", name, choice.lastOutput);
    text += fmt::format(" at {}", millisecondsText(choice.arrivalNs));
    if (choice.lastFrom != choice.device)
      text += fmt::format(", from {}", devices[choice.lastFrom].name);
  }
  if (choice.occupant >= 0)
    text +=
        fmt::format(", then the device runs '{}'", ops[choice.occupant].name);
  return text;
}

} // namespace

std::string baechi::placement::study::memoryReason(const DeviceChoice &choice,
                                                   int32_t groupSize) {
  if (choice.neededBytes > choice.freeBytes)
    return fmt::format("it needs {} there, {} of memory are free then",
                       bytesText(choice.neededBytes),
                       bytesText(std::max<int64_t>(choice.freeBytes, 0)));
  return fmt::format("with it{} there, no order of the step fits the memories",
                     groupSize > 1 ? " and its group" : "");
}

std::string baechi::placement::study::why(const Problem &problem,
                                          const Explanation &e) {
  const Operator &op = problem.graph.ops[e.op];
  const auto &devices = problem.machine.devices;
  const DeviceChoice &own = e.devices[e.device];
  auto possible = std::count_if(
      e.devices.begin(), e.devices.end(),
      [](const DeviceChoice &choice) { return choice.limit == Limit::None; });
  std::string text;
  const DeviceChoice *best = earliest(e);
  if (op.pin) {
    text = fmt::format("It is pinned to {}.", *op.pin);
  } else if (devices.size() == 1) {
    text = "There is no other device.";
  } else if (possible <= 1) {
    text = "No other device can take it.";
  } else if (best == &own) {
    text = "No other device could finish it earlier.";
  } else {
    text =
        fmt::format("{} could finish it {} earlier", devices[best->device].name,
                    millisecondsText(own.startNs + own.timeNs - best->startNs -
                                     best->timeNs));
    std::string group =
        e.groupSize > 1 ? fmt::format("its group '{}' of {} operators is here",
                                      op.group.value_or(""), e.groupSize)
                        : "";
    if (ifMoved(e.objective, *best))
      text += fmt::format(", but {}{}{}.", group.empty() ? "" : group + " and ",
                          comparison(e, *best),
                          group.empty() ? "" : " if all of it moved");
    else
      text += group.empty() ? "." : ", but " + group + ".";
  }
  // Not hidden: what the search has not found.
  const DeviceChoice *better = nullptr;
  for (const DeviceChoice &choice : e.devices)
    if (auto moved = ifMoved(e.objective, choice);
        choice.limit == Limit::None && choice.device != e.device && moved &&
        *moved < now(e) && (!better || *moved < *ifMoved(e.objective, *better)))
      better = &choice;
  if (better && better != best)
    text += fmt::format(" On {}, {}.", devices[better->device].name,
                        comparison(e, *better));
  if (better)
    text += " A longer search may find that.";
  // What takes no time finds a gap anywhere.
  if (own.startNs < e.startNs && e.timeNs > 0)
    text += fmt::format(" It begins {} after it could: the bytes it needs had "
                        "to be free, or the device was kept for another.",
                        millisecondsText(e.startNs - own.startNs));
  return text;
}

std::string baechi::placement::explanationText(const Problem &problem,
                                               const Explanation &e) {
  const Operator &op = problem.graph.ops[e.op];
  const auto &devices = problem.machine.devices;
  std::string text;
  auto out = std::back_inserter(text);
  int64_t endNs = e.startNs + e.timeNs;
  fmt::format_to(out, "operator {} '{}' is on {} from {} to {}\n", e.op,
                 op.name, devices[e.device].name,
                 millisecondsText(e.startNs, endNs),
                 millisecondsText(endNs, e.startNs));
  fmt::format_to(out, "  {} of the {} step",
                 e.critical ? "critical part" : "part",
                 millisecondsText(e.makespanNs));
  if (e.groupSize > 1)
    fmt::format_to(out, "; one of {} operators of group '{}'", e.groupSize,
                   op.group.value_or(""));
  text += "\n";
  size_t width = nameWidth(problem);
  fmt::format_to(out,
                 "  {:<{}}  {:>14}  {:>10}  {:>10}  {:>24}  last operand\n",
                 "device", width, "earliest start", "needs", "free",
                 fmt::format("{} if moved", objectiveName(e.objective)));
  for (const DeviceChoice &choice : e.devices) {
    bool own = choice.device == e.device;
    fmt::format_to(out, "{} {:<{}}  ", own ? '*' : ' ',
                   devices[choice.device].name, width);
    bool known = choice.limit == Limit::None || choice.limit == Limit::Memory;
    if (known)
      fmt::format_to(out, "{:>14}  {:>10}  {:>10}  {:>24}  {}",
                     millisecondsText(choice.startNs),
                     bytesText(choice.neededBytes),
                     bytesText(std::max<int64_t>(choice.freeBytes, 0)),
                     own ? "" : movedText(ifMoved(e.objective, choice), now(e)),
                     waitsText(problem, choice));
    if (choice.limit != Limit::None)
      fmt::format_to(out, "{}excluded: {}", known ? "; " : "", choice.reason);
    text += "\n";
  }
  if (e.objective == Objective::Makespan && e.againNs &&
      *e.againNs != e.makespanNs)
    fmt::format_to(out, "  scheduled again as it is, the step takes {}\n",
                   millisecondsText(*e.againNs));
  fmt::format_to(out, "  {}\n", e.why);
  return text;
}

std::string baechi::placement::explanationText(const Problem &problem,
                                               const SetExplanation &e) {
  const auto &devices = problem.machine.devices;
  std::string text;
  auto out = std::back_inserter(text);
  int64_t stay = e.objective == Objective::MaxLoad
                     ? e.maxLoadNs
                     : e.againNs.value_or(e.makespanNs);
  size_t width = nameWidth(problem);
  fmt::format_to(out, "{} operators\n", e.operators);
  fmt::format_to(out, "  {:<{}}  {:>9}  {:>14}  {:>24}\n", "device", width,
                 "operators", "work",
                 fmt::format("{} if all here", objectiveName(e.objective)));
  for (size_t d = 0; d < e.devices.size(); ++d) {
    const SetExplanation::OnDevice &choice = e.devices[d];
    fmt::format_to(out, "  {:<{}}  {:>9}  {:>14}  {:>24}", devices[d].name,
                   width, choice.operators, millisecondsText(choice.timeNs),
                   movedText(ifMoved(e.objective, choice), stay));
    if (choice.limit != Limit::None)
      fmt::format_to(out, "  excluded: {}", choice.reason);
    text += "\n";
  }
  return text;
}
