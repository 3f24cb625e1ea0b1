//===- UnrollOptions.cpp - Which loops may be written out -----------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Pipelines/CompileOptions.h"
#include "llvm/ADT/StringRef.h"

using namespace baechi;

llvm::Expected<std::optional<UnrollChoice>>
baechi::unrollChoiceOf(const CompileOptions &options) {
  if (options.unroll == "never")
    return std::nullopt;
  UnrollChoice choice;
  for (const auto *rules : {&options.pins, &options.split})
    llvm::append_range(choice.keep, patternsOf(*rules));
  if (options.unroll == "always") {
    choice.always = true;
    choice.leastShare = choice.leastNs = 0;
    choice.mostWrites = choice.limit;
    return choice;
  }
  if (options.unroll != "auto")
    return llvm::createStringError("unknown unroll '" + options.unroll +
                                   "'; known: auto, always, never");
  llvm::Expected<SplitChoice> splits = splitChoiceOf(options, /*devices=*/1);
  if (!splits)
    return splits.takeError();
  // What a person asks for, small loops have, too.
  bool isAsked = splits->always || !splits->asked.empty();
  choice.byStepAlone = isAsked || splits->exact;
  if (isAsked)
    choice.leastNs = 0;
  return choice;
}
