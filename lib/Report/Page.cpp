//===- Page.cpp - A placement as a web page ---------------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Report/Page.h"
#include "Baechi/Placement/Search/AssignmentEvaluator.h"
#include "Baechi/Placement/Study/Critical.h"
#include "Baechi/Placement/Study/Explain.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <string_view>
#include <tuple>

using namespace baechi::placement;
using namespace baechi::report;

namespace {

using Json = nlohmann::ordered_json;

/// The page of Report/Page, styles and scripts inlined.
constexpr std::string_view pageText =
#include "Page.inc"
    ;

/// The data in columns: an object an operator would take several times the
/// room.
class PageData {
public:
  PageData(const Problem &problem, const Placement &placement,
           const PageSummary &summary, const PageMeasurement *measured)
      : problem(problem), placement(placement), summary(summary),
        measured(measured), planned(plan()) {
    if (planned)
      critical = criticalParts(problem, *planned);
    critical.op.resize(numOperators());
  }

  Json all() const {
    Json data{{"format", "baechi-page"}, {"version", 1}};
    data["summary"] = summaryData();
    data["devices"] = devices();
    data["operators"] = operators();
    data["edges"] = edges();
    data["transfers"] = transfers();
    data["memory"] = measured && !measured->planned.empty()
                         ? memory(measured->planned)
                         : memory(memoryOverTime(problem, placement));
    data["reasons"] = reasons();
    data["measured"] = measured ? measurement() : Json(nullptr);
    return data;
  }

private:
  int32_t numOperators() const {
    return static_cast<int32_t>(problem.graph.ops.size());
  }

