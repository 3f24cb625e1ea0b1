//===- Forms.h - Sums of keys that blocks may be cut along -----*- C++ -*--===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_LOOPS_FORMS_H
#define BAECHI_LIB_LOOPS_FORMS_H

#include "Baechi/Loops/Verdict.h"

namespace baechi::loops {

using Form = std::vector<int64_t>; ///< coefficients of the keys

/// The key itself.
Form unit(const Loop &loop, int32_t key);
std::vector<Form> unitsOf(const Loop &loop, const std::vector<int32_t> &keys);

/// What extents that are not known do not tell is taken to be 1.
int64_t bytesOf(const Array &array);
/// What lies with the blocks that are cut along \p form.
int64_t homeBytes(const Loop &loop, const Form &form);

/// Whether all entries have the same sum: no two differ in it, which says
/// nothing.
bool isSame(const Loop &loop, const Form &form);
bool areParallel(const Form &a, const Form &b);

/// All subsets of \p size keys that have several values, those first that move
/// the least: what lies with the workers' key stays, then what lies with the
/// others rotates.
std::vector<std::vector<int32_t>> subsets(const Loop &loop, size_t size);

/// Sums of the keys with small coefficients, simple ones first, the first
/// coefficient that is not 0 positive; the keys themselves only for \p units.
std::vector<Form> simpleForms(const Loop &loop, bool units);

} // namespace baechi::loops

#endif // BAECHI_LIB_LOOPS_FORMS_H
