//===- FitReport.cpp - What is computed again, and what that costs --------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Driver/Report/FitReport.h"
#include "Baechi/Placement/Model/Text.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

using namespace baechi;
using llvm::format;
using placement::bytesText;
using placement::millisecondsText;
namespace json = llvm::json;

static int64_t clonesOf(const MemoryFit &fit) {
  int64_t clones = 0;
  for (const MemoryFit::Again &again : fit.again)
    clones += again.times;
  return clones;
}

std::vector<std::string> baechi::linesOf(const MemoryFit &fit) {
  constexpr size_t kShown = 5;
  std::vector<std::string> lines;
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "the step as it is does not fit; " << fit.again.size()
     << (fit.again.size() == 1 ? " operator runs" : " operators run")
     << " again, " << clonesOf(fit) << " times in all, which takes "
     << millisecondsText(fit.againNs)
     << format(" (%.1f %% of all work)",
               100.0 * fit.againNs / std::max<int64_t>(1, fit.workNs));
  lines.push_back(text);
  lines.push_back("at once, with each result beside its operands, " +
                  bytesText(fit.peakAfter, 2) + " instead of " +
                  bytesText(fit.peakBefore, 2) + "; not less than " +
                  bytesText(fit.floorBytes, 2) + ", which '" +
                  fit.floorOperator + "' needs by itself");
  for (const MemoryFit::Again &again :
       llvm::ArrayRef(fit.again).take_front(kShown))
    lines.push_back("'" + again.name + "' " + std::to_string(again.times) +
                    (again.times == 1 ? " time, " : " times, ") +
                    millisecondsText(again.ns) + ", lets go of " +
                    bytesText(again.bytes, 2));
  if (fit.again.size() > kShown)
    lines.push_back("and " + std::to_string(fit.again.size() - kShown) +
                    " more");
  return lines;
}

json::Object baechi::toJson(const MemoryFit &fit) {
  json::Array again;
  for (const MemoryFit::Again &each : fit.again)
    again.push_back(json::Object{{"operator", each.name},
                                 {"times", each.times},
                                 {"ns", each.ns},
                                 {"bytes", each.bytes}});
  return json::Object{{"peak_before_bytes", fit.peakBefore},
                      {"peak_after_bytes", fit.peakAfter},
                      {"floor_bytes", fit.floorBytes},
                      {"floor_operator", fit.floorOperator},
                      {"work_ns", fit.workNs},
                      {"again_ns", fit.againNs},
                      {"computed_again", std::move(again)},
                      {"text", json::Array(linesOf(fit))}};
}
