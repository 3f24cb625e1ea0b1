//===- FakeFloats.h - Short floating-point types -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_UNITTESTS_RUNTIME_FAKECUDA_FAKEFLOATS_H
#define BAECHI_UNITTESTS_RUNTIME_FAKECUDA_FAKEFLOATS_H

#include <bit>
#include <cstdint>

namespace fakecuda {

/// The nearest number whose last `dropped` bits of the fraction are zero; of
/// two the one with an even last bit.
inline float shorten(float value, int dropped) {
  auto bits = std::bit_cast<uint32_t>(value);
  uint32_t lowest = uint32_t(1) << dropped;
  if ((bits & 0x7fffffff) > 0x7f800000)
    bits |= 0x00400000; // A NaN stays one.
  else
    bits += lowest / 2 - 1 + (bits >> dropped & 1);
  return std::bit_cast<float>(bits & ~(lowest - 1));
}

constexpr int droppedByTf32 = 13, droppedByBf16 = 16, droppedByF16 = 13;

inline float fromBf16(uint16_t bits) {
  return std::bit_cast<float>(uint32_t(bits) << 16);
}
inline uint16_t toBf16(float value) {
  return uint16_t(std::bit_cast<uint32_t>(shorten(value, droppedByBf16)) >> 16);
}

// The exponent's bias is 15 in half precision and 127 in single.
constexpr uint32_t biasOfF16 = 112U << 23;

inline float fromF16(uint16_t bits) {
  uint32_t sign = uint32_t(bits & 0x8000) << 16, rest = bits & 0x7fff;
  uint32_t magnitude;
  if (rest >= 0x7c00) // Infinity and NaN.
    magnitude = 0x7f800000 | (rest & 0x3ff) << 13;
  else if (rest < 0x400) // Subnormal: a multiple of 2^-24.
    magnitude = std::bit_cast<uint32_t>(float(rest) * 0x1p-24F);
  else
    magnitude = (rest << 13) + biasOfF16;
  return std::bit_cast<float>(sign | magnitude);
}
inline uint16_t toF16(float value) {
  auto bits = std::bit_cast<uint32_t>(value);
  uint32_t sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
  uint32_t rest;
  if (magnitude > 0x7f800000)
    rest = 0x7e00;
  else if (magnitude >= 0x477ff000) // 65520 is nearer to infinity than 65504.
    rest = 0x7c00;
  else if (magnitude < 0x38800000) // Subnormal: 0.5 has a last bit of 2^-24.
    rest = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) -
           std::bit_cast<uint32_t>(0.5F);
  else
    rest = (std::bit_cast<uint32_t>(
                shorten(std::bit_cast<float>(magnitude), droppedByF16)) -
            biasOfF16) >>
           13;
  return uint16_t(sign | rest);
}

} // namespace fakecuda

#endif // BAECHI_UNITTESTS_RUNTIME_FAKECUDA_FAKEFLOATS_H
