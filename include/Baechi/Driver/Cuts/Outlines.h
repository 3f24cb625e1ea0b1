//===- Outlines.h - What cuts of a step need, without its code --*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_DRIVER_CUTS_OUTLINES_H
#define BAECHI_DRIVER_CUTS_OUTLINES_H

#include "Baechi/Driver/Cuts/Cuttables.h"
#include "Baechi/Driver/Forms/ModelForms.h"
#include "llvm/ADT/StringMap.h"

namespace baechi {

/// What operators of a model need, cut in one way and another. Most rules leave
/// most of a step as it is, many all of it, and several ways to cut lead to the
/// same pieces: kernels are formed of each once.
class Outlines {
public:
  /// \p forms outlives it.
  explicit Outlines(const ModelForms &forms) : forms(forms) {}

  /// What needs most of the model cut as \p choice says, as far as kernels'
  /// code need not be known for that; without its operation, which is gone.
  /// Nullopt after an error.
  std::optional<Neediest> neediest(const SplitChoice &choice);

  /// So many were formed.
  size_t numFormed() const { return known.size(); }
  /// Operators of these.
  size_t operatorsFormed() const { return operators; }

private:
  const ModelForms &forms;
  mlir::OwningOpRef<mlir::ModuleOp>
      inlined; ///< the model, once it is asked for
  llvm::StringMap<std::optional<Neediest>> known; ///< by what was cut
  size_t operators = 0;
};

/// What tells \p module, with the names of its operations, from others of its
/// context.
std::string digestOf(mlir::ModuleOp module);

} // namespace baechi

#endif // BAECHI_DRIVER_CUTS_OUTLINES_H
