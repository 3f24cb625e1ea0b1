//===- SameBits.cpp - Whether pieces compute what the whole does ----------===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// Pieces add the terms of a sum in the order of the whole, or in another one,
/// whatever the values are: so one pair of steps tells for all, if their values
/// are such that another order shows. First values may be too even for that,
/// zeros and small integers, say; so each float is made a little larger first,
/// by another amount. What a step computes of such values may be none, as of a
/// probability above one; then the first values have to do.
///
//===----------------------------------------------------------------------===//

#include "Baechi/Driver/Compilation.h"
#include <cmath>
#include <cstring>
#include <random>

using namespace mlir;
using namespace baechi;

/// One does what is not updated yet, such as what follows a first update.
static constexpr int kStepsCompared = 2;
/// Two orders may give one sum by chance. So few results are those of so many
/// steps, each of other values.
static constexpr int64_t kFewElements = 1024;
static constexpr int kRoundsOfFew = 16, kRounds = 2;

template <typename Float>
static void enlargeAll(Array &array, std::mt19937_64 &random) {
  for (int64_t at = 0, size = array.elements(); at < size; ++at) {
    Float value;
    char *stored = array.data.data() + at * sizeof(Float);
    std::memcpy(&value, stored, sizeof(Float));
    Float share = static_cast<Float>(static_cast<double>(random()) * 0x1p-64);
    value = value == 0 ? share * Float(1e-3) : value * (1 + share / 8);
    std::memcpy(stored, &value, sizeof(Float));
  }
}

/// Makes floats differ in all of their digits.
static void makeUneven(Array &array, std::mt19937_64 &random) {
  if (array.type == "f32")
    enlargeAll<float>(array, random);
  else if (array.type == "f64")
    enlargeAll<double>(array, random);
}

template <typename Float> static bool hasNone(const Array &array) {
  for (int64_t at = 0, size = array.elements(); at < size; ++at) {
    Float value;
    std::memcpy(&value, array.data.data() + at * sizeof(Float), sizeof(Float));
    if (std::isnan(value))
      return true;
  }
  return false;
}

/// Whether a result has what is no number: it says nothing of sums.
static llvm::Expected<bool> hasNone(const Execution &steps) {
  for (size_t i = 0; i < steps.program().results.size(); ++i) {
    llvm::Expected<Array> result = steps.result(i);
    if (!result)
      return result.takeError();
    if ((result->type == "f32" && hasNone<float>(*result)) ||
        (result->type == "f64" && hasNone<double>(*result)))
      return true;
  }
  return false;
}

/// How many elements its results have.
static int64_t elementsOf(const Execution &steps) {
  int64_t elements = 0;
  for (const runtime::BufferInfo &result : steps.program().results) {
    int64_t own = 1;
    for (int64_t size : result.shape)
      own *= size;
    elements += own;
  }
  return elements;
}

/// Gives both the same arguments, which become those of \p placed, uneven in
/// the way of \p seed; 0: as they are.
static llvm::Error giveArguments(ArrayRef<Array> first, Execution &placed,
                                 Execution &whole, unsigned seed) {
  std::mt19937_64 random(seed);
  for (auto [number, value] : llvm::enumerate(first)) {
    Array given = value;
    if (seed > 0)
      makeUneven(given, random);
    for (Execution *each : {&placed, &whole})
      if (llvm::Error error = each->setArgument(number, given))
        return error;
  }
  return llvm::Error::success();
}

/// The first result that differs after a few steps; empty: none does. Nullopt
/// where results have what is no number.
static llvm::Expected<std::optional<std::string>>
differenceAfterSteps(Execution &placed, Execution &whole) {
  for (int step = 0; step < kStepsCompared; ++step)
    for (Execution *each : {&placed, &whole})
      if (llvm::Error error = each->step(/*counted=*/false))
        return std::move(error);
  llvm::Expected<bool> none = hasNone(whole);
  if (!none)
    return none.takeError();
  if (*none)
    return std::nullopt;
  llvm::Expected<std::string> difference = firstDifference(placed, whole);
  if (!difference)
    return difference.takeError();
  return std::optional(std::move(*difference));
}

llvm::Expected<std::string>
Compilation::differenceFromWhole(HostCompiler &whole,
                                 const CompiledProgram &program,
                                 SetArguments setArguments) {
  if (!canRunSteps())
    return llvm::createStringError(
        "the host program computes parts of a step, which are not there yet");
  if (asked.otherProcesses || !asked.hostTarget.empty())
    return llvm::createStringError("the program is not run here");
  HostCompiler &cut = *hostCompiler;
  use(whole);
  llvm::Expected<std::unique_ptr<Execution>> single = createSingle("host");
  use(cut);
  if (!single)
    return single.takeError();
  if (!*single)
    return llvm::createStringError(
        "this machine's memory cannot hold the whole step");
  auto placed = Execution::create(cut.jit(), program, asked.watchdog);
  if (!placed)
    return placed.takeError();
  Phase phase(listener, "comparing pieces with the whole step");
  if (llvm::Error error = setArguments(**placed))
    return std::move(error);
  SmallVector<Array> first;
  for (size_t i = 0; i < (*placed)->program().arguments.size(); ++i) {
    llvm::Expected<Array> value = (*placed)->argument(i);
    if (!value)
      return value.takeError();
    first.push_back(std::move(*value));
  }
  bool areFew = elementsOf(**single) < kFewElements;
  // Where uneven values lead to what is no number, as they are.
  int compared = 0;
  for (int round = areFew ? kRoundsOfFew : kRounds; round >= 0; --round) {
    if (round == 0 && compared > 0)
      break;
    if (llvm::Error error = giveArguments(first, **placed, **single, round))
      return std::move(error);
    auto difference = differenceAfterSteps(**placed, **single);
    if (!difference)
      return difference.takeError();
    if (*difference && !(*difference)->empty())
      return **difference;
    compared += difference->has_value();
  }
  if (compared == 0)
    return llvm::createStringError("the whole step's results are no numbers");
  return "";
}
