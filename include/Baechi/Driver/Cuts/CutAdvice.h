//===- CutAdvice.h - Cuts that would make a step fit ------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_DRIVER_CUTS_CUTADVICE_H
#define BAECHI_DRIVER_CUTS_CUTADVICE_H

#include "Baechi/Driver/Forms/ModelForms.h"

namespace baechi {

/// In how few micro-batches the step fits, more than \p above; null: in none.
std::unique_ptr<HostCompiler>
fewestMicroBatches(const ModelForms &forms, unsigned above, unsigned &pieces);

/// Which cut of the operator that needs most makes the step fit, and how it is
/// asked for; empty: none that is tried does. \p whole: the step with costs,
/// cut as \p first says.
std::string adviseCut(const ModelForms &forms, mlir::ModuleOp whole,
                      const SplitChoice &first);

} // namespace baechi

#endif // BAECHI_DRIVER_CUTS_CUTADVICE_H
