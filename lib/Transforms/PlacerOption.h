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

/// Makes a bare word of a pass's \p options the placer (--baechi-place=msct):
/// \p keyed is what mlir::Pass reads. More than one is an error.
llvm::LogicalResult
keyPlacer(llvm::StringRef options, std::string &keyed,
          llvm::function_ref<llvm::LogicalResult(const llvm::Twine &)> error);

} // namespace baechi

#endif // BAECHI_LIB_TRANSFORMS_PLACEROPTION_H
