//===- StaleRun.cpp - Replicas with a late state are run ------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Driver/StaleRun.h"
#include "Baechi/Analysis/Program.h"
#include "Baechi/Dialect/Outside.h"
#include "Baechi/Dialect/Replicas.h"
#include "Baechi/Driver/Errors.h"
#include "Baechi/Driver/Inputs.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/STLExtras.h"
#include <chrono>
#include <cstring>
#include <thread>

using namespace mlir;
using namespace baechi;

namespace {

/// Floating point of at most 32 bits is shared, in f32.
const llvm::fltSemantics *shortSemantics(runtime::ElementType type) {
  switch (type) {
  case runtime::ElementType::F16:
    return &llvm::APFloat::IEEEhalf();
  case runtime::ElementType::BF16:
    return &llvm::APFloat::BFloat();
  default:
    return nullptr;
  }
}

bool isShared(runtime::ElementType type) {
  return type == runtime::ElementType::F32 || shortSemantics(type);
}

void toFloats(runtime::ElementType type, const std::vector<char> &data,
              std::vector<float> &values) {
  const llvm::fltSemantics *semantics = shortSemantics(type);
  if (!semantics) {
    values.resize(data.size() / sizeof(float));
    std::memcpy(values.data(), data.data(), data.size());
    return;
  }
  values.resize(data.size() / sizeof(uint16_t));
  for (size_t i = 0; i < values.size(); ++i) {
    uint16_t bits;
    std::memcpy(&bits, data.data() + i * sizeof(bits), sizeof(bits));
    bool loses;
    llvm::APFloat value(*semantics, llvm::APInt(16, bits));
    value.convert(llvm::APFloat::IEEEsingle(),
                  llvm::APFloat::rmNearestTiesToEven, &loses);
    values[i] = value.convertToFloat();
  }
}

void fromFloats(runtime::ElementType type, const std::vector<float> &values,
                std::vector<char> &data) {
  const llvm::fltSemantics *semantics = shortSemantics(type);
  if (!semantics) {
    data.resize(values.size() * sizeof(float));
    std::memcpy(data.data(), values.data(), data.size());
    return;
  }
  data.resize(values.size() * sizeof(uint16_t));
  for (size_t i = 0; i < values.size(); ++i) {
    bool loses;
    llvm::APFloat value(values[i]);
    value.convert(*semantics, llvm::APFloat::rmNearestTiesToEven, &loses);
    auto bits = uint16_t(value.bitcastToAPInt().getZExtValue());
    std::memcpy(data.data() + i * sizeof(bits), &bits, sizeof(bits));
  }
}

llvm::Error mistake(const llvm::Twine &message) {
  return llvm::createStringError(message);
}

} // namespace

llvm::Error StaleRun::findState(const std::vector<Array> &first) {
  std::vector<replicas::SharedArray> arrays;
  for (auto [i, argument] : llvm::enumerate(program().arguments)) {
    if (!argument.updatedBy)
      continue;
    StateArgument &each =
        state.emplace_back(StateArgument{i, size_t(*argument.updatedBy), {}});
    if (argument.type == runtime::ElementType::F64)
      return mistake("argument '" + argument.name +
                     "' is of f64, and replicas share at most 32 bits: write "
                     "the step's state in f32");
    if (!isShared(argument.type) || first[i].elements() == 0)
      continue;
    each.shared = arrays.size();
    arrays.push_back({argument.name, size_t(first[i].elements())});
    found.sharedBytes += int64_t(first[i].elements() * sizeof(float));
  }
  found.sharedArrays = int64_t(arrays.size());
  if (arrays.empty())
    return mistake("the step has no argument of floating point that it "
                   "computes the next value of (baechi.updated_by): there is "
                   "nothing that replicas could share; leave --staleness off");
  store::StoreOptions storeOptions;
  storeOptions.workers = asked.replicas;
  storeOptions.staleness = asked.staleness;
  storeOptions.budget = asked.bandwidth;
  storeOptions.patience = compilation.options().watchdog > 0
                              ? compilation.options().watchdog
                              : std::numeric_limits<double>::infinity();
  std::string error;
  store = replicas::SharedState::create(arrays, storeOptions, error);
  if (!store)
    return mistake(error);
  std::vector<float> values;
  for (const StateArgument &each : state)
    if (each.shared) {
      toFloats(program().arguments[each.argument].type,
               first[each.argument].data, values);
      if (llvm::Error failure = asError(store->set(*each.shared, values)))
        return failure;
    }
  return llvm::Error::success();
}

