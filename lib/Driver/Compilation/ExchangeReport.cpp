//===- ExchangeReport.cpp - How replicas exchange parameters --------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Driver/Compilation/Compilation.h"
#include "llvm/Support/FormatVariadic.h"

using namespace baechi;
namespace json = llvm::json;

static bool carriesMessages(const json::Object &manifest) {
  const json::Array *queues = manifest.getArray("queues");
  return queues && llvm::any_of(*queues, [](const json::Value &queue) {
           return llvm::any_of(*queue.getAsObject()->getArray("messages"),
                               [](const json::Value &message) {
                                 return message.getAsObject()->getBoolean(
                                            "carried") == true;
                               });
         });
}

void Compilation::reportExchange(size_t best,
                                 llvm::ArrayRef<Candidate> candidates) {
  if (asked.exchange.empty())
    return;
  auto text = [&](size_t number) {
    std::optional<int64_t> ns = candidates[number].predictedNs;
    return ns ? llvm::formatv("{0:f3} ms", double(*ns) / 1e6).str()
              : std::string("without a plan that fits");
  };
  std::vector<std::string> lines;
  bool isAsAsked = compiled.exchange == asked.exchange;
  if (!isAsAsked)
    lines.push_back("messages are exchanged as they are ready, fifo, which is "
                    "predicted to be faster than " +
                    asked.exchange);
  if (slicesParameters) {
    bool isSliced = best == 0;
    lines.push_back(llvm::formatv("parameters are exchanged {0}: predicted "
                                  "{1}, {2} {3}",
                                  isSliced ? "in slices" : "whole", text(best),
                                  isSliced ? "whole" : "in slices",
                                  text(isSliced ? 1 : 0)));
  }
  if (!carriesMessages(compiled.manifest))
    lines.push_back("no parameter crosses the border between steps: none that "
                    "another device reads is updated in its own place");
  for (const std::string &line : lines)
    listener.note(line);
  if (isAsAsked)
    lines.insert(lines.begin(),
                 "messages are exchanged in the order " + asked.exchange);
  compiled.manifest["messages"] = json::Object{{"asked", asked.exchange},
                                               {"order", compiled.exchange},
                                               {"text", json::Array(lines)}};
}