  /// What reasons and the critical path are of: the placement, or where it is
  /// as a step runs rather than as placers see it, their plan with the same
  /// devices and order. Nothing where no such plan fits.
  std::optional<Placement> plan() const {
    if (verify(problem, placement).empty())
      return placement;
    std::string error;
    auto evaluator = AssignmentEvaluator::create(problem, error);
    if (!evaluator)
      return std::nullopt;
    std::vector<int32_t> order(numOperators());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
      return placement.startNs[a] < placement.startNs[b];
    });
    Placement result;
    if (!evaluator->schedule(placement.device, order, result).empty() ||
        !verify(problem, result).empty())
      return std::nullopt;
    return result;
  }

  bool isReplanned() const {
    return planned && planned->startNs != placement.startNs;
  }

  Json notes() const {
    Json list = summary.notes;
    if (!planned)
      list.push_back("There are no reasons and no critical path: no order of "
                     "these operators on these devices is valid in the "
                     "placers' model.");
    else if (isReplanned())
      list.push_back("Reasons and the critical path are of the placers' plan; "
                     "the timeline is the step as the runtime runs it.");
    return list;
  }

  int64_t timeOf(int32_t i) const {
    const std::string &kind = problem.machine.devices[placement.device[i]].kind;
    return timeOn(problem.graph.ops[i], kind).value_or(0);
  }

  Json summaryData() const {
    int64_t achieved = summary.plannedNs.value_or(placement.makespanNs);
    if (summary.objective == Objective::MaxLoad)
      achieved = summary.maxLoadNs;
    else if (summary.objective == Objective::Period)
      achieved = summary.periodNs;
    double gap = summary.lowerBoundNs > 0
                     ? static_cast<double>(achieved) /
                               static_cast<double>(summary.lowerBoundNs) -
                           1
                     : 0;
    return {{"model", summary.model},
            {"machine", summary.machine},
            {"placer", summary.placer},
            {"winner", summary.winner},
            {"objective", objectiveText(summary.objective)},
            {"makespan_ns", placement.makespanNs},
            {"max_load_ns", summary.maxLoadNs},
            {"period_ns", summary.periodNs},
            {"lower_bound_ns", summary.lowerBoundNs},
            {"lower_bound", summary.lowerBoundName},
            {"gap", gap},
            {"single_device_ns", orNull(summary.singleDeviceNs)},
            {"notes", notes()}};
  }

  template <typename T> static Json orNull(const std::optional<T> &value) {
    return value ? Json(*value) : Json(nullptr);
  }

  Json devices() const {
    Json list = Json::array();
    std::vector<DeviceUsage> uses = usage(problem, placement);
    for (size_t d = 0; d < problem.machine.devices.size(); ++d) {
      const Device &device = problem.machine.devices[d];
      const DeviceUsage &use = uses[d];
      Json entry{{"name", device.name},
                 {"kind", device.kind},
                 {"memory_bytes", device.memory},
                 {"operators", use.operators},
                 {"busy_ns", use.busyNs},
                 {"peak_bytes", use.peakBytes},
                 {"resident_bytes", use.residentBytes},
                 {"sent_bytes", use.sentBytes}};
      if (measured)
        entry["arena_bytes"] = measured->arenaBytes[d];
      if (measured && !measured->planned.empty())
        entry["peak_bytes"] = mostOf(measured->planned[d]);
      list.push_back(std::move(entry));
    }
    return list;
  }

  static int64_t mostOf(const std::vector<MemoryLevel> &levels) {
    int64_t most = 0;
    for (const MemoryLevel &level : levels)
      most = std::max(most, level.bytes);
    return most;
  }

  Json operators() const {
    Json name = Json::array(), time = Json::array(), resident = Json::array(),
         output = Json::array();
    for (int32_t i = 0; i < numOperators(); ++i) {
      const Operator &op = problem.graph.ops[i];
      name.push_back(op.name);
      time.push_back(timeOf(i));
      resident.push_back(op.resident);
      output.push_back(std::accumulate(op.outputs.begin(), op.outputs.end(),
                                       int64_t(0),
                                       [](int64_t sum, const Output &tensor) {
                                         return sum + tensor.bytes;
                                       }));
    }
    return {{"name", std::move(name)},
            {"device", placement.device},
            {"start_ns", placement.startNs},
            {"time_ns", std::move(time)},
            {"resident_bytes", std::move(resident)},
            {"output_bytes", std::move(output)},
            {"critical", marked(critical.op)}};
  }

  static Json marked(const std::vector<uint8_t> &marks) {
    Json ids = Json::array();
    for (size_t i = 0; i < marks.size(); ++i)
      if (marks[i])
        ids.push_back(i);
    return ids;
  }

  Json edges() const {
    Json from = Json::array(), output = Json::array(), to = Json::array();
    for (const Edge &edge : problem.graph.edges) {
      from.push_back(edge.from);
      output.push_back(edge.output);
      to.push_back(edge.to);
    }
    return {{"from", std::move(from)},
            {"output", std::move(output)},
            {"to", std::move(to)}};
  }

  Json transfers() const {
    Json op = Json::array(), output = Json::array(), from = Json::array(),
         to = Json::array(), start = Json::array(), end = Json::array(),
         bytes = Json::array();
    for (const Transfer &t : placement.transfers) {
      op.push_back(t.op);
      output.push_back(t.output);
      from.push_back(t.from);
      to.push_back(t.to);
      start.push_back(t.startNs);
      end.push_back(t.endNs);
      bytes.push_back(problem.graph.ops[t.op].outputs[t.output].bytes);
    }
    return {{"op", std::move(op)},
            {"output", std::move(output)},
            {"from", std::move(from)},
            {"to", std::move(to)},
            {"start_ns", std::move(start)},
            {"end_ns", std::move(end)},
            {"bytes", std::move(bytes)},
            {"critical", marked(criticalTransfers())}};
  }

  /// The critical transfers of the plan among those of the placement.
  std::vector<uint8_t> criticalTransfers() const {
    auto keyOf = [](const Transfer &t) {
      return std::tuple(t.op, t.output, t.to);
    };
    std::set<std::tuple<int32_t, int32_t, int32_t>> keys;
    for (size_t k = 0; k < critical.transfer.size(); ++k)
      if (critical.transfer[k])
        keys.insert(keyOf(planned->transfers[k]));
    std::vector<uint8_t> marks;
    for (const Transfer &t : placement.transfers)
      marks.push_back(keys.count(keyOf(t)));
    return marks;
  }

  /// Per device its times and its levels.
  static Json memory(const std::vector<std::vector<MemoryLevel>> &all) {
    Json list = Json::array();
    for (const std::vector<MemoryLevel> &levels : all) {
      Json at = Json::array(), bytes = Json::array();
      for (const MemoryLevel &level : levels) {
        at.push_back(level.atNs);
        bytes.push_back(level.bytes);
      }
      list.push_back({std::move(at), std::move(bytes)});
    }
    return list;
  }

  /// The memory of the step that ran: the placement at the times that were
  /// measured. What did not happen keeps its planned time.
  Json measuredMemory() const {
    if (!measured->happened.empty())
      return memory(measured->happened);
    Problem happened = problem;
    Placement at = placement;
    for (size_t i = 0; i < measured->operators.size(); ++i)
      if (const PageSpan &span = measured->operators[i]; span.startNs >= 0) {
        at.startNs[i] = span.startNs;
        happened.graph.ops[i].timeNs = {{"", span.endNs - span.startNs}};
      }
    for (size_t k = 0; k < measured->transfers.size(); ++k)
      if (const PageSpan &span = measured->transfers[k]; span.startNs >= 0) {
        at.transfers[k].startNs = span.startNs;
        at.transfers[k].endNs = span.endNs;
      }
    at.makespanNs = measured->shownStepNs;
    return memory(memoryOverTime(happened, at));
  }

  /// Of the longest operators, and the longest on the critical path.
  Json reasons() const {
    constexpr size_t most = 60;
    Json list = Json::array();
    if (!planned)
      return list;
    std::vector<int32_t> order(numOperators());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
      return timeOf(a) > timeOf(b);
    });
    ExplainOptions options;
    // Reasons are of one step.
    options.objective = summary.objective == Objective::Period
                            ? Objective::Makespan
                            : summary.objective;
    options.reschedule = false;
    Explainer explainer(problem, *planned, options);
    size_t longest = 0, onPath = 0;
    for (int32_t i : order) {
      bool wanted = longest < most || (critical.op[i] && onPath < most);
      ++longest;
      if (!wanted || timeOf(i) == 0)
        continue;
      onPath += critical.op[i];
      list.push_back({{"operator", i}, {"why", explainer.explain(i).why}});
    }
    return list;
  }

  static Json spanData(const std::vector<PageSpan> &spans) {
    Json start = Json::array(), end = Json::array();
    for (const PageSpan &span : spans) {
      start.push_back(span.startNs);
      end.push_back(span.endNs);
    }
    return {{"start_ns", std::move(start)}, {"end_ns", std::move(end)}};
  }

  Json measurement() const {
    return {{"steps", measured->steps},
            {"step_ns", measured->stepNs},
            {"single_device_ns", orNull(measured->singleDeviceNs)},
            {"shown_step_ns", measured->shownStepNs},
            {"busy_ns", measured->busyNs},
            {"operators", spanData(measured->operators)},
            {"transfers", spanData(measured->transfers)},
            {"memory", measuredMemory()}};
  }

  const Problem &problem;
  const Placement &placement;
  const PageSummary &summary;
  const PageMeasurement *measured;
  std::optional<Placement> planned;
  Critical critical;
};

/// JSON that nothing in a script element ends: `<` occurs in strings alone.
std::string inScript(const Json &data) {
  // Names from outside of files need not be UTF-8.
  std::string json = data.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string text;
  text.reserve(json.size());
  for (char c : json)
    if (c == '<')
      text += "\\u003c";
    else
      text += c;
  return text;
}

} // namespace

std::string baechi::report::formatPage(const Problem &problem,
                                       const Placement &placement,
                                       const PageSummary &summary,
                                       const PageMeasurement *measured) {
  constexpr std::string_view mark = "@DATA@";
  size_t at = pageText.find(mark);
  std::string text(pageText.substr(0, at));
  text += inScript(PageData(problem, placement, summary, measured).all());
  text += pageText.substr(at + mark.size());
  return text;
}
