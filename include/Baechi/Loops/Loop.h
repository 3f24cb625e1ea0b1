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

/// constant + the sums of coefficients[k] * key k and symbols[s] * symbol s;
/// there may be fewer coefficients than keys, and symbols than the loop has.
struct Affine {
  std::vector<int64_t> coefficients;
  int64_t constant = 0;
  std::vector<int64_t> symbols = {};

  /// Its value where there are no symbols.
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

/// The combiner of what is set to one number: whoever is last, it is the same.
constexpr const char *kOneNumber = "one number";
constexpr const char *kMinimum = "minimum", *kMaximum = "maximum";

struct Access {
  int32_t array = 0;
  AccessKind kind = AccessKind::Read;
  std::vector<Subscript> subscripts; ///< one a dimension
  std::string place;                 ///< of the source, for messages
  /// What an addition is called, if it is none but another operation whose
  /// order does not matter: "maximum".
  std::string combiner = {};
  bool always = true; ///< each entry makes it
};

struct Array {
  std::string name;
  std::vector<int64_t> extents; ///< negative: not known
  int64_t elementBytes = 4;
  /// Its writes may be seen late: asked for by the user, and no reason to wait.
  bool buffered = false;
  /// Its sums are the same in any order, as those of integers.
  bool anyOrder = false;
};

struct Loop {
  std::vector<Key> keys;
  std::vector<Array> arrays;
  std::vector<Access> accesses;
  /// Entries follow each other as their keys do, lexicographically; otherwise
  /// any order is right.
  bool ordered = false;
  /// Of an ordered loop: entries follow each other as they are listed, whatever
  /// their keys are.
  bool listed = false;
  /// Sums may be made in another order than the entries'.
  bool reassociate = false;
  /// Numbers that are not known, but the same for all entries.
  std::vector<std::string> symbols;
  /// Entries have keys for which each of these is 0 or more.
  std::vector<Affine> domain;
};

/// What is wrong with a loop, with the place and the mend; empty if nothing.
std::string check(const Loop &loop);

} // namespace baechi::loops

#endif // BAECHI_LOOPS_LOOP_H
