//===- OtherCuts.h - Other cuts than those that were formed -----*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_DRIVER_CUTS_OTHERCUTS_H
#define BAECHI_DRIVER_CUTS_OTHERCUTS_H

#include "Baechi/Driver/Forms/ModelForms.h"

namespace baechi {

/// Other cuts of the step are compared with those of \p compilers, by the
/// roofline: the largest class first, and where devices share no memory, fewer
/// pieces, micro-batches, and pieces of what saves time if part of what they
/// send overlaps. What may be better joins them.
void addOtherCuts(const ModelForms &forms,
                  std::vector<ModelForms::Compiler> &compilers);

/// What the placer alone gives \p compiler's step by the roofline, without a
/// word; nullopt: it does not fit.
std::optional<int64_t> predictQuietly(const ModelForms &forms,
                                      HostCompiler &compiler);

} // namespace baechi

#endif // BAECHI_DRIVER_CUTS_OTHERCUTS_H