llvm::Error StaleRun::start() {
  FailureOr<func::FuncOp> step = findFuncStep(compilation.module());
  if (failed(step))
    return diagnosed();
  if (auto written = (*step)->getAttrOfType<IntegerAttr>(kReplicas))
    return mistake(
        "the step is written for " + llvm::Twine(written.getInt()) +
        " replicas, which exchange values in it, so that none can go on by "
        "itself: write what one of them computes, without collectives, or "
        "leave --staleness off");
  for (int i = 0; i < asked.replicas; ++i) {
    auto created =
        Execution::create(compilation.compiler().jit(), compilation.program(),
                          compilation.options().watchdog);
    if (!created)
      return created.takeError();
    replicas.push_back(std::move(*created));
  }
  llvm::Expected<FirstValues> values =
      FirstValues::read(*step, options.inputs, asked.replicas);
  if (!values)
    return values.takeError();
  std::vector<Array> first;
  for (auto [replica, execution] : llvm::enumerate(replicas))
    for (size_t i = 0; i < program().arguments.size(); ++i) {
      llvm::Expected<Array> value = values->of(int64_t(replica), i);
      if (!value)
        return value.takeError();
      if (llvm::Error error = execution->setArgument(i, *value))
        return error;
      if (replica == 0)
        first.push_back(std::move(*value));
    }
  if (size_t invented = values->invented() / replicas.size())
    listener.note(llvm::Twine(invented) +
                  (invented == 1 ? " argument has" : " arguments have") +
                  " neither an input nor a baechi.init: small numbers, zeros "
                  "for integers");
  for (auto [i, result] : llvm::enumerate(program().results))
    if (!loss && result.shape.empty() &&
        result.type == runtime::ElementType::F32) {
      loss = i;
      found.lossName = result.name;
    }
  return findState(first);
}

llvm::Error StaleRun::step(int replica, bool counted) {
  Execution &own = *replicas[size_t(replica)];
  std::vector<std::vector<float>> before(state.size());
  for (auto [each, values] : llvm::zip(state, before)) {
    if (!each.shared)
      continue;
    if (std::string error = store->see(replica, *each.shared, values);
        !error.empty())
      return mistake(error);
    const runtime::ArgumentInfo &argument = program().arguments[each.argument];
    Array value;
    value.type = runtime::elementName(argument.type);
    value.shape = argument.shape;
    fromFloats(argument.type, values, value.data);
    if (llvm::Error error = own.setArgument(each.argument, value))
      return error;
    // What the step starts from is rounded to the argument's type.
    toFloats(argument.type, value.data, values);
  }
  if (llvm::Error error = own.step(counted))
    return error;
  if (llvm::Error error = compilation.checkPositions(own))
    return error;
  std::vector<float> after;
  for (auto [each, values] : llvm::zip(state, before)) {
    if (!each.shared)
      continue;
    llvm::Expected<Array> value = own.argument(each.argument);
    if (!value)
      return value.takeError();
    toFloats(program().arguments[each.argument].type, value->data, after);
    if (std::string error = store->change(replica, *each.shared, values, after);
        !error.empty())
      return mistake(error);
  }
  if (loss) {
    llvm::Expected<Array> value = own.result(*loss);
    if (!value)
      return value.takeError();
    float number;
    std::memcpy(&number, value->data.data(), sizeof(number));
    found.losses[size_t(replica)].push_back(number);
  }
  return asError(store->end(replica));
}

