//===- LoopReport.cpp - Which loops were written out ----------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Driver/Report/LoopReport.h"
#include "Baechi/Placement/Model/Text.h"

using namespace baechi;
using placement::millisecondsText;
namespace json = llvm::json;

/// So many loops are told of, of each kind.
static constexpr size_t kShown = 5;

static std::string counted(int64_t number, llvm::StringRef one) {
  return std::to_string(number) + " " + one.str() + (number == 1 ? "" : "s");
}

static std::string timeText(std::optional<int64_t> ns) {
  return ns ? "predicted " + millisecondsText(*ns) : "without a plan";
}

static std::string whyText(const LoopReport &report) {
  if (report.choice.always)
    return "as unroll=always asks for";
  if (report.isPlaced)
    return "as the placement names their turns";
  if (report.choice.byStepAlone)
    return "by what they are of the step, on any machine";
  std::string text =
      timeText(report.unrolledNs) + ", whole " + timeText(report.wholeNs);
  if (report.triedUnrolledNs && report.triedWholeNs)
    text += "; a few steps took " + millisecondsText(*report.triedUnrolledNs) +
            " and " + millisecondsText(*report.triedWholeNs);
  return text;
}

std::vector<std::string> LoopReport::lines() const {
  std::vector<std::string> lines;
  if (!loops.unrolled.empty()) {
    std::string text = counted(loops.unrolled.size(), "loop") +
                       (isKept ? " written out, " : " whole; written out, ") +
                       counted(loops.operators(), "operator") + ": " +
                       whyText(*this);
    lines.push_back(text);
    for (const UnrolledLoops::Loop &loop :
         llvm::ArrayRef(loops.unrolled).take_front(kShown))
      lines.push_back("'" + loop.name + "': " + counted(loop.turns, "turn") +
                      ", " + counted(loop.operators, "operator"));
    if (loops.unrolled.size() > kShown)
      lines.push_back("and " + std::to_string(loops.unrolled.size() - kShown) +
                      " more");
  }
  for (const UnrolledLoops::Whole &loop :
       llvm::ArrayRef(loops.whole).take_front(kShown))
    lines.push_back("'" + loop.name + "' whole: " + loop.why);
  if (loops.whole.size() > kShown)
    lines.push_back("and " + std::to_string(loops.whole.size() - kShown) +
                    " more whole");
  return lines;
}

json::Object LoopReport::toJson() const {
  json::Array unrolled, whole;
  for (const UnrolledLoops::Loop &loop : loops.unrolled)
    unrolled.push_back(json::Object{{"name", loop.name},
                                    {"turns", loop.turns},
                                    {"operators", loop.operators}});
  for (const UnrolledLoops::Whole &loop : loops.whole)
    whole.push_back(json::Object{{"name", loop.name}, {"why", loop.why}});
  auto orNull = [](std::optional<int64_t> ns) {
    return ns ? json::Value(*ns) : json::Value(nullptr);
  };
  return json::Object{{"kept", isKept},
                      {"unrolled", std::move(unrolled)},
                      {"whole", std::move(whole)},
                      {"unrolled_ns", orNull(unrolledNs)},
                      {"whole_ns", orNull(wholeNs)},
                      {"tried_unrolled_ns", orNull(triedUnrolledNs)},
                      {"tried_whole_ns", orNull(triedWholeNs)},
                      {"limit", choice.limit},
                      {"least_share", choice.leastShare},
                      {"least_ns", choice.leastNs},
                      {"most_writes", choice.mostWrites},
                      {"keep", json::Array(choice.keep)},
                      {"text", json::Array(lines())}};
}
