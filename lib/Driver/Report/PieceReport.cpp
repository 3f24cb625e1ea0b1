//===- PieceReport.cpp - What was cut, and what that saves ----------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Driver/Report/PieceReport.h"
#include "Baechi/Placement/Model/Text.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace baechi;
using llvm::format;
using placement::millisecondsText;
namespace json = llvm::json;

static std::string counted(int64_t number, llvm::StringRef one,
                           llvm::StringRef many) {
  return std::to_string(number) + " " + (number == 1 ? one : many).str();
}

static std::string describeSizes(llvm::ArrayRef<int64_t> sizes) {
  if (llvm::all_equal(sizes))
    return std::to_string(sizes.size()) + " pieces of " +
           std::to_string(sizes.front());
  return "pieces of " +
         llvm::join(
             llvm::map_range(sizes,
                             [](int64_t size) { return std::to_string(size); }),
             "+");
}

static std::string describeClass(const SplitReport::Class &cut) {
  std::string text = cut.along + ": " + describeSizes(cut.sizes) + ", " +
                     counted(cut.operations, "operation", "operations");
  if (cut.reductions > 0)
    text +=
        ", " + std::to_string(cut.reductions) + " of them summed up over it";
  if (cut.meetings > 0)
    text += ", pieces meet " + counted(cut.meetings, "time", "times");
  return text;
}

/// What the class is for, by the estimate that proposed it. Pieces that follow
/// each other save memory.
static std::string describeWorth(const SplitReport &report,
                                 const SplitReport::Class &cut) {
  std::string text = "  " + cut.why;
  if (report.isChained)
    return text;
  text += ": estimated to save " + millisecondsText(cut.savedNs) + " of " +
          millisecondsText(report.totalNs);
  constexpr int64_t kShownNs = 1000;
  bool copies = cut.copiedNs >= kShownNs;
  if (copies)
    text += ", less " + millisecondsText(cut.copiedNs) + " of copies and sums";
  if (cut.sentNs >= kShownNs)
    text += (copies ? " and " : ", less ") + millisecondsText(cut.sentNs) +
            " of messages";
  return text;
}

/// What is stored in pieces.
static std::string describeStorage(const SplitReport &report) {
  std::string text;
  if (report.arguments > 0)
    text = counted(report.arguments, "argument of ", "arguments of ") +
           placement::bytesText(report.argumentBytes, 2);
  if (report.results > 0)
    text += (text.empty() ? "" : " and ") +
            counted(report.results, "result", "results");
  return text + " stored in pieces";
}

/// By how often each forbids a cut, the most frequent first.
static std::vector<std::pair<int64_t, std::string>>
reasonsOf(const std::map<std::string, int64_t> &counts) {
  std::vector<std::pair<int64_t, std::string>> reasons;
  for (const auto &[why, count] : counts)
    reasons.emplace_back(count, why);
  llvm::stable_sort(
      reasons, [](const auto &a, const auto &b) { return a.first > b.first; });
  return reasons;
}

static std::string describePrediction(const PieceReport &report) {
  std::string pieces = report.piecesNs
                           ? "predicted " + millisecondsText(*report.piecesNs)
                           : "in pieces it does not fit the memories";
  if (!report.isCompared)
    return pieces + "; the whole step was not compared";
  if (!report.wholeNs)
    return pieces + "; the whole step does not fit the memories";
  std::string text = (report.isEstimated ? "by the roofline " : "") + pieces +
                     ", the whole step " + millisecondsText(*report.wholeNs);
  if (!report.isKept || !report.piecesNs)
    return text;
  // They may be kept for what a few steps took.
  int64_t saved = *report.wholeNs - *report.piecesNs;
  llvm::raw_string_ostream(text)
      << ": " << (saved < 0 ? "loses " : "saves ")
      << millisecondsText(std::abs(saved))
      << format(" (%.0f %%)", 100.0 * std::abs(saved) /
                                  std::max<int64_t>(1, *report.wholeNs));
  return text;
}

static std::string describeTrial(const PieceReport &report) {
  return "a few steps took " + millisecondsText(*report.triedPiecesNs) +
         ", of the whole step " + millisecondsText(*report.triedWholeNs);
}

std::vector<std::string> PieceReport::lines() const {
  constexpr size_t kShown = 5;
  std::vector<std::string> lines;
  if (cut.classes.empty())
    return {"none: no cut would save time"};
  int64_t operations = 0;
  for (const SplitReport::Class &each : cut.classes)
    operations += each.operations;
  lines.push_back(
      (isKept ? "" : "none, as the whole step is faster; tried: ") +
      counted(operations, "operation", "operations") + " cut along " +
      counted(cut.classes.size(), "class", "classes") + " of dimensions" +
      (cut.isChained ? ", pieces follow each other" : ""));
  for (const SplitReport::Class &each :
       llvm::ArrayRef(cut.classes).take_front(kShown)) {
    lines.push_back(describeClass(each));
    lines.push_back(describeWorth(cut, each));
  }
  if (cut.classes.size() > kShown)
    lines.push_back("and " + std::to_string(cut.classes.size() - kShown) +
                    " more");
  auto reasons = reasonsOf(cut.whole);
  for (const auto &[count, why] : llvm::ArrayRef(reasons).take_front(kShown))
    lines.push_back(counted(count, "operation", "operations") +
                    " whole: " + why);
  if (isKept && cut.arguments + cut.results > 0)
    lines.push_back(describeStorage(cut));
  reasons = isKept ? reasonsOf(cut.wholeArguments) : decltype(reasons)();
  for (const auto &[count, why] : llvm::ArrayRef(reasons).take_front(kShown))
    lines.push_back(counted(count, "argument", "arguments") +
                    " stored whole: " + why);
  lines.push_back(describePrediction(*this));
  if (triedPiecesNs && triedWholeNs)
    lines.push_back(describeTrial(*this));
  return lines;
}

json::Object PieceReport::toJson() const {
  json::Array classes, whole;
  for (const SplitReport::Class &each : cut.classes)
    classes.push_back(json::Object{{"along", each.along},
                                   {"sizes", json::Array(each.sizes)},
                                   {"operations", each.operations},
                                   {"partial_results", each.reductions},
                                   {"meetings", each.meetings},
                                   {"why", each.why},
                                   {"estimated_saved_ns", each.savedNs},
                                   {"estimated_copied_ns", each.copiedNs},
                                   {"estimated_sent_ns", each.sentNs}});
  for (const auto &[count, why] : reasonsOf(cut.whole))
    whole.push_back(json::Object{{"why", why}, {"operations", count}});
  json::Array storedWhole;
  for (const auto &[count, why] : reasonsOf(cut.wholeArguments))
    storedWhole.push_back(json::Object{{"why", why}, {"arguments", count}});
  auto orNull = [](std::optional<int64_t> ns) {
    return ns ? json::Value(*ns) : json::Value(nullptr);
  };
  return json::Object{
      {"kept", isKept},
      {"chained", cut.isChained},
      {"classes", std::move(classes)},
      {"whole", std::move(whole)},
      {"stored", json::Object{{"arguments", cut.arguments},
                              {"bytes", cut.argumentBytes},
                              {"results", cut.results},
                              {"whole", std::move(storedWhole)}}},
      {"compared", isCompared},
      {"estimated", isEstimated},
      {"pieces_ns", orNull(piecesNs)},
      {"whole_ns", orNull(wholeNs)},
      {"tried_pieces_ns", orNull(triedPiecesNs)},
      {"tried_whole_ns", orNull(triedWholeNs)},
      {"text", json::Array(lines())}};
}
