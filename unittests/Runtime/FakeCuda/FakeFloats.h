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

// Normal numbers within the shorter type's range; tests need no others.

/// The nearest number whose last `dropped` bits of the fraction are zero.
inline float shorten(float value, int dropped) {
  auto bits = std::bit_cast<uint32_t>(value);
  uint32_t lowest = uint32_t(1) << dropped;
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

inline float fromF16(uint16_t bits) {
  uint32_t sign = uint32_t(bits & 0x8000) << 16;
  if ((bits & 0x7fff) == 0)
    return std::bit_cast<float>(sign);
  // The exponent's bias is 15 there and 127 here.
  return std::bit_cast<float>(sign |
                              ((uint32_t(bits & 0x7fff) << 13) + (112U << 23)));
}
inline uint16_t toF16(float value) {
  auto bits = std::bit_cast<uint32_t>(shorten(value, droppedByF16));
  auto sign = uint16_t(bits >> 16 & 0x8000);
  if ((bits & 0x7fffffff) == 0)
    return sign;
  return uint16_t(sign | ((bits & 0x7fffffff) - (112U << 23)) >> 13);
}

} // namespace fakecuda

#endif // BAECHI_UNITTESTS_RUNTIME_FAKECUDA_FAKEFLOATS_H
