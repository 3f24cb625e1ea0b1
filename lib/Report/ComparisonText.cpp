//===- ComparisonText.cpp - The table of all placers ------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Report/Report.h"
#include "Table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <iterator>

using namespace baechi::placement;
using namespace baechi::report;

namespace {

double milliseconds(int64_t ns) { return static_cast<double>(ns) / 1e6; }
double mebibytes(int64_t bytes) { return static_cast<double>(bytes) / 1048576; }

/// Texts that rows have, each once with the names of its rows.
class Remarks {
public:
  void add(std::string text, const std::string &name) {
    // The name comes in front of all of its remarks.
    if (text.starts_with(name + ": "))
      text.erase(0, name.size() + 2);
    auto it = std::find_if(list.begin(), list.end(), [&](const auto &remark) {
      return remark.first == text;
    });
    if (it == list.end())
      it = list.insert(it, {text, {}});
    it->second.push_back(name);
  }
  std::string text() const {
    std::string text;
    for (const auto &[remark, names] : list)
      text += fmt::format("{}: {}\n", fmt::join(names, ", "), remark);
    return text;
  }

private:
  std::vector<std::pair<std::string, std::vector<std::string>>> list;
};

} // namespace

std::string baechi::report::comparisonText(const Problem &problem,
                                           const Comparison &comparison) {
  const auto &devices = problem.machine.devices;
  bool maxLoad = comparison.objective == Objective::MaxLoad;
  Table table({{"placer", Table::Left},
               {"step ms"},
               {"max load ms"},
               {"speed-up"},
               {"gap %"},
               {"peak MiB"},
               {"of limit %"},
               {"on", Table::Left},
               {"seconds"},
               {"valid", Table::Left}});
  for (size_t k = 0; k < comparison.rows.size(); ++k) {
    const ComparisonRow &row = comparison.rows[k];
    auto known = [](bool is, std::string text) {
      return is ? std::move(text) : std::string("-");
    };
    bool timed = row.makespanNs > 0 || row.valid;
    bool peak = row.valid && row.fullest >= 0;
    table.add(
        {row.name,
         known(timed, fmt::format("{:.3f}", milliseconds(row.makespanNs))),
         known(timed, fmt::format("{:.3f}", milliseconds(row.maxLoadNs))),
         known(row.speedUp.has_value(),
               fmt::format("{:.2f}", row.speedUp.value_or(0))),
         known(row.valid, fmt::format("{:.1f}", 100 * row.gap)),
         known(peak, fmt::format("{:.1f}", mebibytes(row.peakBytes))),
         known(peak, fmt::format("{:.1f}", 100 * row.peakShare)),
         known(peak, peak ? devices[row.fullest].name : ""),
         fmt::format("{:.3f}", row.seconds),
         std::string(row.valid ? "yes" : "no") +
             (static_cast<int32_t>(k) == comparison.best ? ", best" : "")});
  }
  std::string text = table.text();
  auto out = std::back_inserter(text);
  Remarks remarks;
  for (const ComparisonRow &row : comparison.rows) {
    if (!row.valid)
      remarks.add(row.problem, row.name);
    for (const std::string &note : row.notes)
      remarks.add(note, row.name);
  }
  text += "\n";
  if (comparison.lowerBoundNs > 0)
    fmt::format_to(out, "lower bound of the {}: {:.3f} ms ({})\n",
                   maxLoad ? "max load" : "step",
                   milliseconds(comparison.lowerBoundNs),
                   comparison.lowerBoundName);
  if (comparison.singleDeviceNs)
    fmt::format_to(out, "best single device: {:.3f} ms\n",
                   milliseconds(*comparison.singleDeviceNs));
  else
    text += "no single device can hold the graph\n";
  for (const ComparisonRow &row : comparison.rows)
    if (row.name == wholeAnswer && row.valid)
      fmt::format_to(out,
                     "{}: the best of all candidates and the search ({} won); "
                     "the others: the placer's own result\n",
                     row.name, row.winner);
  text += remarks.text();
  return text;
}

std::string baechi::report::comparisonJson(const Problem &problem,
                                           const Comparison &comparison) {
  using Json = nlohmann::ordered_json;
  bool maxLoad = comparison.objective == Objective::MaxLoad;
  Json root{{"format", "baechi-comparison"},
            {"version", 1},
            {"objective", maxLoad ? "max-load" : "makespan"},
            {"lower_bound_ns", comparison.lowerBoundNs},
            {"lower_bound", comparison.lowerBoundName},
            {"single_device_ns", comparison.singleDeviceNs
                                     ? Json(*comparison.singleDeviceNs)
                                     : Json(nullptr)},
            {"best", comparison.best >= 0
                         ? Json(comparison.rows[comparison.best].name)
                         : Json(nullptr)}};
  auto &rows = root["placers"] = Json::array();
  for (const ComparisonRow &row : comparison.rows) {
    Json entry{{"name", row.name},
               {"description", row.description},
               {"baseline", row.baseline},
               {"valid", row.valid},
               {"seconds", row.seconds}};
    if (!row.valid)
      entry["problem"] = row.problem;
    if (row.valid || row.makespanNs > 0) {
      entry["makespan_ns"] = row.makespanNs;
      entry["max_load_ns"] = row.maxLoadNs;
    }
    if (row.valid) {
      entry["speed_up"] = row.speedUp ? Json(*row.speedUp) : Json(nullptr);
      entry["gap"] = row.gap;
      entry["winner"] = row.winner;
    }
    if (row.valid && row.fullest >= 0) {
      entry["fullest_device"] = problem.machine.devices[row.fullest].name;
      entry["peak_bytes"] = row.peakBytes;
      entry["peak_share"] = row.peakShare;
    }
    entry["notes"] = row.notes;
    rows.push_back(std::move(entry));
  }
  return root.dump(1) + "\n";
}
