//===- StaleReplica.cpp - One replica with a late state -------------------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Driver/Stale/StaleReplica.h"
#include "Baechi/Dialect/Outside.h"
#include "Baechi/Driver/Input/Errors.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/STLExtras.h"
#include <cstring>
#include <limits>

using namespace baechi;

namespace {

/// Floating point of at most 32 bits is shared, in f32.
const llvm::fltSemantics *shortSemantics(std::string_view type) {
  if (type == runtime::elementName(runtime::ElementType::F16))
    return &llvm::APFloat::IEEEhalf();
  if (type == runtime::elementName(runtime::ElementType::BF16))
    return &llvm::APFloat::BFloat();
  return nullptr;
}

bool isShared(runtime::ElementType type) {
  return type == runtime::ElementType::F32 ||
         shortSemantics(runtime::elementName(type));
}

Array emptyArray(const runtime::BufferInfo &info) {
  Array array;
  array.type = runtime::elementName(info.type);
  array.shape = info.shape;
  return array;
}

} // namespace

std::vector<float> baechi::toFloats(const Array &array) {
  const std::vector<char> &data = array.data;
  const llvm::fltSemantics *semantics = shortSemantics(array.type);
  std::vector<float> values(data.size() /
                            (semantics ? sizeof(uint16_t) : sizeof(float)));
  if (!semantics) {
    std::memcpy(values.data(), data.data(), data.size());
    return values;
  }
  for (size_t i = 0; i < values.size(); ++i) {
    uint16_t bits;
    std::memcpy(&bits, data.data() + i * sizeof(bits), sizeof(bits));
    bool loses;
    llvm::APFloat value(*semantics, llvm::APInt(16, bits));
    value.convert(llvm::APFloat::IEEEsingle(),
                  llvm::APFloat::rmNearestTiesToEven, &loses);
    values[i] = value.convertToFloat();
  }
  return values;
}

Array baechi::fromFloats(const runtime::BufferInfo &info,
                         const std::vector<float> &values) {
  Array array = emptyArray(info);
  const llvm::fltSemantics *semantics = shortSemantics(array.type);
  if (!semantics) {
    array.data.resize(values.size() * sizeof(float));
    std::memcpy(array.data.data(), values.data(), array.data.size());
    return array;
  }
  array.data.resize(values.size() * sizeof(uint16_t));
  for (size_t i = 0; i < values.size(); ++i) {
    bool loses;
    llvm::APFloat value(values[i]);
    value.convert(*semantics, llvm::APFloat::rmNearestTiesToEven, &loses);
    auto bits = uint16_t(value.bitcastToAPInt().getZExtValue());
    std::memcpy(array.data.data() + i * sizeof(bits), &bits, sizeof(bits));
  }
  return array;
}

constexpr std::pair<llvm::StringLiteral, store::SendOrder> orders[] = {
    {"relative", store::SendOrder::RelativeMagnitude},
    {"magnitude", store::SendOrder::Magnitude},
    {"age", store::SendOrder::Age},
    {"random", store::SendOrder::Random},
    {"round-robin", store::SendOrder::RoundRobin}};

std::optional<store::SendOrder> baechi::orderOf(llvm::StringRef name) {
  for (auto [known, order] : orders)
    if (known == name)
      return order;
  return std::nullopt;
}

llvm::StringRef baechi::nameOf(store::SendOrder order) {
  for (auto [name, known] : orders)
    if (known == order)
      return name;
  llvm_unreachable("an order without a name");
}

store::StoreOptions baechi::storeOptionsOf(const StaleOptions &asked,
                                           double watchdogSeconds) {
  store::StoreOptions options;
  options.workers = asked.replicas;
  options.staleness = asked.staleness;
  options.budget = asked.bandwidth;
  options.order = asked.order.value_or(options.order);
  options.patience = watchdogSeconds > 0
                         ? watchdogSeconds
                         : std::numeric_limits<double>::infinity();
  return options;
}

llvm::Expected<StaleProgram> StaleProgram::of(const runtime::Program &program,
                                              const StaleOptions &asked) {
  StaleProgram stale;
  std::vector<bool> isNext(program.results.size());
  for (auto [i, argument] : llvm::enumerate(program.arguments)) {
    if (!argument.updatedBy)
      continue;
    auto result = size_t(*argument.updatedBy);
    isNext[result] = true;
    StateArgument &each =
        stale.state.emplace_back(StateArgument{i, result, {}});
    if (argument.type == runtime::ElementType::F64)
      return llvm::createStringError(
          "argument '" + argument.name +
          "' is of f64, and replicas share at most 32 bits: write the step's "
          "state in f32");
    auto elements = size_t(emptyArray(argument).elements());
    if (!isShared(argument.type) || elements == 0)
      continue;
    each.shared = stale.arrays.size();
    stale.arrays.push_back({argument.name, elements, asked.revised});
  }
  for (auto [i, result] : llvm::enumerate(program.results)) {
    if (!isNext[i] && result.name != kOutside)
      stale.results.push_back(i);
    if (!stale.loss && result.shape.empty() &&
        result.type == runtime::ElementType::F32)
      stale.loss = i;
  }
  if (stale.arrays.empty())
    return llvm::createStringError(
        "the step has no argument of floating point that it computes the next "
        "value of (baechi.updated_by): there is nothing that replicas could "
        "share; leave --staleness off");
  return stale;
}

