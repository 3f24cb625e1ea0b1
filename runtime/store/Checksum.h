//===- Checksum.h - Whether a file is as it was written ---------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// CRC-32 as of zlib, gzip and PNG (ISO 3309): it finds every error of up to 32
/// bits in a row. Bitwise reflected, with a table of a byte's remainders.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_STORE_CHECKSUM_H
#define BAECHI_RUNTIME_STORE_CHECKSUM_H

#include <array>
#include <cstdint>
#include <string_view>

namespace baechi::store {

class Checksum {
public:
  void add(std::string_view bytes) {
    for (char byte : bytes)
      remainder =
          remainders[(remainder ^ uint8_t(byte)) & 0xff] ^ remainder >> 8;
  }
  uint32_t value() const { return ~remainder; }

private:
  static constexpr std::array<uint32_t, 256> remainders = [] {
    std::array<uint32_t, 256> made{};
    for (uint32_t byte = 0; byte < 256; ++byte) {
      uint32_t left = byte;
      for (int bit = 0; bit < 8; ++bit)
        left = left >> 1 ^ (left & 1 ? 0xedb88320u : 0u);
      made[byte] = left;
    }
    return made;
  }();
  uint32_t remainder = ~0u;
};

} // namespace baechi::store

#endif // BAECHI_RUNTIME_STORE_CHECKSUM_H
