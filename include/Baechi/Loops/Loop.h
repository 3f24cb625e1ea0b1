//===- Loop.h - A serial loop over keys ------------------------*- C++ -*--===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
///
/// \file
/// What the analysis of a serial loop reads: the box that its keys are of, and
/// every access of an array within one entry. An entry is a key vector with
/// values; which key vectors of the box have entries is not known before the
/// run, and one may have several.
///
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LOOPS_LOOP_H
#define BAECHI_LOOPS_LOOP_H

#include <cstdint>
#include <string>
#include <vector>

namespace baechi::loops {

/// A component of the keys, in [lower, upper).
struct Key {
  std::string name;
  int64_t lower = 0, upper = 0;
};

/// constant + the sum of coefficients[k] * key k; there may be fewer
/// coefficients than keys.
struct Affine {
  std::vector<int64_t> coefficients;
  int64_t constant = 0;

  int64_t of(const std::vector<int64_t> &key) const {
    int64_t value = constant;
    for (size_t k = 0; k < coefficients.size(); ++k)
      value += coefficients[k] * key[k];
    return value;
  }
};

/// The positions that an access has in one dimension of an array.
struct Subscript {
  enum class Kind : uint8_t {
    At,      ///< [at, at + size)
    All,     ///< all of them
    Unknown, ///< any, as data says
  };
  Kind kind = Kind::All;
  Affine at;
  int64_t size = 1;
};

enum class AccessKind : uint8_t {
  Read,
  Write,
  Add, ///< x += f, where f does not depend on x: its order does not matter
};

struct Access {
  int32_t array = 0;
  AccessKind kind = AccessKind::Read;
  std::vector<Subscript> subscripts; ///< one a dimension
  std::string place;                 ///< of the source, for messages
};

struct Array {
  std::string name;
  std::vector<int64_t> extents;
  int64_t elementBytes = 4;
  /// Its writes may be seen late: asked for by the user, and no reason to wait.
  bool buffered = false;
};

struct Loop {
  std::vector<Key> keys;
  std::vector<Array> arrays;
  std::vector<Access> accesses;
  /// Entries follow each other as their keys do, lexicographically; otherwise
  /// any order is right.
  bool ordered = false;
  /// Sums may be made in another order than the entries'.
  bool reassociate = false;
};

/// What is wrong with a loop, with the place and the mend; empty if nothing.
std::string check(const Loop &loop);

} // namespace baechi::loops

#endif // BAECHI_LOOPS_LOOP_H
