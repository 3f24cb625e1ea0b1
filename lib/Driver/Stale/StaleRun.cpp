//===- StaleRun.cpp - Replicas with a late state are run ------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Driver/Stale/StaleRun.h"
#include "Baechi/Analysis/Program.h"
#include "Baechi/Dialect/Replicas.h"
#include "Baechi/Driver/Execution/Ranks.h"
#include "Baechi/Driver/Input/Errors.h"
#include "Baechi/Driver/Input/Inputs.h"
#include "llvm/ADT/STLExtras.h"
#include <chrono>
#include <thread>

using namespace mlir;
using namespace baechi;

static llvm::Error mistake(const llvm::Twine &message) {
  return llvm::createStringError(message);
}

int32_t StaleRun::rankOf(int replica) const {
  return ranks ? ranks->ownerOf(size_t(replica), size_t(asked.replicas)) : 0;
}

llvm::Error StaleRun::startStore(FirstValues &values) {
  std::string error;
  store = replicas::SharedState::create(
      stale.arrays, storeOptionsOf(asked, compilation.options().watchdog),
      error);
  if (!store)
    return mistake(error);
  for (const StaleProgram::StateArgument &each : stale.state) {
    if (!each.shared)
      continue;
    llvm::Expected<Array> value = values.of(0, each.argument);
    if (!value)
      return value.takeError();
    found.sharedBytes += int64_t(stale.arrays[*each.shared].elements * 4);
    if (llvm::Error failure =
            asError(store->set(*each.shared, toFloats(*value))))
      return failure;
  }
  found.sharedArrays = int64_t(stale.arrays.size());
  return llvm::Error::success();
}

llvm::Error StaleRun::start() {
  FailureOr<func::FuncOp> step = findFuncStep(compilation.module());
  if (mlir::failed(step))
    return diagnosed();
  if (auto written = (*step)->getAttrOfType<IntegerAttr>(kReplicas))
    return mistake(
        "the step is written for " + llvm::Twine(written.getInt()) +
        " replicas, which exchange values in it, so that none can go on by "
        "itself: write what one of them computes, without collectives, or "
        "leave --staleness off");
  for (int i = 0; i < asked.replicas && isHere(i); ++i) {
    auto created =
        Execution::create(compilation.compiler().jit(), compilation.program(),
                          compilation.options().watchdog,
                          killerOf(options.killRank, ranks.get()));
    if (!created)
      return created.takeError();
    replicas.push_back(std::make_unique<StaleReplica>(i, std::move(*created)));
  }
  llvm::Expected<StaleProgram> shared = StaleProgram::of(program(), asked);
  if (!shared)
    return shared.takeError();
  stale = std::move(*shared);
  if (stale.loss)
    found.lossName = program().results[*stale.loss].name;
  llvm::Expected<FirstValues> values =
      FirstValues::read(*step, options.inputs, asked.replicas);
  if (!values)
    return values.takeError();
  for (const auto &replica : replicas)
    for (size_t i = 0; i < program().arguments.size(); ++i) {
      llvm::Expected<Array> value = values->of(replica->replica(), i);
      if (!value)
        return value.takeError();
      if (llvm::Error error = replica->program().setArgument(i, *value))
        return error;
    }
  if (size_t invented = values->invented() / replicas.size())
    listener.note(llvm::Twine(invented) +
                  (invented == 1 ? " argument has" : " arguments have") +
                  " neither an input nor a baechi.init: small numbers, zeros "
                  "for integers");
  if (llvm::Error error = startStore(*values))
    return error;
  return ranks ? sendStart(*values) : llvm::Error::success();
}

llvm::Error StaleRun::work(int replica) {
  StaleReplica &mine = *replicas[size_t(replica)];
  if (llvm::Error error =
          mine.work(stale, *store, options.steps, [&](const Execution &step) {
            return compilation.checkPositions(step);
          }))
    return error;
  llvm::Expected<StaleEnd> end = mine.end(stale, asked.results);
  if (!end)
    return end.takeError();
  ends[size_t(replica)] = std::move(*end);
  return llvm::Error::success();
}

