//===- SameBits.h - Whether pieces compute what the whole does --*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_DRIVER_CUTS_SAMEBITS_H
#define BAECHI_DRIVER_CUTS_SAMEBITS_H

#include "Baechi/Driver/Execution/Execution.h"
#include "Baechi/Driver/Input/Listener.h"

namespace baechi {

/// The first result of \p placed that differs from that of \p whole by a bit;
/// empty: none does. \p setArguments: the first values of both.
llvm::Expected<std::string> differenceOfBits(Execution &placed,
                                             Execution &whole,
                                             SetArguments setArguments,
                                             Listener &listener);

} // namespace baechi

#endif // BAECHI_DRIVER_CUTS_SAMEBITS_H
