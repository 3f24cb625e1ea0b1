//===- InitialValues.cpp - First values of a step's arguments -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Pipelines/InitialValues.h"
#include "Baechi/Analysis/Program.h"
#include "llvm/ADT/APFloat.h"
#include "llvm/Support/raw_ostream.h"
#include <cstring>

using namespace mlir;
using namespace baechi;

uint64_t baechi::randomBits(uint64_t seed, uint64_t i) {
  constexpr uint64_t gamma = 0x9E3779B97F4A7C15;
  uint64_t z = seed * gamma + i + gamma;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

namespace {
/// low + (high - low) * u, each operation rounded to f32.
float uniform(float low, float high, uint64_t bits) {
#pragma STDC FP_CONTRACT OFF
  float unit = static_cast<float>(bits >> 40) * 0x1p-24f;
  float range = high - low;
  float scaled = range * unit;
  return low + scaled;
}

/// Writes `valueOf(i)` as each element of an array of a float type.
template <typename ValueOf>
void storeFloats(Array &array, FloatType type, ValueOf valueOf) {
  int64_t bytes = elementBytes(array.type);
  char *next = array.data.data();
  for (int64_t i = 0, n = array.elements(); i < n; ++i, next += bytes) {
    float value = valueOf(i);
    if (type.isF32()) { // as it is; others are a hundred times slower
      std::memcpy(next, &value, sizeof(value));
      continue;
    }
    APFloat number(value);
    bool inexact;
    number.convert(type.getFloatSemantics(), APFloat::rmNearestTiesToEven,
                   &inexact);
    uint64_t bits = number.bitcastToAPInt().getZExtValue();
    std::memcpy(next, &bits, bytes);
  }
}

template <typename ValueOf> void storeIntegers(Array &array, ValueOf valueOf) {
  int64_t bytes = elementBytes(array.type);
  char *next = array.data.data();
  for (int64_t i = 0, n = array.elements(); i < n; ++i, next += bytes) {
    int64_t value = valueOf(i);
    std::memcpy(next, &value, bytes);
  }
}

float floatOf(DictionaryAttr init, StringRef key) {
  return init.getAs<FloatAttr>(key).getValue().convertToFloat();
}
} // namespace

FailureOr<Array> baechi::initialValue(func::FuncOp step,
                                      const BorderTensor &argument,
                                      bool &invented) {
  unsigned index = argument.number;
  Location loc = step.getArgument(argument.first).getLoc();
  auto type = dyn_cast<RankedTensorType>(argument.type);
  Array array;
  if (type)
    llvm::raw_string_ostream(array.type) << type.getElementType();
  std::optional<int64_t> bytes = type ? tensorBytes(type, false) : std::nullopt;
  if (!bytes || elementBytes(array.type) == 0)
    return emitError(loc) << "argument " << index << " has type "
                          << argument.type << ", which has no initial value";
  array.shape.assign(type.getShape().begin(), type.getShape().end());
  array.data.resize(*bytes);
  auto floats = dyn_cast<FloatType>(type.getElementType());

  auto init = step.getArgAttrOfType<DictionaryAttr>(argument.first,
                                                    BaechiDialect::kInit);
  StringRef kind;
  float low = -0.1f, high = 0.1f;
  uint64_t seed = index;
  int64_t lowInteger = 0, range = 1;
  if (init) {
    kind = init.getAs<StringAttr>("kind").getValue();
    if (kind != "constant")
      seed = init.getAs<IntegerAttr>("seed").getInt();
    if (kind == "uniform") {
      low = floatOf(init, "low");
      high = floatOf(init, "high");
    } else if (kind == "randint") {
      lowInteger = init.getAs<IntegerAttr>("low").getInt();
      range = init.getAs<IntegerAttr>("high").getInt() - lowInteger;
      if (range <= 0)
        return emitError(loc)
               << "argument " << index
               << ": 'baechi.init' has no integers from " << lowInteger
               << " up to, not including, " << lowInteger + range;
    }
  } else {
    invented = true;
    kind = floats ? "uniform" : "constant";
  }

  double constant = 0;
  if (init && kind == "constant") {
    if (auto number = init.getAs<FloatAttr>("value"))
      constant = number.getValueAsDouble();
    else
      constant = init.getAs<IntegerAttr>("value").getInt();
  }
  auto store = [&](auto valueOf) {
    if (floats)
      storeFloats(array, floats, valueOf);
    else
      storeIntegers(array, valueOf);
  };
  if (kind == "uniform")
    store([&](int64_t i) { return uniform(low, high, randomBits(seed, i)); });
  else if (kind == "randint")
    store([&](int64_t i) -> int64_t {
      return lowInteger + randomBits(seed, i) % range;
    });
  else
    store([&](int64_t) { return constant; });
  return array;
}
