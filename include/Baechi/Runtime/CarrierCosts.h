//===- CarrierCosts.h - What moving simulated messages takes ----*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_CARRIERCOSTS_H
#define BAECHI_RUNTIME_CARRIERCOSTS_H

#include "Baechi/Runtime/Error.h"

namespace baechi::runtime {

/// What the thread that moves the messages of simulated links takes of a
/// processor.
struct CarrierCosts {
  double messageNs = 0; ///< beside its bytes; with both ends' offers
  double bytesPerUs = 0;
};

/// The processor's time for messages of few and of many bytes, the least of
/// some rounds; takes about 150 ms.
Expected<CarrierCosts> measureCarrier();

} // namespace baechi::runtime

#endif // BAECHI_RUNTIME_CARRIERCOSTS_H
