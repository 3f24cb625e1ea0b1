//===- LoopAttrs.cpp - Attributes of serial loops -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Baechi/Dialect/LoopOps.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace baechi;

#include "Baechi/Dialect/LoopEnums.cpp.inc"

/// No bound on this side.
static constexpr int64_t kOpen = ShapedType::kDynamic;

LogicalResult
DependenceAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                       int64_t array, StringRef from, StringRef to,
                       DenseI64ArrayAttr least, DenseI64ArrayAttr most) {
  if (array < 0)
    return emitError() << "a dependence is of an array, not of " << array;
  if (from.empty() || to.empty())
    return emitError() << "a dependence names two accesses";
  for (auto [low, high] :
       llvm::zip_equal(least.asArrayRef(), most.asArrayRef()))
    if (low != kOpen && high != kOpen && low > high)
      return emitError() << "no distance is from " << low << " to " << high;
  return success();
}

LogicalResult
LoopVerdictAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                        LoopScheme scheme, DenseI64ArrayAttr keys,
                        DenseI64ArrayAttr form, DenseI64ArrayAttr sums,
                        ArrayAttr dependences) {
  bool wantsKeys =
      scheme == LoopScheme::Disjoint || scheme == LoopScheme::Wavefront;
  bool wantsForm = scheme == LoopScheme::Skewed || scheme == LoopScheme::Timed;
  StringRef name = stringifyLoopScheme(scheme);
  if (wantsKeys != (keys && !keys.empty()))
    return emitError() << "a loop that is '" << name
                       << (wantsKeys ? "' names its keys" : "' has no 'keys'");
  if (scheme == LoopScheme::Wavefront && keys.size() < 2)
    return emitError() << "a loop that is 'wavefront' names two keys or more";
  if (wantsForm != (form && !form.empty()))
    return emitError() << "a loop that is '" << name
                       << (wantsForm ? "' names its form" : "' has no 'form'");
  for (DenseI64ArrayAttr numbers : {keys, sums}) {
    if (!numbers)
      continue;
    SmallVector<int64_t> sorted(numbers.asArrayRef());
    llvm::sort(sorted);
    if (llvm::unique(sorted) != sorted.end() || sorted.front() < 0)
      return emitError() << "'" << (numbers == keys ? "keys" : "sums")
                         << "' are different numbers from 0 on";
  }
  if (form && !wantsKeys &&
      llvm::all_of(form.asArrayRef(), [](int64_t c) { return c == 0; }))
    return emitError() << "'form' is a sum of one key at least";
  if (dependences && !llvm::all_of(dependences, llvm::IsaPred<DependenceAttr>))
    return emitError() << "'dependences' are #baechi.dependence";
  return success();
}
