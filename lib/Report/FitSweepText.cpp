//===- FitSweepText.cpp - The table of the step over the memory -----------===//
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
#include <array>
#include <iterator>

using namespace baechi::placement;
using namespace baechi::report;

namespace {

std::string mebibytes(int64_t bytes) {
  double value = static_cast<double>(bytes) / 1048576;
  return value > 0 && value < 1 ? fmt::format("{:.3g}", value)
                                : fmt::format("{:.1f}", value);
}

double timesUnlimited(const FitSweep &sweep, const FitWay &way) {
  return static_cast<double>(way.stepNs) /
         static_cast<double>(std::max<int64_t>(sweep.unlimitedNs, 1));
}

std::string timesText(const FitSweep &sweep, const FitWay &way) {
  return way.fits ? fmt::format("{:.3f}", timesUnlimited(sweep, way)) : "-";
}

std::string table(const FitSweep &sweep) {
  std::vector<Table::Column> columns{
      {"memory MiB"}, {"of file %"}, {"order"},     {"again"},
      {"again MiB"},  {"pool"},      {"moved MiB"}, {"both"},
      {"again MiB"},  {"moved MiB"}, {"best ms"},   {"by", Table::Left}};
  const bool hasSums = sweep.floorInTurn.has_value();
  constexpr ptrdiff_t behindBoth = 10;
  if (hasSums)
    columns.insert(columns.begin() + behindBoth,
                   {{"sums in turn"}, {"again MiB"}, {"moved MiB"}});
  Table table(std::move(columns));
  auto bytes = [](const FitWay &way, int64_t of) {
    return way.fits ? mebibytes(of) : std::string("-");
  };
  for (const FitPoint &point : sweep.points) {
    const FitWay *best = point.best();
    std::vector<std::string> row{
        mebibytes(point.memoryBytes),
        fmt::format("{:.1f}", 100 * static_cast<double>(point.memoryBytes) /
                                  static_cast<double>(
                                      std::max<int64_t>(sweep.fileBytes, 1))),
        timesText(sweep, point.order),
        timesText(sweep, point.again),
        bytes(point.again, point.again.againBytes),
        timesText(sweep, point.pool),
        bytes(point.pool, point.pool.movedBytes),
        timesText(sweep, point.both),
        bytes(point.both, point.both.againBytes),
        bytes(point.both, point.both.movedBytes)};
    if (hasSums)
      for (std::string &cell :
           std::array{timesText(sweep, point.inTurn),
                      bytes(point.inTurn, point.inTurn.againBytes),
                      bytes(point.inTurn, point.inTurn.movedBytes)})
        row.push_back(std::move(cell));
    row.push_back(
        best ? fmt::format("{:.3f}", static_cast<double>(best->stepNs) / 1e6)
             : "-");
    row.emplace_back(best ? point.bestName() : "does not fit");
    table.add(std::move(row));
  }
  return table.text();
}

} // namespace

std::string baechi::report::fitSweepText(const FitSweep &sweep) {
  std::string text = table(sweep);
  auto out = std::back_inserter(text);
  fmt::format_to(out,
                 "\none device ({}) with all the memory it needs: {:.3f} ms; "
                 "the columns order, again, pool{} are times of that\n",
                 sweep.device, static_cast<double>(sweep.unlimitedNs) / 1e6,
                 sweep.floorInTurn ? ", both and sums in turn" : " and both");
  fmt::format_to(out,
                 "memory: {} MiB in the file's order, {} MiB in the leanest "
                 "that was found, {} MiB resident\n",
                 mebibytes(sweep.fileBytes), mebibytes(sweep.leanBytes),
                 mebibytes(sweep.residentBytes));
  if (!sweep.orderFloor.ops.empty())
    fmt::format_to(out,
                   "no order needs less than {} MiB, in each of them while "
                   "'{}' runs\n",
                   mebibytes(sweep.orderFloor.bytes),
                   fmt::join(sweep.orderFloor.ops, "' or '"));
  if (!sweep.floor.op.empty())
    fmt::format_to(out,
                   "floor: {} MiB, what is resident and what '{}' reads, makes "
                   "and works in; below it that operator must be cut{}\n",
                   mebibytes(sweep.floor.bytes), sweep.floor.op,
                   sweep.mayBeSum
                       ? fmt::format(", or, if it is a sum, done by additions "
                                     "of two: --sums={}",
                                     sweep.floor.op)
                       : "");
  if (sweep.floorInTurn)
    fmt::format_to(out,
                   "with sums in turn: {} MiB, what is resident and what '{}' "
                   "reads, makes and works in\n",
                   mebibytes(sweep.floorInTurn->bytes), sweep.floorInTurn->op);
  for (const std::string &note : sweep.notes)
    fmt::format_to(out, "note: {}\n", note);
  return text;
}

