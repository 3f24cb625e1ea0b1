//===- PlacerOption.h - The option that names a placer -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_LIB_TRANSFORMS_PLACEROPTION_H
#define BAECHI_LIB_TRANSFORMS_PLACEROPTION_H

#include "mlir/Support/LLVM.h"
#include "llvm/Support/LogicalResult.h"

namespace baechi {

/// The options of a pass that takes a placer, also as a bare word
/// (--baechi-place=msct): \p read is mlir::Pass's own reader, which sets
/// \p placer. More than one bare word and a placer that the passes cannot run
/// are errors.
llvm::LogicalResult readPlacerOptions(
    llvm::StringRef options, const std::string &placer,
    llvm::function_ref<llvm::LogicalResult(llvm::StringRef)> read,
    llvm::function_ref<llvm::LogicalResult(const llvm::Twine &)> error);

} // namespace baechi

#endif // BAECHI_LIB_TRANSFORMS_PLACEROPTION_H
