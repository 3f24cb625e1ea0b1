//===- SpillReport.cpp - What waits in a pool -----------------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Driver/Report/SpillReport.h"
#include "Baechi/Driver/Report/StepTimes.h"
#include "Baechi/Placement/Model/Pool.h"
#include "Baechi/Placement/Model/Text.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace baechi;
using placement::bytesText;
using placement::millisecondsText;
namespace json = llvm::json;

namespace {
/// A tensor that comes from the pool.
struct Fetched {
  std::string name;
  int64_t bytes = 0;
  int64_t times = 0;
};

struct Spills {
  std::string pool;
  int64_t outBytes = 0, inBytes = 0, argumentBytes = 0, stepNs = 0;
  PoolCopies copies;            ///< as predicted
  std::vector<Fetched> fetched; ///< the largest first
};
} // namespace

static int64_t integer(const json::Object &object, llvm::StringRef key) {
  return object.getInteger(key).value_or(0);
}

static void addMessages(const json::Object &program, int64_t pool,
                        Spills &spills) {
  for (const json::Value &value : *program.getArray("queues")) {
    const json::Object &queue = *value.getAsObject();
    bool comes = integer(queue, "from") == pool;
    if (!comes && integer(queue, "to") != pool)
      continue;
    for (const json::Value &each : *queue.getArray("messages")) {
      const json::Object &message = *each.getAsObject();
      int64_t bytes = integer(message, "bytes");
      (comes ? spills.inBytes : spills.outBytes) += bytes;
      if (!comes)
        continue;
      llvm::StringRef name = message.getString("name").value_or("");
      // Each fetch is of a tensor of its own.
      name = name.substr(0, name.find("/stash"));
      auto known = llvm::find_if(spills.fetched, [&](const Fetched &other) {
        return other.name == name && other.bytes == bytes;
      });
      if (known == spills.fetched.end())
        known = spills.fetched.insert(known, {name.str(), bytes, 0});
      ++known->times;
    }
  }
  llvm::stable_sort(spills.fetched, [](const Fetched &a, const Fetched &b) {
    return a.bytes > b.bytes;
  });
}

static std::string textOf(const json::Object &program) {
  std::string text;
  llvm::raw_string_ostream(text) << json::Value(json::Object(program));
  return text;
}

/// What the first pool of a program holds; nothing where its arena is empty.
static std::optional<Spills> readSpills(const json::Object &program) {
  for (auto [number, value] : llvm::enumerate(*program.getArray("devices"))) {
    const json::Object &device = *value.getAsObject();
    if (!placement::isPoolKind(*device.getString("kind")) ||
        integer(device, "arena_bytes") == 0)
      continue;
    Spills spills;
    spills.pool = device.getString("name")->str();
    spills.argumentBytes = integer(device, "resident_bytes");
    if (const json::Object *predicted = program.getObject("predicted"))
      // As for the step: the plan's own times leave out what devices do
      // for copies.
      spills.stepNs = predicted->getInteger("step_ns").value_or(
          integer(*predicted, "makespan_ns"));
    addMessages(program, number, spills);
    if (auto read = runtime::Program::parse(textOf(program)))
      spills.copies = poolCopies(*read, predictedTimes(*read), number);
    return spills;
  }
  return std::nullopt;
}

/// How long these copies take, and what of that devices need not wait for.
static std::string textOf(const PoolCopies &copies) {
  return llvm::formatv("copies to it and from it take {0}, {1:F1} % of that "
                       "while the device computes",
                       millisecondsText(copies.ns), copies.hiddenPercent());
}

static std::vector<std::string> linesOf(const Spills &spills) {
  constexpr size_t kShown = 5;
  std::vector<std::string> lines;
  lines.push_back(llvm::formatv(
      "the step as it is does not fit; {0} {1} in "
      "'{2}', {3} go there and {4} come back; the step is "
      "predicted to take {5}",
      spills.fetched.size(),
      spills.fetched.size() == 1 ? "tensor waits" : "tensors wait", spills.pool,
      bytesText(spills.outBytes, 2), bytesText(spills.inBytes, 2),
      millisecondsText(spills.stepNs)));
  lines.push_back("predicted: " + textOf(spills.copies));
  if (spills.argumentBytes > 0)
    lines.push_back(bytesText(spills.argumentBytes, 2) +
                    " of arguments live in '" + spills.pool + "'");
  for (const Fetched &each : llvm::ArrayRef(spills.fetched).take_front(kShown))
    lines.push_back(llvm::formatv("'{0}' {1}, fetched {2} {3}", each.name,
                                  bytesText(each.bytes, 2), each.times,
                                  each.times == 1 ? "time" : "times"));
  if (spills.fetched.size() > kShown)
    lines.push_back(
        llvm::formatv("and {0} more", spills.fetched.size() - kShown));
  return lines;
}

void baechi::addSpills(json::Object &manifest, json::Object spills) {
  json::Object *again = manifest.getObject("memory_fit");
  if (!again) {
    manifest["memory_fit"] = std::move(spills);
    return;
  }
  for (auto &[key, value] : spills)
    if (key != "text")
      (*again)[key] = std::move(value);
  for (json::Value &line : *spills.getArray("text"))
    again->getArray("text")->push_back(std::move(line));
}

std::optional<json::Object> baechi::spillsOf(const json::Object &manifest) {
  std::optional<Spills> spills = readSpills(manifest);
  if (!spills)
    return std::nullopt;
  json::Array fetched;
  for (const Fetched &each : spills->fetched)
    fetched.push_back(json::Object{
        {"tensor", each.name}, {"bytes", each.bytes}, {"times", each.times}});
  return json::Object{{"pool", spills->pool},
                      {"out_bytes", spills->outBytes},
                      {"in_bytes", spills->inBytes},
                      {"argument_bytes", spills->argumentBytes},
                      {"step_ns", spills->stepNs},
                      {"copies_ns", spills->copies.ns},
                      {"hidden_ns", spills->copies.hiddenNs},
                      {"fetched", std::move(fetched)},
                      {"text", json::Array(linesOf(*spills))}};
}

void baechi::addMeasured(json::Object &fit, const runtime::Program &program,
                         const runtime::Timeline &timeline) {
  std::optional<llvm::StringRef> name = fit.getString("pool");
  auto pool = llvm::find_if(program.devices, [&](const auto &device) {
    return name && device.name == *name;
  });
  if (pool == program.devices.end())
    return;
  PoolCopies copies = poolCopies(program, measuredTimes(timeline),
                                 pool - program.devices.begin());
  fit["measured_copies_ns"] = copies.ns;
  fit["measured_hidden_ns"] = copies.hiddenNs;
  fit.getArray("text")->push_back("measured in the fastest step: " +
                                  textOf(copies));
}