std::string baechi::report::fitSweepJson(const FitSweep &sweep) {
  using Json = nlohmann::ordered_json;
  auto link = [](const Link &of) {
    return Json{{"latency_ns", of.latencyNs}, {"bytes_per_us", of.bytesPerUs}};
  };
  auto entry = [&](const FitWay &way) -> Json {
    if (!way.fits)
      return nullptr;
    return {{"step_ns", way.stepNs},
            {"times_unlimited", timesUnlimited(sweep, way)},
            {"peak_bytes", way.peakBytes},
            {"pool_peak_bytes", way.poolPeakBytes},
            {"moved_bytes", way.movedBytes},
            {"again_ns", way.againNs},
            {"again_bytes", way.againBytes}};
  };
  Json root{{"format", "baechi-fit-sweep"},
            {"version", 1},
            {"device", sweep.device},
            {"pool", sweep.pool},
            {"to_pool", link(sweep.out)},
            {"from_pool", link(sweep.in)},
            {"unlimited_ns", sweep.unlimitedNs},
            {"file_bytes", sweep.fileBytes},
            {"lean_bytes", sweep.leanBytes},
            {"order_floor_bytes", sweep.orderFloor.bytes},
            {"order_floor_operators", sweep.orderFloor.ops},
            {"resident_bytes", sweep.residentBytes},
            {"floor_bytes", sweep.floor.bytes},
            {"floor_operator", sweep.floor.op},
            {"notes", sweep.notes}};
  if (sweep.floorInTurn) {
    root["floor_in_turn_bytes"] = sweep.floorInTurn->bytes;
    root["floor_in_turn_operator"] = sweep.floorInTurn->op;
  }
  auto &points = root["points"] = Json::array();
  for (const FitPoint &point : sweep.points) {
    Json ways{{"memory_bytes", point.memoryBytes},
              {"order", entry(point.order)},
              {"again", entry(point.again)},
              {"pool", entry(point.pool)},
              {"both", entry(point.both)}};
    if (sweep.floorInTurn)
      ways["in_turn"] = entry(point.inTurn);
    ways["best"] = point.bestName();
    points.push_back(std::move(ways));
  }
  return root.dump(1) + "\n";
}

std::string baechi::report::fitText(const FitPlan &plan) {
  const FitWay &way = plan.way;
  std::string text = "the graph as it is does not fit; fitted: ";
  auto out = std::back_inserter(text);
  if (way.againNs > 0)
    fmt::format_to(out, "operators run again for {:.3f} ms ({} MiB of results)",
                   static_cast<double>(way.againNs) / 1e6,
                   mebibytes(way.againBytes));
  if (way.movedBytes > 0)
    fmt::format_to(out, "{}{} MiB go to {} and back, {} MiB at most there",
                   way.againNs > 0 ? ", " : "", mebibytes(way.movedBytes),
                   plan.about.pool, mebibytes(way.poolPeakBytes));
  if (way.againNs == 0 && way.movedBytes == 0)
    text += "by its order";
  if (plan.isOfSeveral)
    return text + "\n";
  fmt::format_to(out,
                 "; all on {}, {:.3f} times as long as with all the memory it "
                 "needs there ({})\n",
                 plan.about.device, timesUnlimited(plan.about, way), plan.by);
  return text;
}

std::string baechi::report::fitJson(const std::string &report,
                                    const FitPlan &plan) {
  using Json = nlohmann::ordered_json;
  Json root = Json::parse(report);
  const FitWay &way = plan.way;
  root["memory_fit"] = {{"by", plan.by},
                        {"step_ns", way.stepNs},
                        {"unlimited_ns", plan.about.unlimitedNs},
                        {"moved_bytes", way.movedBytes},
                        {"again_ns", way.againNs},
                        {"again_bytes", way.againBytes},
                        {"floor_bytes", plan.about.floor.bytes},
                        {"floor_operator", plan.about.floor.op}};
  return root.dump(1) + "\n";
}