llvm::Error StaleRun::checkOwn() const {
  size_t place = 0;
  for (const StaleProgram::StateArgument &each : stale.state) {
    if (each.shared)
      continue;
    for (size_t replica = 1; replica < ends.size(); ++replica) {
      const Array &first = ends.front().own[place];
      if (first.data != ends[replica].own[place].data)
        return mistake(
            "argument '" + program().arguments[each.argument].name + "' of " +
            first.type + " has other values at replica " +
            llvm::Twine(replica) +
            " than at replica 0: what is no floating point is each replica's "
            "own, and has to be the same at all; let the step return it as a "
            "result of its own, or compute it in f32, of which replicas share "
            "the mean");
    }
    ++place;
  }
  return llvm::Error::success();
}

llvm::Error StaleRun::run() {
  if (llvm::Error error = start())
    return error;
  ends.resize(size_t(asked.replicas));
  std::vector<std::string> errors(ends.size());
  {
    Phase phase(listener, "running steps");
    auto begin = std::chrono::steady_clock::now();
    std::vector<std::thread> threads;
    for (int i = 0; i < asked.replicas; ++i)
      threads.emplace_back([this, i, &errors] {
        if (llvm::Error error = isHere(i) ? work(i) : serve(i)) {
          errors[size_t(i)] = llvm::toString(std::move(error));
          failed = true;
        }
      });
    for (std::thread &thread : threads)
      thread.join();
    if (lines)
      lines->close();
    found.wallNs = std::chrono::duration_cast<std::chrono::nanoseconds>(
                       std::chrono::steady_clock::now() - begin)
                       .count();
  }
  // Those that have stopped because another is lost say so, too.
  auto first = llvm::find_if(errors, [](const std::string &error) {
    return !error.empty() && !StringRef(error).contains(" is lost: ");
  });
  if (first == errors.end())
    first = llvm::find_if(errors, [](auto &error) { return !error.empty(); });
  if (first != errors.end())
    return mistake(*first + (found.ranks.empty() ? "" : "; " + found.ranks));
  if (llvm::Error error = asError(store->drain()))
    return error;
  return checkOwn();
}

llvm::Expected<Array>
StaleRun::valueOf(const StaleProgram::StateArgument &each) const {
  std::vector<float> values;
  if (std::string error = store->read(*each.shared, values); !error.empty())
    return mistake(error);
  return fromFloats(program().arguments[each.argument], values);
}

llvm::Error StaleRun::writeOutputs(const std::string &path) const {
  std::map<std::string, Array> arrays;
  size_t own = 0;
  for (const StaleProgram::StateArgument &each : stale.state) {
    Array &array = arrays["out" + std::to_string(each.result)];
    if (!each.shared) {
      array = ends.front().own[own++];
      continue;
    }
    llvm::Expected<Array> value = valueOf(each);
    if (!value)
      return value.takeError();
    array = std::move(*value);
  }
  for (auto [place, result] : llvm::enumerate(stale.results)) {
    Array &ofAll = arrays["out" + std::to_string(result)];
    for (const StaleEnd &end : ends) {
      const Array &value = end.results[place];
      ofAll.type = value.type;
      ofAll.shape = value.shape;
      llvm::append_range(ofAll.data, value.data);
    }
    ofAll.shape.insert(ofAll.shape.begin(), asked.replicas);
  }
  return asError(writeArrays(path, arrays));
}

StaleReport StaleRun::report() const {
  StaleReport report = found;
  report.asked = asked;
  report.model = compilation.options().model;
  report.machine = compilation.options().machine;
  report.steps = options.steps;
  for (const StaleEnd &end : ends)
    report.losses.push_back(end.losses);
  report.store = store->report();
  return report;
}
