//===- Inputs.h - What a run starts from and is compared with -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_TOOLS_BAECHI_RUN_INPUTS_H
#define BAECHI_TOOLS_BAECHI_RUN_INPUTS_H

#include "Baechi/Target/Npz.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/Error.h"

namespace baechi {

/// First values of all arguments of \p step: those in the archive \p path, by
/// `baechi.name` or as argN, the others from `baechi.init`. \p invented counts
/// the arguments that had neither. An array of another shape or type, or under
/// a name that no argument has, is an error.
llvm::Expected<std::vector<Array>>
firstValues(mlir::func::FuncOp step, const std::string &path, size_t &invented);

/// The losses of a reference file (docs/import.md).
llvm::Expected<std::vector<double>> readReference(const std::string &path);

} // namespace baechi

#endif // BAECHI_TOOLS_BAECHI_RUN_INPUTS_H
