//===- CutReport.cpp - What is cut so that a step fits --------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Driver/Report/CutReport.h"
#include "Baechi/Placement/Model/Text.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

using namespace baechi;
using placement::bytesText;
using placement::millisecondsText;
namespace json = llvm::json;

static llvm::StringRef nameOf(CutReport::Bits bits) {
  switch (bits) {
  case CutReport::Bits::Proven:
    return "proven";
  case CutReport::Bits::Compared:
    return "compared";
  case CutReport::Bits::Exact:
    return "exact";
  case CutReport::Bits::Rounded:
    break;
  }
  return "rounded";
}

static llvm::StringRef lineOf(CutReport::Bits bits) {
  switch (bits) {
  case CutReport::Bits::Proven:
    return "results have the bits of the whole step: each sum adds the same "
           "terms in the same order";
  case CutReport::Bits::Compared:
    return "two steps in pieces had the bits of two whole ones, which were run "
           "to compare them";
  case CutReport::Bits::Exact:
    return "results have the bits of the whole step, as sums stay whole "
           "(splits=exact)";
  case CutReport::Bits::Rounded:
    break;
  }
  return "sums may be rounded in another order than in the whole step "
         "(splits=any)";
}

/// NAME=DIM:PIECES as people say it.
static std::string describe(llvm::StringRef rule) {
  auto [name, how] = rule.rsplit('=');
  auto [dim, pieces] = how.split(':');
  return ("'" + name + "' in " + pieces + " pieces along dimension " + dim)
      .str();
}

std::string CutRequest::text() const {
  std::string command, python;
  llvm::raw_string_ostream words(command), arguments(python);
  if (microBatches > 0) {
    words << " --splits=micro:" << microBatches;
    arguments << "splits=\"micro:" << microBatches << "\"";
  }
  llvm::ListSeparator separator;
  if (!rules.empty())
    arguments << (microBatches > 0 ? ", split={" : "split={");
  for (llvm::StringRef rule : rules) {
    words << ' ';
    llvm::sys::printArg(words, ("--split=" + rule).str(), /*Quote=*/false);
    auto [name, how] = rule.rsplit('=');
    auto [dim, pieces] = how.split(':');
    arguments << separator << json::Value(name) << ": (" << dim << ", "
              << pieces << ")";
  }
  if (!rules.empty())
    arguments << "}";
  return command.substr(1) + " (in Python " + python + ")";
}

std::vector<std::string> CutReport::lines() const {
  std::vector<std::string> lines;
  if (instead)
    lines.push_back(std::string("the step as it is does not fit; ") +
                    (instead->isWhole ? "whole" : "in other pieces") +
                    ", it fits and takes " +
                    millisecondsText(instead->otherwiseNs) +
                    "; cut, it is predicted to take " +
                    millisecondsText(instead->piecesNs) + ":");
  else if (needs > memory)
    lines.push_back("'" + neediest + "' by itself needs " +
                    placement::bytesTextUp(needs, 2) + ", '" + device +
                    "' has " + bytesText(memory, 2) + "; cut, the step fits:");
  else
    lines.push_back("the step as it is does not fit; cut, it does:");
  if (request.microBatches > 0)
    lines.push_back("the batch in " + std::to_string(request.microBatches) +
                    " pieces that follow each other");
  for (const std::string &rule : request.rules)
    lines.push_back(describe(rule));
  lines.push_back(lineOf(bits).str());
  if (bits == Bits::Compared && !unproven.empty())
    lines.back() += ": " + unproven;
  return lines;
}

json::Object CutReport::toJson() const {
  json::Object report{
      {"operator", neediest},
      {"needs_bytes", needs},
      {"device", device},
      {"device_bytes", memory},
      {"micro_batches", static_cast<int64_t>(request.microBatches)},
      {"split", json::Array(request.rules)},
      {"bits", nameOf(bits)},
      {"compared_because", unproven},
      {"text", json::Array(lines())}};
  if (instead) {
    report[instead->isWhole ? "whole_ns" : "other_pieces_ns"] =
        instead->otherwiseNs;
    report["pieces_ns"] = instead->piecesNs;
  }
  return report;
}