llvm::Error StaleReplica::step(const StaleProgram &stale,
                               replicas::ReplicaState &state, bool counted,
                               const Check &check) {
  const runtime::Program &program = execution->program();
  std::vector<std::vector<float>> before(stale.state.size());
  for (auto [each, values] : llvm::zip(stale.state, before)) {
    if (!each.shared)
      continue;
    if (llvm::Error error = asError(state.see(number, *each.shared, values)))
      return error;
    Array value = fromFloats(program.arguments[each.argument], values);
    if (llvm::Error error = execution->setArgument(each.argument, value))
      return error;
    // What the step starts from is rounded to the argument's type.
    values = toFloats(value);
  }
  if (llvm::Error error = execution->step(counted))
    return error;
  if (llvm::Error error = check(*execution))
    return error;
  for (auto [each, values] : llvm::zip(stale.state, before)) {
    if (!each.shared)
      continue;
    llvm::Expected<Array> value = execution->argument(each.argument);
    if (!value)
      return value.takeError();
    if (llvm::Error error = asError(
            state.change(number, *each.shared, values, toFloats(*value))))
      return error;
  }
  if (stale.loss) {
    llvm::Expected<Array> value = execution->result(*stale.loss);
    if (!value)
      return value.takeError();
    losses.push_back(toFloats(*value).front());
  }
  return asError(state.end(number));
}

llvm::Error StaleReplica::work(const StaleProgram &stale,
                               replicas::ReplicaState &state, int64_t steps,
                               const Check &check) {
  for (int64_t i = 0; i < steps; ++i) {
    llvm::Error error = step(stale, state, i > 0 || steps == 1, check);
    if (!error && i + 1 == steps)
      error = asError(state.finish(number));
    if (!error)
      continue;
    std::string why = llvm::toString(std::move(error));
    state.lose(number, why);
    return llvm::createStringError("replica " + llvm::Twine(number) +
                                   ", step " + llvm::Twine(i) + ": " + why);
  }
  return llvm::Error::success();
}

llvm::Expected<StaleEnd> StaleReplica::end(const StaleProgram &stale,
                                           bool withResults) const {
  StaleEnd left;
  left.losses = losses;
  for (const StaleProgram::StateArgument &each : stale.state) {
    if (each.shared)
      continue;
    llvm::Expected<Array> value = execution->argument(each.argument);
    if (!value)
      return value.takeError();
    left.own.push_back(std::move(*value));
  }
  for (size_t i = 0; withResults && i < stale.results.size(); ++i) {
    llvm::Expected<Array> value = execution->result(stale.results[i]);
    if (!value)
      return value.takeError();
    left.results.push_back(std::move(*value));
  }
  return left;
}

std::string StaleEnd::text() const {
  std::string text(reinterpret_cast<const char *>(losses.data()),
                   losses.size() * sizeof(float));
  for (const std::vector<Array> *arrays : {&own, &results})
    for (const Array &array : *arrays)
      text.append(array.data.data(), array.data.size());
  return text;
}

bool StaleEnd::read(llvm::StringRef text, const runtime::Program &program,
                    const StaleProgram &stale, const StaleOptions &asked,
                    int64_t steps) {
  bool fits = true;
  auto take = [&](size_t bytes) {
    fits = fits && bytes <= text.size();
    llvm::StringRef part = text.take_front(fits ? bytes : 0);
    text = text.drop_front(part.size());
    return part;
  };
  auto arrayOf = [&](const runtime::BufferInfo &info) {
    Array array = emptyArray(info);
    llvm::StringRef part = take(info.bytes);
    array.data.assign(part.begin(), part.end());
    return array;
  };
  llvm::StringRef part = take(stale.loss ? steps * sizeof(float) : 0);
  losses.resize(part.size() / sizeof(float));
  std::memcpy(losses.data(), part.data(), part.size());
  for (const StaleProgram::StateArgument &each : stale.state)
    if (!each.shared)
      own.push_back(arrayOf(program.arguments[each.argument]));
  for (size_t i = 0; asked.results && i < stale.results.size(); ++i)
    results.push_back(arrayOf(program.results[stale.results[i]]));
  return fits && text.empty();
}
