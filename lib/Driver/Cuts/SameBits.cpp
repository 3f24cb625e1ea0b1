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
/// are such that another order shows. First values may be too even for that:
/// zeros, masks of nothing, images of one color. So each float is made a little
/// larger first, by another amount, and each integer is another one of its
/// tensor's range, or the next one where all are the same. What a step computes
/// of such values may be none, as of a probability above one; then the first
/// values have to do.
///
//===----------------------------------------------------------------------===//

#include "Baechi/Driver/Cuts/SameBits.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

using namespace mlir;
using namespace baechi;

/// One does what is not updated yet, such as what follows a first update.
static constexpr int kStepsCompared = 2;
/// Two orders may give one sum by chance, about every other time, and what they
/// give may be lost in something larger that it is added to. So there are many
/// rounds, each of which has other values.
static constexpr int kRounds = 16;

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

/// The bits of infinite halves, above which are those of none.
static constexpr uint16_t kInfiniteHalf = 0x7c00, kInfiniteBrain = 0x7f80;

/// Halves, by their bits: \p small is those of a thousandth; what is \p
/// infinity or none stays.
static void enlargeHalves(Array &array, uint16_t small, uint16_t infinity,
                          std::mt19937_64 &random) {
  constexpr uint16_t last = 7;
  for (int64_t at = 0, size = array.elements(); at < size; ++at) {
    uint16_t bits;
    char *stored = array.data.data() + at * sizeof(bits);
    std::memcpy(&bits, stored, sizeof(bits));
    uint16_t magnitude = bits & 0x7fff;
    if (magnitude >= infinity)
      continue;
    if (magnitude == 0)
      bits = uint16_t(small | (random() & 0x3f));
    else
      bits = uint16_t((bits & ~last) | (random() & last));
    std::memcpy(stored, &bits, sizeof(bits));
  }
}

/// Integers of which none is outside of what was there, but for the next one.
template <typename Integer>
static void drawAll(Array &array, std::mt19937_64 &random) {
  auto elements = MutableArrayRef<Integer>(
      reinterpret_cast<Integer *>(array.data.data()), array.elements());
  if (elements.empty())
    return;
  auto [least, most] = std::minmax_element(elements.begin(), elements.end());
  Integer low = *least, high = *most;
  if (low == high && high < std::numeric_limits<Integer>::max())
    ++high;
  uint64_t span = uint64_t(high) - uint64_t(low);
  for (Integer &element : elements)
    element = Integer(uint64_t(low) +
                      (span == UINT64_MAX ? random() : random() % (span + 1)));
}

/// Makes floats differ in all of their digits, and integers from each other.
static void makeUneven(Array &array, std::mt19937_64 &random) {
  if (array.type == "f32")
    enlargeAll<float>(array, random);
  else if (array.type == "f64")
    enlargeAll<double>(array, random);
  else if (array.type == "f16")
    enlargeHalves(array, 0x1400, kInfiniteHalf, random);
  else if (array.type == "bf16")
    enlargeHalves(array, 0x3a80, kInfiniteBrain, random);
  else if (array.type == "i1")
    llvm::for_each(array.data, [&](char &bit) { bit = char(random() & 1); });
  else if (array.type == "i8")
    drawAll<uint8_t>(array, random); // Bytes are most often those of images.
  else if (array.type == "i16")
    drawAll<int16_t>(array, random);
  else if (array.type == "i32")
    drawAll<int32_t>(array, random);
  else if (array.type == "i64")
    drawAll<int64_t>(array, random);
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

static bool hasNone(const Array &array, uint16_t infinity) {
  for (int64_t at = 0, size = array.elements(); at < size; ++at) {
    uint16_t bits;
    std::memcpy(&bits, array.data.data() + at * sizeof(bits), sizeof(bits));
    if ((bits & 0x7fff) > infinity)
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
        (result->type == "f64" && hasNone<double>(*result)) ||
        (result->type == "f16" && hasNone(*result, kInfiniteHalf)) ||
        (result->type == "bf16" && hasNone(*result, kInfiniteBrain)))
      return true;
  }
  return false;
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

/// The first result that differs after one of a few steps; empty: none does.
/// Nullopt where results have what is no number.
static llvm::Expected<std::optional<std::string>>
differenceAfterSteps(Execution &placed, Execution &whole) {
  for (int step = 0; step < kStepsCompared; ++step) {
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
    if (!difference->empty())
      return std::optional(std::move(*difference));
  }
  return std::optional(std::string());
}

llvm::Expected<std::string> baechi::differenceOfBits(Execution &placed,
                                                     Execution &whole,
                                                     SetArguments setArguments,
                                                     Listener &listener) {
  Phase phase(listener, "comparing pieces with the whole step");
  if (llvm::Error error = setArguments(placed))
    return std::move(error);
  SmallVector<Array> first;
  for (size_t i = 0; i < placed.program().arguments.size(); ++i) {
    llvm::Expected<Array> value = placed.argument(i);
    if (!value)
      return value.takeError();
    first.push_back(std::move(*value));
  }
  // Where uneven values lead to what is no number, as they are.
  int compared = 0;
  for (int round = kRounds; round >= 0; --round) {
    if (round == 0 && compared > 0)
      break;
    phase(size_t(kRounds - round), size_t(kRounds));
    if (llvm::Error error = giveArguments(first, placed, whole, round))
      return std::move(error);
    auto difference = differenceAfterSteps(placed, whole);
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