llvm::Error StaleRun::work(int replica) {
  for (int64_t i = 0; i < options.steps; ++i)
    if (llvm::Error error = step(replica, i > 0 || options.steps == 1)) {
      std::string why = llvm::toString(std::move(error));
      store->lose(replica, why);
      return mistake("replica " + llvm::Twine(replica) + ", step " +
                     llvm::Twine(i) + ": " + why);
    }
  store->finish(replica);
  return llvm::Error::success();
}

llvm::Error StaleRun::checkOwn() const {
  for (const StateArgument &each : state)
    for (size_t replica = 1; !each.shared && replica < replicas.size();
         ++replica) {
      llvm::Expected<Array> first = replicas.front()->argument(each.argument);
      if (!first)
        return first.takeError();
      llvm::Expected<Array> mine = replicas[replica]->argument(each.argument);
      if (!mine)
        return mine.takeError();
      if (first->data != mine->data)
        return mistake(
            "argument '" + program().arguments[each.argument].name + "' of " +
            first->type + " has other values at replica " +
            llvm::Twine(replica) +
            " than at replica 0: what is no floating point is each replica's "
            "own, and has to be the same at all; let the step return it as a "
            "result of its own, or compute it in f32, of which replicas share "
            "the mean");
    }
  return llvm::Error::success();
}

llvm::Error StaleRun::run() {
  if (llvm::Error error = start())
    return error;
  found.losses.resize(replicas.size());
  std::vector<std::string> errors(replicas.size());
  {
    Phase phase(listener, "running steps");
    auto begin = std::chrono::steady_clock::now();
    std::vector<std::thread> threads;
    for (int i = 0; i < asked.replicas; ++i)
      threads.emplace_back([this, i, &errors] {
        if (llvm::Error error = work(i))
          errors[size_t(i)] = llvm::toString(std::move(error));
      });
    for (std::thread &thread : threads)
      thread.join();
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
    return mistake(*first);
  if (llvm::Error error = asError(store->drain()))
    return error;
  return checkOwn();
}

llvm::Expected<Array> StaleRun::shared(const StateArgument &argument) const {
  const runtime::ArgumentInfo &info = program().arguments[argument.argument];
  if (!argument.shared)
    return replicas.front()->argument(argument.argument);
  std::vector<float> values;
  if (std::string error = store->read(*argument.shared, values); !error.empty())
    return mistake(error);
  Array array;
  array.type = runtime::elementName(info.type);
  array.shape = info.shape;
  fromFloats(info.type, values, array.data);
  return array;
}

llvm::Error StaleRun::writeOutputs(const std::string &path) const {
  std::map<std::string, Array> arrays;
  for (const StateArgument &each : state) {
    llvm::Expected<Array> value = shared(each);
    if (!value)
      return value.takeError();
    arrays["out" + std::to_string(each.result)] = std::move(*value);
  }
  for (size_t i = 0; i < program().results.size(); ++i) {
    std::string name = "out" + std::to_string(i);
    if (arrays.count(name) || program().results[i].name == kOutside)
      continue;
    Array ofAll;
    for (const auto &replica : replicas) {
      llvm::Expected<Array> value = replica->result(i);
      if (!value)
        return value.takeError();
      ofAll.type = value->type;
      ofAll.shape = value->shape;
      llvm::append_range(ofAll.data, value->data);
    }
    ofAll.shape.insert(ofAll.shape.begin(), asked.replicas);
    arrays[name] = std::move(ofAll);
  }
  return asError(writeArrays(path, arrays));
}

StaleReport StaleRun::report() const {
  StaleReport report = found;
  report.asked = asked;
  report.model = compilation.options().model;
  report.machine = compilation.options().machine;
  report.steps = options.steps;
  report.store = store->report();
  return report;
}
