//===- Npz.h - Arrays in NumPy's files -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_TARGET_NPZ_H
#define BAECHI_TARGET_NPZ_H

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace baechi {

/// A dense row-major array. `type` is named as in MLIR: f64 f32 f16 bf16 i64
/// i32 i16 i8 i1 (one byte an element).
struct Array {
  std::string type;
  std::vector<int64_t> shape;
  std::vector<char> data;

  int64_t elements() const;
};

/// Reads a .npz archive (array by array) or a single .npy file (as "arg0").
/// Unsigned integers become the same bits of MLIR's signless ones.
/// Returns an error that names the file and the array, empty on success.
std::string readArrays(const std::string &path,
                       std::map<std::string, Array> &arrays);

/// Writes an uncompressed .npz archive. bf16, which NumPy lacks, is an error.
std::string writeArrays(const std::string &path,
                        const std::map<std::string, Array> &arrays);

/// Bytes an element; 0 for an unknown type.
int64_t elementBytes(const std::string &type);

} // namespace baechi

#endif // BAECHI_TARGET_NPZ_H
