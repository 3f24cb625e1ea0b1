//===- MeetPulse.h - The connections of a pulse -----------------*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_RUNTIME_TRANSPORT_SOCKETS_MEETPULSE_H
#define BAECHI_RUNTIME_TRANSPORT_SOCKETS_MEETPULSE_H

#include "Baechi/Runtime/Ranks.h"

namespace baechi::runtime {

/// By all ranks, when they have met: gives them a pulse (ranks/Pulse.h). The
/// others call rank 0 at \p host, as which they have reached it; "": where it
/// says that it is. Who cannot call it so has none, and is watched by what it
/// sends alone. Fails where a rank says nothing.
Error startPulse(Ranks &ranks, const std::string &host);

} // namespace baechi::runtime

#endif // BAECHI_RUNTIME_TRANSPORT_SOCKETS_MEETPULSE_H
