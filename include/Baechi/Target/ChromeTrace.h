//===- ChromeTrace.h - Timelines for trace viewers -*- C++ -*-===//
//
// Part of the Baechi project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BAECHI_TARGET_CHROMETRACE_H
#define BAECHI_TARGET_CHROMETRACE_H

#include "Baechi/Runtime/Program.h"
#include "Baechi/Runtime/Timeline.h"

#include <string>

namespace baechi {

/// The predicted timeline of a program and, unless null, the measured one, in
/// Chrome's trace-event form (chrome://tracing, Perfetto): a process each, with
/// one row a device and one a queue, and an arrow for every message, from the
/// operator that made it to the receiver's next one.
std::string chromeTrace(const runtime::Program &program,
                        const runtime::Timeline *measured);

} // namespace baechi

#endif // BAECHI_TARGET_CHROMETRACE_H
